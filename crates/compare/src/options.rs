//! What a comparison is made of and how it is judged.

use std::collections::BTreeMap;

use shakedown_model::{Metric, MetricFamily, RunDocument};
use shakedown_stats::Rules;

/// One side: the runs that belong together.
#[derive(Debug, Clone, Default)]
pub struct Side<'a> {
    /// What the user calls it.
    pub label: String,
    /// Its runs, in any order.
    pub runs: Vec<&'a RunDocument>,
    /// Texts of the answers to canary prompts by their hash, where they were kept.
    pub texts: BTreeMap<String, String>,
}

/// How a comparison is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Margin of sameness and confidence of intervals.
    pub rules: Rules,
    /// The metric that decides.
    pub primary: Metric,
    /// The other metrics, in the order in which they are shown; those that not both sides have are left out.
    pub others: Vec<Metric>,
    /// Restart spread (standard deviation of ln) that the user gave; else history's, else the assumed one.
    pub restart_sd: Option<f64>,
    /// One side is a declared variant of the other's model (a quantisation): another model name is no refusal.
    pub variant: bool,
    /// Compare what would be refused.
    pub force: bool,
    /// Settings that can move the metrics, most able first.
    pub movers: Vec<String>,
    /// Version of the tool, for the document.
    pub tool_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            primary: Metric::PRIMARY,
            others: vec![
                Metric::of(MetricFamily::RequestsS),
                Metric::of(MetricFamily::RequestTokS),
                Metric::of(MetricFamily::DecodeTokS),
                Metric::of(MetricFamily::Ttft),
                Metric::percentile(MetricFamily::Ttft, 950),
                Metric::of(MetricFamily::Itl),
                Metric::percentile(MetricFamily::Itl, 990),
                Metric::of(MetricFamily::Tpot),
                Metric::of(MetricFamily::E2e),
                Metric::percentile(MetricFamily::E2e, 950),
            ],
            restart_sd: None,
            variant: false,
            force: false,
            movers: crate::KNOWN_MOVERS.iter().map(|&name| name.to_owned()).collect(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
