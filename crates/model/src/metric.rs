//! Names of the figures that are compared and gated: a family and, where it is a distribution, a statistic of it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Distribution, Metrics};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricFamily {
    /// Output tokens stamped in the window / its length.
    OutputTokS,
    /// Successful requests ended in the window / its length.
    RequestsS,
    /// Output tokens / E2E of one request.
    RequestTokS,
    /// (tokens − 1) / (last token − first token) of one request.
    DecodeTokS,
    /// Time to first token.
    Ttft,
    /// Time to first output that is not reasoning.
    Ttfo,
    /// Gap between tokens.
    Itl,
    /// Gap between chunks.
    Icl,
    /// (last token − first token) / (tokens − 1) of one request.
    Tpot,
    /// To the last token of one request.
    E2e,
    /// Failed requests / ended requests.
    Failed,
}

impl MetricFamily {
    /// Every family, the primary metric first.
    pub const ALL: [Self; 11] = [
        Self::OutputTokS,
        Self::RequestsS,
        Self::RequestTokS,
        Self::DecodeTokS,
        Self::Ttft,
        Self::Ttfo,
        Self::Itl,
        Self::Icl,
        Self::Tpot,
        Self::E2e,
        Self::Failed,
    ];

    /// The word used in documents and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutputTokS => "output_tok_s",
            Self::RequestsS => "requests_s",
            Self::RequestTokS => "request_tok_s",
            Self::DecodeTokS => "decode_tok_s",
            Self::Ttft => "ttft",
            Self::Ttfo => "ttfo",
            Self::Itl => "itl",
            Self::Icl => "icl",
            Self::Tpot => "tpot",
            Self::E2e => "e2e",
            Self::Failed => "failed",
        }
    }

    /// Whether a trial has a distribution of it, so that a statistic must be named.
    pub const fn is_distribution(self) -> bool {
        !matches!(self, Self::OutputTokS | Self::RequestsS | Self::Failed)
    }
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// A percentile, in tenths: 999 is p99.9.
    Percentile(u16),
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetricUnit {
    /// Tokens a second.
    #[serde(rename = "tok/s")]
    TokensPerSecond,
    /// Requests a second.
    #[serde(rename = "req/s")]
    RequestsPerSecond,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// A share, 0 to 1.
    #[serde(rename = "share")]
    Share,
}

/// One figure of a trial, written `output_tok_s`, `ttft_p95`, `tpot_mean`; `failed` is the share of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Metric {
    family: MetricFamily,
    statistic: Option<Statistic>,
}

impl Metric {
    /// The primary metric of a run.
    pub const PRIMARY: Self = Self {
        family: MetricFamily::OutputTokS,
        statistic: None,
    };

    /// A figure that a trial has one of.
    ///
    /// A distribution gets its median.
    pub const fn of(family: MetricFamily) -> Self {
        let statistic = if family.is_distribution() {
            Some(Statistic::Percentile(500))
        } else {
            None
        };
        Self { family, statistic }
    }

    /// A percentile (0 to 100, to a tenth) of a distribution; of a figure that a trial has one of, that figure.
    pub const fn percentile(family: MetricFamily, tenths: u16) -> Self {
        let statistic = if family.is_distribution() {
            Some(Statistic::Percentile(tenths))
        } else {
            None
        };
        Self { family, statistic }
    }

    /// The mean of a distribution; of a figure that a trial has one of, that figure.
    pub const fn mean(family: MetricFamily) -> Self {
        let statistic = if family.is_distribution() {
            Some(Statistic::Mean)
        } else {
            None
        };
        Self { family, statistic }
    }

    /// What is measured.
    pub const fn family(self) -> MetricFamily {
        self.family
    }

    /// Whether more of it is better.
    pub const fn higher_is_better(self) -> bool {
        matches!(
            self.family,
            MetricFamily::OutputTokS
                | MetricFamily::RequestsS
                | MetricFamily::RequestTokS
                | MetricFamily::DecodeTokS
        )
    }

    /// Its unit.
    pub const fn unit(self) -> MetricUnit {
        match self.family {
            MetricFamily::OutputTokS | MetricFamily::RequestTokS | MetricFamily::DecodeTokS => {
                MetricUnit::TokensPerSecond
            }
            MetricFamily::RequestsS => MetricUnit::RequestsPerSecond,
            MetricFamily::Failed => MetricUnit::Share,
            _ => MetricUnit::Milliseconds,
        }
    }

    /// Its value in the figures of a trial, where it was observed. A rate of which only a lower bound is known has
    /// no value.
    pub fn value(self, metrics: &Metrics) -> Option<f64> {
        match self.family {
            MetricFamily::OutputTokS => {
                let rate = metrics.output_tok_s?;
                (rate.low.is_none() || rate.high.is_some()).then_some(rate.value)
            }
            MetricFamily::RequestsS => metrics.requests_s,
            MetricFamily::Failed => {
                let (failed, well) = (metrics.failures(), metrics.successes());
                (failed + well > 0).then(|| failed as f64 / (failed + well) as f64)
            }
            _ => {
                let distribution = self.distribution(metrics)?;
                match self.statistic? {
                    Statistic::Mean => Some(distribution.mean),
                    Statistic::Percentile(tenths) => distribution
                        .percentile(f64::from(tenths) / 10.0)
                        .map(|percentile| percentile.value),
                }
            }
        }
    }

