//! Pure mathematics of measuring and comparing: samples and their percentiles, intervals, tests, sample sizes.
//!
//! Nothing here reads, writes, prints or knows what is being measured. Every formula names its source;
//! `tests/data/generate.py` computes the values that the tests check against.

#![cfg_attr(test, allow(clippy::float_cmp, reason = "some answers are exact"))]

mod dist;
mod order;
mod sample;

pub use dist::{chi_squared_quantile, normal_cdf, normal_quantile, t_cdf, t_quantile};
pub use order::{OrderRanks, percentile_ranks};
pub use sample::{PercentileSummary, SampleError, Sorted, Summary, summarise};
