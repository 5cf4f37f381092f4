//! Settings asked for and in force, by our names, and where they differ.

use std::collections::BTreeMap;

use serde_json::Value;
use shakedown_model::{Confidence, Engine, Evidence, Finding, InForce, Setting, Verdict};

use crate::catalog::{Catalog, Entry, Provenance, SettingRule};
use crate::command::{asked_settings, json_text};
use crate::mask::{mask_text, split_words};
use crate::source::{Read, Sources};

/// What stands for a setting that the engine reports as null.
const NONE: &str = "none";
/// Longest value of a setting that is kept, in bytes.
const VALUE_CAP: usize = 500;

/// The settings that the engine of `entry` reports; absent where it reports none.
pub(crate) fn read_settings(entry: &Entry, sources: &Sources) -> Option<InForce> {
    let mut in_force = InForce::default();
    for rule in &entry.settings.list {
        in_force.asked.extend(
            read_one(rule, rule.asked.as_ref(), &entry.settings.asked, sources)
                .filter(|setting| setting.value != NONE),
        );
        // Null stays: that there is no speculation is as much in force as that there is.
        in_force.settings.extend(read_one(
            rule,
            rule.in_force.as_ref(),
            &entry.settings.in_force,
            sources,
        ));
    }
    if let Some(source) = &entry.settings.launch_command {
        for read in sources.read(source) {
            if let Some(line) = read.value.as_str() {
                let asked = asked_settings(entry, &split_words(line), &BTreeMap::new());
                ask_first(&mut in_force.asked, asked, &format!("{} ", read.source));
            }
        }
    }
    (!in_force.settings.is_empty() || !in_force.asked.is_empty()).then_some(in_force)
}

/// The settings in force with what the server's own `arguments` and `environment` ask for: they are what was
/// really asked, so they take the place of what the engine reports as asked.
pub fn with_arguments(
    engine: &Engine,
    in_force: Option<InForce>,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
) -> InForce {
    let asked = asked_by(Catalog::shared().entry(engine.kind), arguments, environment);
    joined_asked(in_force, Some(asked)).unwrap_or_default()
}

/// What these arguments and this environment ask for, nothing known to be in force.
pub(crate) fn asked_by(
    entry: &Entry,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
) -> InForce {
    let mut asked = asked_settings(entry, arguments, environment);
    for setting in &mut asked {
        setting.value = kept(&setting.value);
    }
    InForce {
        settings: Vec::new(),
        asked,
    }
}

/// What the engine reports, with what was found to be asked for in place of what it reports as asked.
pub(crate) fn joined_asked(reported: Option<InForce>, found: Option<InForce>) -> Option<InForce> {
    let Some(found) = found else { return reported };
    let mut joined = reported.unwrap_or_default();
    ask_first(&mut joined.asked, found.asked, "");
    Some(joined)
}

/// `new` before `asked`, replacing settings of the same name.
fn ask_first(asked: &mut Vec<Setting>, new: Vec<Setting>, before: &str) {
    asked.retain(|old| !new.iter().any(|setting| setting.name == old.name));
    let new = new.into_iter().map(|setting| Setting {
        source: format!("{before}{}", setting.source),
        ..setting
    });
    asked.splice(0..0, new);
}

fn read_one(
    rule: &SettingRule,
    given: Option<&Vec<String>>,
    template: &str,
    sources: &Sources,
) -> Option<Setting> {
    let member = rule.member.as_deref().unwrap_or(&rule.name);
    let from_template = || {
        if template.is_empty() {
            Vec::new()
        } else {
            vec![template.replace("{}", member)]
        }
    };
    let places = given.cloned().unwrap_or_else(from_template);
    let reads = places
        .iter()
        .map(|place| sources.read(place))
        .find(|reads| !reads.is_empty())?;
    Some(Setting {
        name: rule.name.clone(),
        value: joined(&reads),
        source: reads.first()?.source.clone(),
    })
}