    /// Bounds of its value within one trial, where the trial's own figures give them: the order-statistic interval of a
    /// percentile.
    pub fn bounds(self, metrics: &Metrics) -> Option<(f64, f64)> {
        let Some(Statistic::Percentile(tenths)) = self.statistic else {
            return None;
        };
        let percentile = self.distribution(metrics)?.percentile(f64::from(tenths) / 10.0)?;
        Some((percentile.low?, percentile.high?))
    }

    fn distribution(self, metrics: &Metrics) -> Option<&Distribution> {
        match self.family {
            MetricFamily::RequestTokS => metrics.request_tok_s.as_ref(),
            MetricFamily::DecodeTokS => metrics.decode_tok_s.as_ref(),
            MetricFamily::Ttft => metrics.ttft_ms.as_ref(),
            MetricFamily::Ttfo => metrics.ttfo_ms.as_ref(),
            MetricFamily::Itl => metrics.itl_ms.as_ref(),
            MetricFamily::Icl => metrics.icl_ms.as_ref(),
            MetricFamily::Tpot => metrics.tpot_ms.as_ref(),
            MetricFamily::E2e => metrics.e2e_ms.as_ref(),
            MetricFamily::OutputTokS | MetricFamily::RequestsS | MetricFamily::Failed => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.as_str())?;
        match self.statistic {
            None => Ok(()),
            Some(Statistic::Mean) => f.write_str("_mean"),
            Some(Statistic::Percentile(tenths)) if tenths % 10 == 0 => write!(f, "_p{}", tenths / 10),
            Some(Statistic::Percentile(tenths)) => write!(f, "_p{}.{}", tenths / 10, tenths % 10),
        }
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.to_string()
    }
}

/// A text that names no metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no metric: write {expected}")]
pub struct MetricError {
    text: String,
    expected: &'static str,
}

impl FromStr for Metric {
    type Err = MetricError;

    /// `output_tok_s`, `requests_s` and `failed` stand alone; the others take `_p50`, `_p99.9` or `_mean`, and are the median
    /// without.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |expected| MetricError {
            text: text.chars().take(60).collect(),
            expected,
        };
        for family in MetricFamily::ALL {
            let Some(rest) = text.strip_prefix(family.as_str()) else {
                continue;
            };
            if rest.is_empty() {
                return Ok(Self::of(family));
            }
            if !family.is_distribution() {
                continue;
            }
            if rest == "_mean" {
                return Ok(Self::mean(family));
            }
            if let Some(percentile) = rest.strip_prefix("_p") {
                return tenths(percentile)
                    .map(|tenths| Self::percentile(family, tenths))
                    .ok_or_else(|| wrong("a percentile above p0 and below p100, to a tenth"));
            }
        }
        Err(wrong(
            "output_tok_s, requests_s, failed, or one of request_tok_s, decode_tok_s, ttft, ttfo, itl, icl, tpot, e2e with _p50, _p95, _mean",
        ))
    }
}

impl TryFrom<String> for Metric {
    type Error = MetricError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// "99.9" in tenths, above 0 and below 1000.
fn tenths(text: &str) -> Option<u16> {
    let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(tenth) || whole.len() > 2 || tenth.len() > 1 {
        return None;
    }
    let tenths = whole.parse::<u16>().ok()? * 10 + tenth.parse::<u16>().ok()?;
    (tenths > 0).then_some(tenths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for name in [
            "output_tok_s",
            "requests_s",
            "failed",
            "ttft_p95",
            "itl_p99.9",
            "tpot_mean",
            "e2e_p5",
            "request_tok_s_p50",
            "decode_tok_s_mean",
        ] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        assert_eq!("ttft".parse::<Metric>().unwrap().to_string(), "ttft_p50");
        for wrong in [
            "",
            "ttft_",
            "ttft_p",
            "ttft_p0",
            "ttft_p100",
            "ttft_p9.99",
            "output_tok_s_p50",
            "failed_mean",
            "ttft_p+9",
        ] {
            assert!(wrong.parse::<Metric>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_with_only_a_lower_bound_has_no_value() {
        let rate = |low, high| Metrics {
            output_tok_s: Some(crate::Rate {
                value: 5.0,
                low,
                high,
            }),
            ..Metrics::default()
        };
        assert_eq!(Metric::PRIMARY.value(&rate(None, None)), Some(5.0));
        assert_eq!(Metric::PRIMARY.value(&rate(Some(4.0), Some(6.0))), Some(5.0));
        assert_eq!(Metric::PRIMARY.value(&rate(Some(5.0), None)), None);
    }
}
