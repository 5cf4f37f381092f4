//! The document of a gate: limits, and whether a run keeps them. Schema `shakedown.gate/1`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Comparison, Exit, Metric, MetricUnit};

/// Name and version of the gate document's schema.
pub const GATE_SCHEMA: &str = "shakedown.gate/1";

/// What a metric must keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "limit")]
pub enum GateLimit {
    /// It may be worse than the baseline by at most this share (0.03 is 3%).
    MaxRegress {
        /// The metric.
        metric: Metric,
        /// The share.
        share: f64,
    },
    /// It may be at most this much, in the metric's unit.
    Max {
        /// The metric.
        metric: Metric,
        /// The value.
        most: f64,
    },
}

impl GateLimit {
    /// The metric.
    pub const fn metric(&self) -> Metric {
        match self {
            Self::MaxRegress { metric, .. } | Self::Max { metric, .. } => *metric,
        }
    }

    /// Reads `METRIC=PERCENT`, as `--max-regress` takes it: `output_tok_s=3%`.
    pub fn max_regress(text: &str) -> Result<Self, LimitError> {
        let (metric, value) = split(text)?;
        let percent: f64 =
            positive(value.strip_suffix('%').unwrap_or(value)).ok_or_else(|| LimitError::Value {
                value: value.chars().take(40).collect(),
                expected: "a percentage, such as 3%",
            })?;
        if metric.unit() == MetricUnit::Share {
            return Err(LimitError::Value {
                value: metric.to_string(),
                expected: "a metric with a ratio; limit the share of failed requests with --max failed=1%",
            });
        }
        Ok(Self::MaxRegress {
            metric,
            share: percent / 100.0,
        })
    }

    /// Reads `METRIC=VALUE`, as `--max` takes it: `ttft_p95=250ms`, `e2e_p99=2.5s`, `failed=1%`.
    pub fn max(text: &str) -> Result<Self, LimitError> {
        let (metric, value) = split(text)?;
        let expected = match metric.unit() {
            MetricUnit::Milliseconds => "a time, such as 250ms or 1.5s",
            MetricUnit::Share => "a percentage, such as 1%",
            MetricUnit::TokensPerSecond | MetricUnit::RequestsPerSecond => "a number",
        };
        let wrong = || LimitError::Value {
            value: value.chars().take(40).collect(),
            expected,
        };
        let number = |suffix: &str| value.strip_suffix(suffix).and_then(positive);
        let value = match metric.unit() {
            MetricUnit::Milliseconds => number("ms")
                .or_else(|| number("s").map(|seconds| seconds * 1000.0))
                .or_else(|| positive(value)),
            MetricUnit::Share => number("%").map(|percent| percent / 100.0),
            MetricUnit::TokensPerSecond | MetricUnit::RequestsPerSecond => positive(value),
        };
        Ok(Self::Max {
            metric,
            most: value.ok_or_else(wrong)?,
        })
    }
}

/// Why a text is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// It has no `=`.
    #[error("\"{text}\" is no limit: write METRIC=VALUE")]
    Form {
        /// The text.
        text: String,
    },
    /// The part before it is no metric.
    #[error(transparent)]
    Metric(#[from] crate::MetricError),
    /// The part behind it does not fit the metric.
    #[error("\"{value}\" is no limit here: write {expected}")]
    Value {
        /// The part.
        value: String,
        /// What fits.
        expected: &'static str,
    },
}

fn split(text: &str) -> Result<(Metric, &str), LimitError> {
    let (metric, value) = text.split_once('=').ok_or_else(|| LimitError::Form {
        text: text.chars().take(60).collect(),
    })?;
    Ok((Metric::from_str(metric.trim())?, value.trim()))
}

fn positive(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Whether a limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// It is.
    Pass,
    /// It is not.
    Fail,
    /// The figures do not say.
    Unknown,
}

impl fmt::Display for GateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
        })
    }
}

/// What a gate does where the figures do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Say so (exit 5).
    #[default]
    Report,
    /// Count it as failed.
    Fail,
    /// Count it as passed; the document still says that it is unknown.
    Pass,
}

/// One limit and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateCheck {
    /// The limit.
    #[serde(flatten)]
    pub limit: GateLimit,
    /// The figure that it is about: the share by which the metric is worse than the baseline (negative: better), or the
    /// metric's own value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval: 95% sure that it is not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval: 95% sure that it is not more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether it is kept.
    pub verdict: GateVerdict,
    /// Why, in one sentence.
    pub why: String,
}

/// Limits and what became of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// [`GATE_SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Whether all limits are kept: one that fails decides, else one that is unknown.
    pub verdict: GateVerdict,
    /// What the user wants done where the figures do not say.
    pub on_unknown: OnUnknown,
    /// The limits, in the order given.
    pub checks: Vec<GateCheck>,
    /// The comparison with the baseline, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Box<Comparison>>,
}

impl GateResult {
    /// How the process ends.
    pub const fn exit(&self) -> Exit {
        match (self.verdict, self.on_unknown) {
            (GateVerdict::Pass, _) | (GateVerdict::Unknown, OnUnknown::Pass) => Exit::Yes,
            (GateVerdict::Fail, _) | (GateVerdict::Unknown, OnUnknown::Fail) => Exit::No,
            (GateVerdict::Unknown, OnUnknown::Report) => Exit::NotEnoughEvidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let metric = |name: &str| name.parse::<Metric>().unwrap();
        assert_eq!(
            GateLimit::max_regress("output_tok_s=3%"),
            Ok(GateLimit::MaxRegress {
                metric: metric("output_tok_s"),
                share: 0.03
            })
        );
        for (text, value) in [
            ("ttft_p95=250ms", 250.0),
            ("ttft_p95=0.25s", 250.0),
            ("ttft_p95 = 250", 250.0),
        ] {
            assert_eq!(
                GateLimit::max(text),
                Ok(GateLimit::Max {
                    metric: metric("ttft_p95"),
                    most: value
                })
            );
        }
        assert_eq!(
            GateLimit::max("failed=1%"),
            Ok(GateLimit::Max {
                metric: metric("failed"),
                most: 0.01
            })
        );
        for wrong in [
            "ttft_p95",
            "ttft_p95=",
            "ttft_p95=-1ms",
            "ttft_p95=NaN",
            "ttft=3%",
            "failed=1",
            "speed=3",
        ] {
            assert!(GateLimit::max(wrong).is_err(), "{wrong}");
        }
        for wrong in ["output_tok_s=inf%", "output_tok_s=fast", "failed=3%", "=3%"] {
            assert!(GateLimit::max_regress(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_never_passes_unasked() {
        let exit = |verdict, on_unknown| {
            GateResult {
                schema: GATE_SCHEMA.into(),
                tool_version: "0".into(),
                verdict,
                on_unknown,
                checks: Vec::new(),
                comparison: None,
            }
            .exit()
        };
        assert_eq!(
            exit(GateVerdict::Unknown, OnUnknown::default()),
            Exit::NotEnoughEvidence
        );
        assert_eq!(exit(GateVerdict::Unknown, OnUnknown::Fail), Exit::No);
        assert_eq!(exit(GateVerdict::Unknown, OnUnknown::Pass), Exit::Yes);
        assert_eq!(exit(GateVerdict::Fail, OnUnknown::Pass), Exit::No);
        assert_eq!(exit(GateVerdict::Pass, OnUnknown::Fail), Exit::Yes);
    }
}
