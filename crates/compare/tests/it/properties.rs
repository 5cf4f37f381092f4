//! Whatever a document holds: no panic, and A beside B is B beside A the other way round.

use proptest::prelude::*;
use shakedown_compare::{Options, compare, gate};
use shakedown_model::{Conclusion, GateLimit, OnUnknown, Rate, RunDocument};

use crate::sample::{run, side};

fn runs(name: &str, launches: &[Vec<f64>]) -> Vec<RunDocument> {
    launches
        .iter()
        .enumerate()
        .map(|(number, rates)| run(&format!("{name}{number}"), &format!("l{name}{number}"), rates))
        .collect()
}

fn rates(value: impl Strategy<Value = f64>) -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(value, 1..7), 1..5)
}

proptest! {
    #[test]
    fn sides_change_places(a in rates(50.0f64..150.0), b in rates(50.0f64..150.0)) {
        let (a, b) = (runs("a", &a), runs("b", &b));
        let there = compare(&side("A", &a), &side("B", &b), &[], &Options::default()).unwrap();
        let back = compare(&side("B", &b), &side("A", &a), &[], &Options::default()).unwrap();
        let mirrored = match there.conclusion {
            Conclusion::Faster => Conclusion::Slower,
            Conclusion::Slower => Conclusion::Faster,
            other => other,
        };
        prop_assert_eq!(back.conclusion, mirrored);
        let (one, other) = (there.primary().unwrap(), back.primary().unwrap());
        prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
        if let (Some(low), Some(high)) = (one.low, one.high) {
            prop_assert!(low <= one.ratio && one.ratio <= high);
            prop_assert!((low * other.high.unwrap() - 1.0).abs() < 1e-6);
        }
        if let Some(more) = one.more_needed {
            prop_assert!(more.low.is_none_or(|low| low >= 1));
        }
    }

    #[test]
    fn odd_figures_do_no_harm(
        a in rates(prop::num::f64::ANY),
        b in rates(prop::num::f64::ANY),
        same in any::<bool>(),
        lower_bound in any::<bool>(),
    ) {
        let (a, mut b) = (runs("a", &a), runs("b", &b));
        if same {
            for run in &mut b {
 run.launch.id = Some("la0".into());
 }
        }
        if lower_bound {
            b[0].trials[0].metrics.output_tok_s = Some(Rate { value: 5.0, low: Some(5.0), high: None });
        }
        let _ = compare(&side("A", &a), &side("B", &b), &[], &Options::default());
        let limits = [
            GateLimit::max_regress("output_tok_s=3%").unwrap(),
            GateLimit::max("tpot_p99=20ms").unwrap(),
        ];
        let _ = gate(Some(&side("A", &a)), &side("B", &b), &[], &limits, OnUnknown::Report, &Options::default());
    }
}