/// One value where all ranks agree, else all different ones.
fn joined(reads: &[Read]) -> String {
    let mut values: Vec<String> = Vec::new();
    for read in reads {
        let value = match &read.value {
            Value::Null => NONE.to_owned(),
            value => json_text(value).unwrap_or_default(),
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    kept(&values.join(", "))
}

fn kept(value: &str) -> String {
    let mut value = mask_text(value);
    if value.len() > VALUE_CAP {
        let mut end = VALUE_CAP;
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        value.truncate(end);
        value.push('…');
    }
    value
}

/// Findings for the settings that were asked for and are not in force.
///
/// A setting that nobody asked for, that leaves the choice to the engine, or of which the engine does not say what
/// is in force, is no finding. Differences that the engine makes without harm are told as `info`.
pub fn asked_not_in_force(engine: &Engine, in_force: &InForce) -> Vec<Finding> {
    let entry = Catalog::shared().entry(engine.kind);
    in_force
        .asked
        .iter()
        .filter_map(|asked| {
            let rule = entry.settings.list.iter().find(|rule| rule.name == asked.name)?;
            let really = in_force.get(&asked.name)?;
            differs(rule, asked, really).then(|| finding(entry, rule, asked, really))
        })
        .collect()
}

fn differs(rule: &SettingRule, asked: &Setting, really: &Setting) -> bool {
    let (wanted, found) = (asked.value.trim(), really.value.trim());
    let explicit = asked.source.contains("argument ") || asked.source.contains("variable ");
    let leaves_it_open = rule.open.iter().any(|open| open.eq_ignore_ascii_case(wanted));
    // The report of a default says nothing of what somebody asked for.
    let is_default = !explicit && matches!(wanted.to_ascii_lowercase().as_str(), "false" | "none" | "0" | "");
    if leaves_it_open || is_default || same_value(wanted, found) {
        return false;
    }
    let in_one_group = rule.same.iter().any(|group| {
        let holds = |value: &str| group.iter().any(|word| word.eq_ignore_ascii_case(value));
        holds(wanted) && holds(found)
    });
    !in_one_group
}

fn same_value(a: &str, b: &str) -> bool {
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if (a - b).abs() <= 1e-9 * a.abs().max(1.0))
}

fn finding(entry: &Entry, rule: &SettingRule, asked: &Setting, really: &Setting) -> Finding {
    let (code, verdict) = if rule.adjusted {
        ("setting-adjusted", Verdict::Info)
    } else {
        ("asked-not-in-force", Verdict::Warn)
    };
    let why = rule.why.clone().unwrap_or_else(|| {
        format!(
            "{} chose another value, or could not do what was asked",
            entry.kind.title()
        )
    });
    Finding::new(
        code,
        verdict,
        rule.name.clone(),
        format!(
            "{} is {} and {} was asked for",
            rule.name, really.value, asked.value
        ),
    )
    .why(why)
    .evidence(Evidence::new(asked.source.clone(), asked.value.clone()))
    .evidence(Evidence::new(really.source.clone(), really.value.clone()))
    .confidence(match entry.provenance {
        Provenance::Unverified => Confidence::Likely,
        Provenance::Source | Provenance::Seen => Confidence::Certain,
    })
}

#[cfg(test)]
mod tests {
    use shakedown_model::EngineKind;

    use super::*;

    fn sglang(report: Value) -> (Engine, Option<InForce>) {
        let catalog = Catalog::built_in();
        let sources = Sources {
            reports: [("server_info".to_owned(), ("/server_info".to_owned(), report))].into(),
            page: None,
        };
        let engine = Engine {
            kind: EngineKind::Sglang,
            version: Some("0.5.9".to_owned()),
            recognised_by: String::new(),
            practice: false,
        };
        let in_force = read_settings(catalog.entry(engine.kind), &sources);
        (engine, in_force)
    }

    fn codes(engine: &Engine, in_force: &InForce) -> Vec<(String, String)> {
        asked_not_in_force(engine, in_force)
            .into_iter()
            .map(|finding| (finding.code, finding.what))
            .collect()
    }

    #[test]
    fn a_fusion_that_went_off() {
        let (engine, in_force) = sglang(serde_json::json!({
            "attention_backend": "flashinfer", "enable_flashinfer_allreduce_fusion": true, "tp_size": 8,
            "enable_torch_symm_mem": false, "speculative_algorithm": "NEXTN", "kv_cache_dtype": "auto",
            "internal_states": [
                {"attention_backend": "flashinfer", "enable_flashinfer_allreduce_fusion": false, "tp_size": 8,
                 "enable_torch_symm_mem": true, "speculative_algorithm": "EAGLE", "kv_cache_dtype": "fp8_e4m3"}
            ],
        }));
        let in_force = in_force.unwrap();
        assert_eq!(
            in_force.get("attention_backend").unwrap().source,
            "/server_info internal_states.attention_backend"
        );
        assert_eq!(
            codes(&engine, &in_force),
            [(
                "asked-not-in-force".to_owned(),
                "allreduce_fusion is false and true was asked for".to_owned()
            )]
        );
    }

    #[test]
    fn speculation_that_was_dropped_and_ranks_that_disagree() {
        let (engine, in_force) = sglang(serde_json::json!({
            "speculative_algorithm": "EAGLE3", "attention_backend": "fa3",
            "internal_states": [
                {"speculative_algorithm": null, "attention_backend": "fa3"},
                {"speculative_algorithm": null, "attention_backend": "triton"}
            ],
        }));
        assert_eq!(
            codes(&engine, &in_force.unwrap()),
            [
                (
                    "asked-not-in-force".to_owned(),
                    "attention_backend is fa3, triton and fa3 was asked for".to_owned()
                ),
                (
                    "asked-not-in-force".to_owned(),
                    "speculative_algorithm is none and EAGLE3 was asked for".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn the_command_line_decides_what_was_asked() {
        // The launcher resolved triton; the user asked for fa3.
        let report = serde_json::json!({
            "attention_backend": "triton", "disable_overlap_schedule": true,
            "launch_command": "python -m sglang.launch_server --attention-backend fa3 --mem-fraction-static 0.90",
            "internal_states": [{"attention_backend": "triton", "mem_fraction_static": 0.9, "disable_overlap_schedule": true}],
        });
        let (engine, in_force) = sglang(report.clone());
        let in_force = in_force.unwrap();
        let asked = in_force
            .asked
            .iter()
            .find(|setting| setting.name == "attention_backend")
            .unwrap();
        assert_eq!(
            asked.source,
            "/server_info launch_command argument --attention-backend"
        );
        assert_eq!(codes(&engine, &in_force).len(), 1);

        let (engine, in_force) = sglang(serde_json::json!({
            "attention_backend": "triton",
            "internal_states": [{"attention_backend": "triton"}],
        }));
        assert!(codes(&engine, in_force.as_ref().unwrap()).is_empty());
        let arguments: Vec<String> = ["python3", "--attention-backend", "fa3"]
            .map(str::to_owned)
            .to_vec();
        let joined = with_arguments(&engine, in_force, &arguments, &BTreeMap::new());
        assert_eq!(codes(&engine, &joined).len(), 1);
    }

    #[test]
    fn adjustments_are_told_and_no_more() {
        let (engine, in_force) = sglang(serde_json::json!({
            "speculative_num_draft_tokens": 8,
            "internal_states": [{"speculative_num_draft_tokens": 4}],
        }));
        assert_eq!(codes(&engine, &in_force.unwrap())[0].0, "setting-adjusted");
    }

    #[test]
    fn nothing_reported_is_nothing() {
        let (_, in_force) = sglang(serde_json::json!({"unrelated": 1}));
        assert_eq!(in_force, None);
    }
}
