//! Pure mathematics of measuring and comparing: samples and their percentiles, intervals, tests, sample sizes.
//!
//! Nothing here reads, writes, prints or knows what is being measured. Every formula names its source;
//! `tests/data/generate.py` computes the values that the tests check against.

#![cfg_attr(test, allow(clippy::float_cmp, reason = "some answers are exact"))]

mod dist;
mod estimate;
mod judge;
mod launches;
mod notes;
mod order;
mod power;
mod sample;
mod serial;
mod until;

pub use dist::{chi_squared_quantile, normal_cdf, normal_quantile, t_cdf, t_quantile};
pub use estimate::{Estimate, mean, sd};
pub use judge::{ASSUMED_RESTART_SD, Answer, Judgement, Rules, holm, judge, judge_with_restarts};
pub use launches::launches;
pub use notes::{Drift, drift, mad, outliers};
pub use order::{OrderRanks, percentile_ranks};
pub use power::{
    Arrangement, MAX_UNITS, Plan, UnitRange, guidance, sd_interval, units_for_same, units_that_tell,
};
pub use sample::{PercentileSummary, SampleError, Sorted, Summary, summarise};
pub use serial::{SerialPrior, block_log_ratio, independent, series, trials};
pub use until::{UNTIL_LEVEL, UNTIL_MIN_UNITS, Width, width_reached};
