//! Conditions on a reply, as the catalogue writes them.

use serde::Deserialize;
use serde_json::Value;

/// What a rule sees of a reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyView<'a> {
    /// Status.
    pub status: u16,
    /// Headers, in any case.
    pub headers: &'a [(String, String)],
    /// Body as text, possibly cut.
    pub text: &'a str,
    /// Body as JSON, where it is JSON.
    pub json: Option<&'a Value>,
}

impl ReplyView<'_> {
    /// The first header `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// What a reply must be: all that is said holds.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRule {
    /// One of these; any where empty.
    #[serde(default)]
    pub status: Vec<u16>,
    /// A header with this value, compared without case; `prefix` for values that carry more.
    #[serde(default)]
    pub header: Option<HeaderRule>,
    /// Facts about the JSON body.
    #[serde(default)]
    pub json: Vec<JsonRule>,
    /// Texts of which one is in the body.
    #[serde(default)]
    pub contains: Vec<String>,
    /// The body is exactly this, white space around it aside.
    #[serde(default)]
    pub body: Option<String>,
}

/// A header's value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderRule {
    /// Name.
    pub name: String,
    /// Its value begins with this; any value where empty.
    #[serde(default)]
    pub prefix: String,
}

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonType {
    /// A string.
    String,
    /// A number.
    Number,
    /// A list.
    List,
    /// A list with nothing in it.
    Empty,
    /// A list with something in it.
    Filled,
    /// An object.
    Object,
    /// Nothing there.
    Absent,
}

/// A fact about a JSON body.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonRule {
    /// JSON pointer; the whole body where empty.
    #[serde(default)]
    pub at: String,
    /// Its type.
    #[serde(default)]
    pub is: Option<JsonType>,
    /// It is one of these; any where empty.
    #[serde(default)]
    pub one_of: Vec<Value>,
}

impl JsonRule {
    fn holds(&self, json: &Value) -> bool {
        let found = json.pointer(&self.at);
        if self.is == Some(JsonType::Absent) {
            return found.is_none();
        }
        let Some(value) = found else { return false };
        let typed = match self.is {
            None => true,
            Some(JsonType::String) => value.is_string(),
            Some(JsonType::Number) => value.is_number(),
            Some(JsonType::List) => value.is_array(),
            Some(JsonType::Empty) => value.as_array().is_some_and(Vec::is_empty),
            Some(JsonType::Filled) => value.as_array().is_some_and(|list| !list.is_empty()),
            Some(JsonType::Object) => value.is_object(),
            Some(JsonType::Absent) => false,
        };
        typed && (self.one_of.is_empty() || self.one_of.contains(value))
    }
}

impl ReplyRule {
    /// Whether `reply` is such a reply.
    pub fn holds(&self, reply: &ReplyView<'_>) -> bool {
        let status = self.status.is_empty() || self.status.contains(&reply.status);
        let header = self.header.as_ref().is_none_or(|rule| {
            reply
                .header(&rule.name)
                .is_some_and(|value| starts_with_ignoring_case(value, &rule.prefix))
        });
        let text = self.contains.is_empty() || self.contains.iter().any(|part| reply.text.contains(part));
        let body = self.body.as_ref().is_none_or(|body| reply.text.trim() == body);
        let json = self.json.is_empty()
            || reply
                .json
                .is_some_and(|json| self.json.iter().all(|rule| rule.holds(json)));
        status && header && text && body && json
    }
}

fn starts_with_ignoring_case(value: &str, prefix: &str) -> bool {
    value
        .as_bytes()
        .get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(rule: &str, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
        let rule: ReplyRule = toml::from_str(rule).unwrap();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let json = serde_json::from_str(body).ok();
        rule.holds(&ReplyView {
            status,
            headers: &headers,
            text: body,
            json: json.as_ref(),
        })
    }

    #[test]
    fn all_that_is_said_holds() {
        let rule = "status = [200]\njson = [{ at = '/router', one_of = ['a', 'b'] }]";
        assert!(holds(rule, 200, &[], r#"{"router":"b"}"#));
        assert!(!holds(rule, 503, &[], r#"{"router":"b"}"#));
        assert!(!holds(rule, 200, &[], r#"{"router":"c"}"#));
        assert!(!holds(rule, 200, &[], "router"));
    }

    #[test]
    fn headers_without_case() {
        let rule = "header = { name = 'Server', prefix = 'llama.cpp' }";
        assert!(holds(rule, 404, &[("server", "LLAMA.CPP/b1")], ""));
        assert!(!holds(rule, 404, &[("server", "ll")], ""));
        assert!(!holds(rule, 404, &[], ""));
    }

    #[test]
    fn types() {
        let is = |kind: &str, body: &str| {
            holds(
                &format!("json = [{{ at = '/a', is = '{kind}' }}]"),
                200,
                &[],
                body,
            )
        };
        assert!(is("absent", "{}") && !is("absent", r#"{"a":1}"#));
        assert!(is("empty", r#"{"a":[]}"#) && !is("empty", r#"{"a":[1]}"#) && !is("empty", "{}"));
        assert!(is("filled", r#"{"a":[1]}"#) && !is("filled", r#"{"a":[]}"#));
        assert!(is("string", r#"{"a":"x"}"#) && !is("string", r#"{"a":1}"#));
        assert!(!is("absent", "not json"));
    }
}
