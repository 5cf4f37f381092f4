use shakedown_stats::{
    Answer, Arrangement, Plan, Rules, drift, guidance, holm, independent, judge, judge_with_restarts,
    launches, mad, outliers, sd_interval, trials, units_for_same, units_that_tell,
};

use crate::data::{cases, close, numbers};

#[test]
fn two_sides_agree_with_scipy_and_statsmodels() {
    let data = cases(include_str!("../data/two_sides.json"));
    let rows = data.as_array().unwrap();
    let mut welch = 0;
    let mut same = 0;
    for row in rows {
        let (a, b) = (numbers(&row["a"]), numbers(&row["b"]));
        let estimate = launches(&a, &b).unwrap();
        close(estimate.df, row["df"].as_f64().unwrap(), 1e-9, "df");
        close(estimate.p_value(), row["p"].as_f64().unwrap(), 1e-9, "p");
        let (interval, theirs) = (estimate.interval(0.95), numbers(&row["interval"]));
        close(interval.0, theirs[0], 1e-8, "low");
        close(interval.1, theirs[1], 1e-8, "high");
        if let Some(theirs) = row["same"].as_bool() {
            let answer = judge(&estimate, &Rules::default(), None).answer;
            assert_eq!(answer == Answer::Same, theirs, "{row}");
            same += u32::from(theirs);
        }
        welch += u32::from(row["welch"].as_bool().unwrap());
    }
    assert!(rows.len() == 33 && welch >= 3 && same >= 5, "{welch} {same}");
}

#[test]
fn one_sample_agrees_with_scipy() {
    let data = cases(include_str!("../data/one_sample.json"));
    for row in data.as_array().unwrap() {
        let estimate = independent(&numbers(&row["values"])).unwrap();
        close(estimate.p_value(), row["p"].as_f64().unwrap(), 1e-9, "p");
        let (interval, theirs) = (estimate.interval(0.95), numbers(&row["interval"]));
        close(interval.0, theirs[0], 1e-9, "low");
        close(interval.1, theirs[1], 1e-9, "high");
    }
}

#[test]
fn serial_inflation_agrees_with_the_correlation_matrix() {
    let data = cases(include_str!("../data/serial.json"));
    for row in data.as_array().unwrap() {
        let estimate = trials(&numbers(&row["a"]), &numbers(&row["b"])).unwrap();
        for (ours, name) in [
            (estimate.difference, "difference"),
            (estimate.se, "se"),
            (estimate.df, "df"),
        ] {
            close(ours, row[name].as_f64().unwrap(), 1e-9, name);
        }
    }
}

#[test]
fn power_agrees_with_the_noncentral_t() {
    let data = cases(include_str!("../data/power.json"));
    let rows = data.as_array().unwrap();
    assert!(rows.len() > 50);
    let rules = Rules {
        margin: 0.01,
        ..Rules::default()
    };
    for row in rows {
        let plan = Plan {
            arrangement: if row[0].as_bool().unwrap() {
                Arrangement::Blocks
            } else {
                Arrangement::TwoSides
            },
            units: u32::try_from(row[1].as_u64().unwrap()).unwrap(),
            difference: row[2].as_f64().unwrap(),
            sd: row[3].as_f64().unwrap(),
        };
        let (found, same) = (row[4].as_f64().unwrap(), row[5].as_f64().unwrap());
        assert!(
            (plan.power(&rules) - found).abs() < 1e-5,
            "{row} {}",
            plan.power(&rules)
        );
        assert!(
            (plan.power_same(&rules) - same).abs() < 1e-4,
            "{row} {}",
            plan.power_same(&rules)
        );
        assert!(plan.tells(&rules) >= plan.power_same(&rules) - 1e-9);
    }
}

#[test]
fn what_it_costs() {
    let rules = Rules::default();
    let power = |units, sd| {
        Plan {
            arrangement: Arrangement::TwoSides,
            units,
            difference: 0.035,
            sd,
        }
        .power(&rules)
    };
    for (units, expected) in [(3, 0.88), (4, 0.98), (5, 0.997)] {
        assert!(
            (power(units, 0.01) - expected).abs() < 0.015,
            "{units}: {}",
            power(units, 0.01)
        );
    }
    // A launch effect of 1% and five trials of 1%.
    let launch = (1e-4f64 + 1e-4 / 5.0).sqrt();
    for (units, expected) in [(2, 0.41), (3, 0.82), (4, 0.96)] {
        assert!(
            (power(units, launch) - expected).abs() < 0.015,
            "{units}: {}",
            power(units, launch)
        );
    }
    let rules = Rules {
        margin: 0.01,
        ..rules
    };
    let same: Vec<_> = [0.003, 0.005, 0.01, 0.02]
        .iter()
        .map(|&sd| units_for_same(Arrangement::TwoSides, sd, &rules))
        .collect();
    assert_eq!(same, [Some(3), Some(6), Some(19), Some(70)]);
}

#[test]
fn holm_agrees_with_statsmodels() {
    let data = cases(include_str!("../data/holm.json"));
    for row in data.as_array().unwrap() {
        for (ours, theirs) in holm(&numbers(&row[0])).into_iter().zip(numbers(&row[1])) {
            close(ours, theirs, 1e-12, "adjusted p");
        }
    }
    assert!(holm(&[]).is_empty());
}

