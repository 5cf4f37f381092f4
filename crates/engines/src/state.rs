//! What an engine says of itself: its reports, and the settings in force.

use std::collections::BTreeMap;

use serde_json::Value;
use shakedown_model::{Engine, InForce};
use shakedown_wire::client::Client;
use shakedown_wire::target::Target;

use crate::catalog::{Catalog, Entry, Report};
use crate::in_force::read_settings;
use crate::mask::mask_json;
use crate::probe::Prober;
use crate::source::Sources;

/// Longest string of a report that is kept, in bytes: chat templates and the like are longer.
const STRING_CAP: usize = 2000;
/// Longest list of a report that is kept.
const LIST_CAP: usize = 200;

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// Settings, where it tells any.
    pub in_force: Option<InForce>,
    /// Its reports by path, secrets masked, overlong strings and lists cut.
    pub reports: BTreeMap<String, Value>,
}

/// Reads the reports of `engine` and the settings that they tell, with the catalogue of this process.
pub fn read_state(client: &Client, target: &Target, engine: &Engine) -> State {
    read_state_with(Catalog::shared(), client, target, engine)
}

/// Reads the reports of `engine` and the settings that they tell.
pub fn read_state_with(catalog: &Catalog, client: &Client, target: &Target, engine: &Engine) -> State {
    let entry = catalog.entry(engine.kind);
    let mut prober = Prober::new(catalog, client, target, None);
    let sources = read_sources(entry, &mut prober);
    let in_force = read_settings(entry, &sources);
    let reports = sources
        .reports
        .into_iter()
        .map(|(id, (path, report))| (path, shown(entry, &id, report)))
        .collect();
    State { in_force, reports }
}

/// All reports, and the metrics page where a setting is read from it.
fn read_sources(entry: &Entry, prober: &mut Prober<'_>) -> Sources {
    let mut sources = Sources::default();
    for report in &entry.report {
        sources.reports.extend(read_report(report, prober));
    }
    let settings = entry.settings.list.iter();
    let wants_page = settings
        .filter_map(|rule| rule.in_force.as_ref())
        .flatten()
        .any(|source| source.starts_with("metric:"));
    if wants_page {
        sources.page = crate::metrics::read_page(entry, prober);
    }
    sources
}

/// The first of a report's paths that answers with JSON.
pub(crate) fn read_report(report: &Report, prober: &mut Prober<'_>) -> Option<(String, (String, Value))> {
    report.paths.iter().find_map(|path| {
        let answer = prober.get(path)?;
        let json = (answer.status == 200).then_some(answer.json.as_ref()?)?;
        Some((report.id.clone(), (path.clone(), json.clone())))
    })
}

/// A report as it is kept.
fn shown(entry: &Entry, id: &str, mut report: Value) -> Value {
    let leave_out = entry
        .report
        .iter()
        .find(|known| known.id == id)
        .map(|known| &known.leave_out[..])
        .unwrap_or_default();
    without(&mut report, leave_out);
    mask_json(&mut report);
    cut(&mut report);
    report
}

/// Members that are left out stand at the top, or at the top of the elements of a list there.
fn without(value: &mut Value, names: &[String]) {
    if let Value::Object(members) = value {
        members.retain(|name, _| !names.contains(name));
        for list in members.values_mut().filter_map(Value::as_array_mut) {
            for element in list.iter_mut().filter_map(Value::as_object_mut) {
                element.retain(|name, _| !names.contains(name));
            }
        }
    }
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > STRING_CAP => {
            let mut end = STRING_CAP;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push('…');
        }
        Value::Array(list) => {
            list.truncate(LIST_CAP);
            list.iter_mut().for_each(cut);
        }
        Value::Object(members) => members.values_mut().for_each(cut),
        _ => {}
    }
}
