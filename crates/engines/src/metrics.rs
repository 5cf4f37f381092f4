//! An engine's metrics under our names. What each name means is written here, once:
//!
//! `*_total` count since the server's start. `requests_running` and `requests_waiting` are now; `kv_usage` is a share
//! of 1. `prompt_tokens_total` includes cached tokens, `prompt_tokens_computed_total` does not. The names of
//! speculation (`spec_*`) are defined in `acceptance`.

use std::collections::BTreeMap;

use shakedown_model::{Engine, EngineMetrics};
use shakedown_wire::client::Client;
use shakedown_wire::prometheus::{self, Exposition, Sample};
use shakedown_wire::target::Target;

use crate::catalog::{Catalog, Entry, Fold, MetricRule, Metrics};
use crate::probe::Prober;
use crate::source::Sources;
use crate::state::read_report;
use crate::version;

/// Reads the metrics of `engine` with the catalogue of this process; absent where it has none to read.
///
/// One GET, fit to be repeated while a run is under way. `at_us` is left at 0 for the caller to set.
pub fn read_metrics(client: &Client, target: &Target, engine: &Engine) -> Option<EngineMetrics> {
    read_metrics_with(Catalog::shared(), client, target, engine)
}

/// Reads the metrics of `engine`: see [`read_metrics`].
pub fn read_metrics_with(
    catalog: &Catalog,
    client: &Client,
    target: &Target,
    engine: &Engine,
) -> Option<EngineMetrics> {
    let entry = catalog.entry(engine.kind);
    let mut prober = Prober::new(catalog, client, target, None);
    let (_, page) = read_page(entry, &mut prober)?;
    let values = from_page(&entry.metrics, engine.version.as_deref(), &page);
    (!values.is_empty()).then_some(EngineMetrics { at_us: 0, values })
}

/// The same with the figures that only the engine's reports hold (SGLang's average acceptance since its start).
///
/// For before and after a run: a report may cost the engine more than a page of metrics.
pub fn read_metrics_at_rest(client: &Client, target: &Target, engine: &Engine) -> Option<EngineMetrics> {
    read_metrics_at_rest_with(Catalog::shared(), client, target, engine)
}

/// The same with the figures that only the engine's reports hold: see [`read_metrics_at_rest`].
pub fn read_metrics_at_rest_with(
    catalog: &Catalog,
    client: &Client,
    target: &Target,
    engine: &Engine,
) -> Option<EngineMetrics> {
    let entry = catalog.entry(engine.kind);
    let mut prober = Prober::new(catalog, client, target, None);
    let mut values = read_page(entry, &mut prober)
        .map(|(_, page)| from_page(&entry.metrics, engine.version.as_deref(), &page))
        .unwrap_or_default();
    values.extend(from_reports(entry, &mut prober));
    (!values.is_empty()).then_some(EngineMetrics { at_us: 0, values })
}

/// The first of the engine's paths that answers with Prometheus text.
pub(crate) fn read_page(entry: &Entry, prober: &mut Prober<'_>) -> Option<(String, Exposition)> {
    entry.metrics.paths.iter().find_map(|path| {
        let answer = prober.get(path)?;
        let page = (answer.status == 200).then(|| prometheus::parse(&answer.text))?;
        (!page.samples().is_empty()).then(|| (path.clone(), page))
    })
}

/// The values of a page, by our names. `version` is the engine's, where it is known.
pub fn from_page(metrics: &Metrics, version: Option<&str>, page: &Exposition) -> BTreeMap<String, f64> {
    metrics
        .list
        .iter()
        .filter(|rule| version::within(&rule.versions, version.unwrap_or_default()))
        .filter_map(|rule| {
            let value = rule
                .from
                .iter()
                .find_map(|name| value_of(metrics, rule, page.named(name)))?;
            Some((rule.name.clone(), value))
        })
        .collect()
}

