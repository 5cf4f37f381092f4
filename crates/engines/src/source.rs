//! Where a value is read: `report#/pointer` (with `*` for every element) or `metric:NAME{label}`.

use std::collections::BTreeMap;

use serde_json::Value;
use shakedown_wire::prometheus::Exposition;

/// Elements of one list that are looked into.
const ELEMENTS_CAP: usize = 1024;

/// What values are read from.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Reports by id: the path that answered, and what it said.
    pub(crate) reports: BTreeMap<String, (String, Value)>,
    /// The metrics page, with its path.
    pub(crate) page: Option<(String, Exposition)>,
}

/// A value with where it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) source: String,
}

impl Sources {
    /// All values at `source`: none where it is absent, one for each element that a `*` stands for.
    pub(crate) fn read(&self, source: &str) -> Vec<Read> {
        if let Some(rest) = source.strip_prefix("metric:") {
            return self.read_label(rest);
        }
        let Some((report, pointer)) = source.split_once('#') else {
            return Vec::new();
        };
        let Some((path, value)) = self.reports.get(report) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        walk(value, pointer, &mut found);
        found
            .into_iter()
            .map(|value| Read {
                value: value.clone(),
                source: format!(
                    "{path} {}",
                    pointer
                        .replace("/*", "")
                        .trim_start_matches('/')
                        .replace('/', ".")
                ),
            })
            .collect()
    }

    fn read_label(&self, source: &str) -> Vec<Read> {
        let Some((path, page)) = &self.page else {
            return Vec::new();
        };
        let Some((name, label)) = source.strip_suffix('}').and_then(|rest| rest.split_once('{')) else {
            return Vec::new();
        };
        page.named(name)
            .filter_map(|sample| sample.label(label))
            .map(|value| Read {
                value: Value::String(value.to_owned()),
                source: format!("{path} {name} {label}"),
            })
            .collect()
    }
}

fn walk<'a>(value: &'a Value, pointer: &str, found: &mut Vec<&'a Value>) {
    match pointer.split_once("/*") {
        None => found.extend(value.pointer(pointer)),
        Some((before, after)) => {
            let elements = value.pointer(before).and_then(Value::as_array);
            for element in elements.into_iter().flatten().take(ELEMENTS_CAP) {
                walk(element, after, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        Sources {
            reports: [(
                "info".to_owned(),
                (
                    "/server_info".to_owned(),
                    serde_json::json!({"a": 1, "states": [{"b": "x"}, {"b": "y"}, {}], "n": null}),
                ),
            )]
            .into(),
            page: Some((
                "/metrics".to_owned(),
                shakedown_wire::prometheus::parse("vllm:info{engine=\"0\",block_size=\"16\"} 1\n"),
            )),
        }
    }

    fn values(source: &str) -> Vec<Value> {
        sources()
            .read(source)
            .into_iter()
            .map(|read| read.value)
            .collect()
    }

    #[test]
    fn pointers_stars_and_labels() {
        assert_eq!(values("info#/a"), [1]);
        assert_eq!(values("info#/states/*/b"), ["x", "y"]);
        assert_eq!(values("info#/n"), [Value::Null]);
        assert_eq!(values("info#/z"), Vec::<Value>::new());
        assert_eq!(values("other#/a"), Vec::<Value>::new());
        assert_eq!(values("metric:vllm:info{block_size}"), ["16"]);
        assert_eq!(values("metric:vllm:info{none}"), Vec::<Value>::new());
        assert_eq!(
            sources().read("info#/states/*/b")[0].source,
            "/server_info states.b"
        );
    }
}
