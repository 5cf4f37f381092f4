//! Whether an entry is sound: patterns compile, samples behave, every probe is on the allow-list.

use super::entry::{Entry, ProcessField, SampleReply};
use super::reply::{ReplyRule, ReplyView};
use super::{CatalogError, ProcessRule};
use crate::command::Command;
use crate::version;

/// What can be checked of a user's file, which may hold only a part of an entry.
pub(super) fn check(entry: &Entry) -> Result<(), CatalogError> {
    for rule in &entry.process {
        rule.pattern.check()?;
        samples_of_process(entry, rule)?;
    }
    for rule in &entry.identity {
        samples_of_reply(entry, &rule.path, &rule.reply, None, &rule.matches, &rule.differs)?;
    }
    for rule in &entry.state {
        samples_of_reply(
            entry,
            &rule.path,
            &rule.reply,
            rule.within_ms,
            &rule.matches,
            &rule.differs,
        )?;
    }
    let listen = entry.listen.iter().map(|listen| &listen.versions);
    for range in listen.chain(entry.metrics.list.iter().map(|rule| &rule.versions)) {
        if !version::check(range) {
            return Err(fault(entry, format!("the version range {range} cannot be read")));
        }
    }
    for path in &entry.probes.allow {
        if entry.probes.never.contains(path) {
            return Err(fault(entry, format!("{path} is both allowed and forbidden")));
        }
    }
    for flag in &entry.flag {
        if flag.names.is_empty() && flag.after.is_empty() && flag.env.is_empty() {
            return Err(fault(entry, format!("nothing asks for {}", flag.setting)));
        }
    }
    Ok(())
}

/// What holds for a whole entry.
pub(super) fn check_whole(entry: &Entry) -> Result<(), CatalogError> {
    check(entry)?;
    let asked = entry
        .identity
        .iter()
        .map(|rule| &rule.path)
        .chain(entry.state.iter().map(|rule| &rule.path))
        .chain(entry.version.iter().map(|source| &source.path))
        .chain(entry.report.iter().flat_map(|report| &report.paths))
        .chain(&entry.metrics.paths);
    for path in asked {
        if !entry.probes.allow.contains(path) {
            return Err(fault(
                entry,
                format!("{path} is asked for and not on its allow-list"),
            ));
        }
    }
    for source in entry.settings.list.iter().flat_map(|rule| {
        let given = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        [given(&rule.in_force), given(&rule.asked)].concat()
    }) {
        known_source(entry, &source)?;
    }
    for source in entry.metrics.list.iter().flat_map(|rule| &rule.from) {
        if source.contains('#') {
            known_source(entry, source)?;
        }
    }
    Ok(())
}

/// A source names a report that exists, or a metric.
fn known_source(entry: &Entry, source: &str) -> Result<(), CatalogError> {
    let known = source
        .strip_prefix("metric:")
        .is_some_and(|rest| rest.contains('{'))
        || source
            .split_once('#')
            .is_some_and(|(report, _)| entry.report.iter().any(|known| known.id == report));
    if known {
        Ok(())
    } else {
        Err(fault(entry, format!("{source} names no report of it")))
    }
}

fn samples_of_process(entry: &Entry, rule: &ProcessRule) -> Result<(), CatalogError> {
    if rule.matches.is_empty() || rule.differs.is_empty() {
        return Err(fault(entry, format!("{} lacks samples", rule.pattern.regex)));
    }
    let matched = |sample: &String| match rule.field {
        ProcessField::Command => {
            let words: Vec<String> = sample.split_whitespace().map(str::to_owned).collect();
            rule.pattern.is_match(Command::of(&words).text())
        }
        ProcessField::Title | ProcessField::Executable => rule.pattern.is_match(sample),
    };
    let wrong = |sample: &String, should: &str| {
        Err(fault(entry, format!("{} {should} {sample}", rule.pattern.regex)))
    };
    if let Some(sample) = rule.matches.iter().find(|sample| !matched(sample)) {
        return wrong(sample, "should match");
    }
    if let Some(sample) = rule.differs.iter().find(|sample| matched(sample)) {
        return wrong(sample, "should not match");
    }
    Ok(())
}

fn samples_of_reply(
    entry: &Entry,
    path: &str,
    rule: &ReplyRule,
    within_ms: Option<u64>,
    matches: &[SampleReply],
    differs: &[SampleReply],
) -> Result<(), CatalogError> {
    if matches.is_empty() || differs.is_empty() {
        return Err(fault(entry, format!("the rule for {path} lacks samples")));
    }
    let matched = |sample: &SampleReply| {
        let json = serde_json::from_str(&sample.body).ok();
        let reply = ReplyView {
            status: sample.status,
            headers: &sample.headers,
            text: &sample.body,
            json: json.as_ref(),
        };
        rule.holds(&reply) && within_ms.is_none_or(|most| sample.took_ms <= most)
    };
    if let Some(sample) = matches.iter().find(|sample| !matched(sample)) {
        return Err(fault(
            entry,
            format!("the rule for {path} should match {sample:?}"),
        ));
    }
    if let Some(sample) = differs.iter().find(|sample| matched(sample)) {
        return Err(fault(
            entry,
            format!("the rule for {path} should not match {sample:?}"),
        ));
    }
    Ok(())
}

fn fault(entry: &Entry, fault: String) -> CatalogError {
    CatalogError::Entry {
        engine: entry.kind.as_str(),
        fault,
    }
}