fn value_of<'a>(
    metrics: &Metrics,
    rule: &MetricRule,
    samples: impl Iterator<Item = &'a Sample>,
) -> Option<f64> {
    // Samples that differ in nothing but the labels that number copies are one figure: the largest, for a rank that
    // takes no part reports 0.
    let mut figures: BTreeMap<Vec<(&str, &str)>, f64> = BTreeMap::new();
    for sample in samples {
        let fits = rule
            .only
            .iter()
            .all(|(label, value)| sample.label(label) == Some(value));
        if !fits || !sample.value.is_finite() {
            continue;
        }
        let key = sample
            .labels
            .iter()
            .filter(|(label, _)| !metrics.copies.contains(label))
            .map(|(label, value)| (label.as_str(), value.as_str()))
            .collect();
        figures
            .entry(key)
            .and_modify(|figure| *figure = figure.max(sample.value))
            .or_insert(sample.value);
    }
    fold(rule.fold, &figures.into_values().collect::<Vec<_>>())
}

fn fold(how: Fold, values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(match how {
        Fold::Sum => values.iter().sum(),
        Fold::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Fold::Mean => values.iter().sum::<f64>() / values.len() as f64,
    })
}

fn from_reports(entry: &Entry, prober: &mut Prober<'_>) -> BTreeMap<String, f64> {
    let mut sources = Sources::default();
    let mut values = BTreeMap::new();
    for rule in &entry.metrics.list {
        for source in rule.from.iter().filter(|source| source.contains('#')) {
            let id = source.split('#').next().unwrap_or_default();
            if !sources.reports.contains_key(id)
                && let Some(report) = entry.report.iter().find(|report| report.id == id)
            {
                sources.reports.extend(read_report(report, prober));
            }
            let found: Vec<f64> = sources
                .read(source)
                .iter()
                .filter_map(|read| read.value.as_f64())
                .filter(|value| value.is_finite())
                .collect();
            if let Some(value) = fold(rule.fold, &found) {
                values.entry(rule.name.clone()).or_insert(value);
            }
        }
    }
    values
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small whole numbers and halves are exact")]
mod tests {
    use shakedown_model::EngineKind;

    use super::*;

    fn values(kind: EngineKind, version: &str, page: &str) -> BTreeMap<String, f64> {
        let catalog = Catalog::built_in();
        from_page(
            &catalog.entry(kind).metrics,
            Some(version),
            &prometheus::parse(page),
        )
    }

    #[test]
    fn copies_are_not_added_and_ranks_of_data_parallelism_are() {
        let page = "
sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 3
sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 3
sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} 4
sglang:token_usage{dp_rank=\"0\",tp_rank=\"0\"} 0.25
sglang:token_usage{dp_rank=\"1\",tp_rank=\"2\"} 0.5
sglang:prompt_tokens_total{is_streaming=\"true\"} 10
sglang:prompt_tokens_total{is_streaming=\"false\"} 5
sglang:spec_accept_length{dp_rank=\"0\",tp_rank=\"0\"} 3
sglang:spec_accept_length{dp_rank=\"1\",tp_rank=\"2\"} 2
sglang:spec_accept_rate{tp_rank=\"0\"} 0.5
sglang:gen_throughput NaN
";
        let old = values(EngineKind::Sglang, "0.5.9", page);
        assert_eq!(old["requests_running"], 7.0);
        assert_eq!(old["kv_usage"], 0.5);
        assert_eq!(old["prompt_tokens_total"], 15.0);
        assert_eq!(old["spec_accept_length"], 2.5);
        assert_eq!(old["spec_accept_rate_with_root"], 0.5);
        assert!(!old.contains_key("spec_accept_rate") && !old.contains_key("generation_tokens_per_second"));
        let new = values(EngineKind::Sglang, "0.5.23", page);
        assert_eq!(new["spec_accept_rate"], 0.5);
        assert!(!new.contains_key("spec_accept_rate_with_root"));
        // Between the two definitions, or without a version, the rate says nothing.
        for version in ["0.5.11", ""] {
            let unknown = values(EngineKind::Sglang, version, page);
            assert!(
                !unknown.keys().any(|name| name.starts_with("spec_accept_rate")),
                "{version}"
            );
        }
    }

    #[test]
    fn later_names_and_labels() {
        let page = "
vllm:gpu_cache_usage_perc{engine=\"0\"} 0.1
vllm:request_success_total{finished_reason=\"stop\"} 2
vllm:request_success_total{finished_reason=\"length\"} 3
vllm:engine_sleep_state{sleep_state=\"awake\"} 0
vllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} 1
";
        let values = values(EngineKind::Vllm, "0.8", page);
        assert_eq!(values["kv_usage"], 0.1);
        assert_eq!(values["requests_total"], 5.0);
        assert_eq!(values["asleep"], 1.0);
    }
}