#[test]
fn notes_agree_with_scipy() {
    let data = cases(include_str!("../data/notes.json"));
    for row in data.as_array().unwrap() {
        let values = numbers(&row["values"]);
        close(mad(&values).unwrap(), row["mad"].as_f64().unwrap(), 1e-5, "mad");
        let drift = drift(&values).unwrap();
        close(drift.total, row["total"].as_f64().unwrap(), 1e-7, "total");
        close(drift.p, row["p"].as_f64().unwrap(), 1e-7, "p");
    }
}

#[test]
fn sd_intervals_agree_with_scipy() {
    let data = cases(include_str!("../data/sd_intervals.json"));
    for row in data.as_array().unwrap() {
        let row = numbers(row);
        let (low, high) = sd_interval(row[0], row[1], row[2]);
        close(low, row[3], 1e-8, "low");
        close(high, row[4], 1e-8, "high");
    }
}

#[test]
fn outliers_are_found_and_quiet_series_have_none() {
    assert_eq!(outliers(&[4.40, 4.41, 4.40, 4.39, 4.10, 4.41], 0.01), [4]);
    // Far in spreads, but a tenth of a per cent.
    assert!(outliers(&[4.4, 4.400_01, 4.4, 4.399_99, 4.401], 0.01).is_empty());
    assert!(outliers(&[1.0, 1.0, 1.0, 9.0], 0.01).is_empty());
}

#[test]
fn two_launches_are_capped_by_the_restart_spread() {
    let (a, b) = (
        [4.400, 4.402, 4.399, 4.401, 4.400],
        [4.366, 4.364, 4.365, 4.367, 4.366],
    );
    let estimate = trials(&a, &b).unwrap();
    let rules = Rules::default();
    // 3.5% between two launches: plain as the trials go, but restarts alone may do it.
    assert_eq!(judge(&estimate, &rules, None).answer, Answer::Lower);
    let judgement = judge_with_restarts(&estimate, &rules, None, 0.015);
    assert_eq!((judgement.answer, judgement.capped), (Answer::CannotTell, true));
    // A server whose history says 0.5% is another matter.
    let judgement = judge_with_restarts(&estimate, &rules, None, 0.005);
    assert_eq!((judgement.answer, judgement.capped), (Answer::Lower, false));
    // With the assumed spread two launches never are the same; with a small one they can be.
    let estimate = trials(&a, &a).unwrap();
    let judgement = judge_with_restarts(&estimate, &rules, None, 0.015);
    assert_eq!((judgement.answer, judgement.capped), (Answer::CannotTell, true));
    assert_eq!(
        judge_with_restarts(&estimate, &rules, None, 0.005).answer,
        Answer::Same
    );
}

#[test]
fn sameness_comes_first() {
    // The interval excludes 0, and the difference is half a per cent.
    let (a, b) = ([4.400, 4.4001, 4.3999, 4.400], [4.405, 4.4051, 4.4049, 4.405]);
    let estimate = launches(&a, &b).unwrap();
    assert!(estimate.p_value() < 1e-4);
    assert_eq!(judge(&estimate, &Rules::default(), None).answer, Answer::Same);
    let strict = Rules {
        margin: 0.001,
        ..Rules::default()
    };
    assert_eq!(judge(&estimate, &strict, None).answer, Answer::Higher);
    // An adjusted p-value can forbid the answer.
    assert_eq!(judge(&estimate, &strict, Some(0.2)).answer, Answer::CannotTell);
}

#[test]
fn guidance_is_a_range_that_tells() {
    let rules = Rules::default();
    let range = guidance(Arrangement::TwoSides, 0.035, 0.02, 4.0, 0.0, &rules);
    let (low, high) = (range.low.unwrap(), range.high.unwrap());
    assert!(2 <= low && low < high, "{low} {high}");
    let (_, sd_high) = sd_interval(0.02, 4.0, 0.8);
    let tells = |units| {
        Plan {
            arrangement: Arrangement::TwoSides,
            units,
            difference: 0.035,
            sd: sd_high,
        }
        .tells(&rules)
    };
    assert!(tells(high) >= 0.8 && tells(high - 1) < 0.8);
    // What is assumed is not made smaller by a small sample's luck.
    assert!(
        guidance(Arrangement::TwoSides, 0.035, 0.02, 4.0, 0.02, &rules)
            .low
            .unwrap()
            > low
    );
    // A spread of half the figure: thousands of units.
    assert_eq!(units_that_tell(Arrangement::Blocks, 0.001, 0.5, &rules), None);
}

#[test]
fn too_little_gives_nothing() {
    assert_eq!(launches(&[1.0], &[2.0]), None);
    assert_eq!(launches(&[], &[2.0, 3.0]), None);
    assert_eq!(trials(&[1.0], &[2.0, 3.0]), None);
    assert_eq!(independent(&[1.0]), None);
    assert_eq!(drift(&[1.0, 2.0, 3.0]), None);
    assert_eq!(mad(&[]), None);
}
