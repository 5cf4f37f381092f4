use proptest::prelude::*;
use serde_json::Value;
use shakedown_stats::{Sorted, percentile_ranks};

use crate::data::{cases, close, numbers};

#[test]
fn agree_with_numpy_and_scipy() {
    let data = cases(include_str!("../data/samples.json"));
    let samples = data.as_array().unwrap();
    assert_eq!(samples.len(), 10);
    for case in samples {
        let values = numbers(&case["values"]);
        let n = values.len();
        let sample = Sorted::new(values).unwrap();
        close(sample.mean(), case["mean"].as_f64().unwrap(), 1e-13, "mean");
        match (sample.sd(), case["sd"].as_f64()) {
            (Some(ours), Some(theirs)) => close(ours, theirs, 1e-12, "sd"),
            (ours, theirs) => assert_eq!(ours, theirs, "sd of {n}"),
        }
        for row in case["percentiles"].as_array().unwrap() {
            let p = row[0].as_f64().unwrap();
            // To the last bit but one: the same formula, its rounding included.
            close(
                sample.percentile(p),
                row[1].as_f64().unwrap(),
                3e-16,
                &format!("p{p} of {n}"),
            );
            assert_eq!(
                sample.percentile_interval(p, 0.95),
                (row[2].as_f64(), row[3].as_f64()),
                "interval of p{p} of {n}"
            );
        }
    }
}

#[test]
fn ranks_agree_with_scipy_up_to_fifty_million() {
    let data = cases(include_str!("../data/order_ranks.json"));
    let rows = data.as_array().unwrap();
    assert_eq!(rows.len(), 60);
    for row in rows {
        let (n, p, level) = (
            row[0].as_u64().unwrap(),
            row[1].as_f64().unwrap(),
            row[2].as_f64().unwrap(),
        );
        let ours = percentile_ranks(n, p, level);
        assert_eq!(
            (ours.low, ours.high),
            (row[3].as_u64(), row[4].as_u64()),
            "{}",
            Value::to_string(row)
        );
    }
}

proptest! {
    #[test]
    fn counts_answer_as_the_sample_written_out(
        pairs in prop::collection::vec((-1e6f64..1e6, 0u64..40), 1..60),
        q in 0.0f64..=1.0,
        p in 0.1f64..99.9,
    ) {
        let written: Vec<f64> =
            pairs.iter().flat_map(|&(value, count)| (0..count).map(move |_| value)).collect();
        let counted = Sorted::weighted(pairs);
        if written.is_empty() {
            prop_assert!(counted.is_err());
            return Ok(());
        }
        let (counted, written) = (counted.unwrap(), Sorted::new(written).unwrap());
        prop_assert_eq!(counted.count(), written.count());
        prop_assert_eq!(counted.quantile(q), written.quantile(q));
        prop_assert_eq!(counted.percentile_interval(p, 0.95), written.percentile_interval(p, 0.95));
        prop_assert_eq!(counted.can_report(p), written.can_report(p));
        prop_assert_eq!((counted.min(), counted.max()), (written.min(), written.max()));
        prop_assert!((counted.mean() - written.mean()).abs() <= 1e-9);
        match (counted.sd(), written.sd()) {
            (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 1e-12 * b.max(1e-3), "{} {}", a, b),
            (a, b) => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn quantiles_ascend_within_the_sample(
        values in prop::collection::vec(-1e300f64..1e300, 1..50),
        q in 0.0f64..=1.0,
        r in 0.0f64..=1.0,
    ) {
        let sample = Sorted::new(values).unwrap();
        let (low, high) = (sample.quantile(q.min(r)), sample.quantile(q.max(r)));
        prop_assert!(sample.min() <= low && low <= high && high <= sample.max());
    }

    #[test]
    fn intervals_hold_the_order_statistics_around_the_percentile(n in 1u64..3000, p in 0.5f64..99.5) {
        let (wide, narrow) = (percentile_ranks(n, p, 0.99), percentile_ranks(n, p, 0.9));
        if let (Some(low), Some(high)) = (narrow.low, narrow.high) {
            prop_assert!(1 <= low && low < high && high <= n);
        }
        if let Some(low) = wide.low {
            prop_assert!(narrow.low.is_some_and(|narrow| low <= narrow));
        }
        if let Some(high) = wide.high {
            prop_assert!(narrow.high.is_some_and(|narrow| narrow <= high));
        }
    }
}
