//! The catalogue is well formed, and its samples are judged as they say.

use std::collections::BTreeSet;

use shakedown_diagnose::catalog::{OneOrMany, Role, Sample};
use shakedown_diagnose::{Catalog, Diagnoser, Evidence, Facts};
use shakedown_model::{Diagnosis, Verdict};

fn judge(diagnoser: &Diagnoser, sample: &Sample) -> Diagnosis {
    let facts = match sample {
        Sample::Log(_) => Facts::new(),
        Sample::Full { facts, .. } => Facts::from_value(&serde_json::to_value(facts).unwrap()).unwrap(),
    };
    let evidence = Evidence::new()
        .with_log("server.log", sample.log().as_bytes())
        .with_facts(facts);
    diagnoser.diagnose(evidence).unwrap()
}

#[test]
fn every_entry_is_whole() {
    let catalog = Catalog::built_in().unwrap();
    let mut codes = BTreeSet::new();
    let mut faults = Vec::new();
    for failure in &catalog.failures {
        let code = &failure.code;
        let mut fault = |text: String| faults.push(format!("{code}: {text}"));
        if !codes.insert(code.clone()) {
            fault("code is used twice".to_owned());
        }
        if code.is_empty()
            || !code
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        {
            fault("code is not kebab-case".to_owned());
        }
        if failure.family.is_empty() || failure.title.is_empty() || failure.source.is_empty() {
            fault("family, title or source is missing".to_owned());
        }
        if !failure.class.contains('.') {
            fault(format!("class {} is not area.kind", failure.class));
        }
        if failure.patterns.is_empty() && failure.require.is_empty() {
            fault("neither pattern nor requirement".to_owned());
        }
        if failure.yes.is_empty() {
            fault("no sample that must match".to_owned());
        }
        if matches!(failure.role, Role::Cause | Role::Symptom) && failure.fixes.is_empty() {
            fault("no fix".to_owned());
        }
        for pattern in &failure.patterns {
            if pattern.literals.iter().any(|literal| literal.len() < 3) || pattern.literals.is_empty() {
                fault("a literal is too short".to_owned());
            }
            for regex in [&pattern.regex, &pattern.unless].into_iter().flatten() {
                if regex.get().is_none() {
                    fault(format!("regex does not compile: {}", regex.source()));
                }
            }
        }
        for condition in failure
            .require
            .iter()
            .chain(&failure.confirm)
            .chain(&failure.refute)
        {
            for regex in [&condition.frame, &condition.text, &condition.matches]
                .into_iter()
                .flatten()
            {
                if regex.get().is_none() {
                    fault(format!("regex does not compile: {}", regex.source()));
                }
            }
            if let Some(seen) = &condition.seen
                && !catalog.observes.iter().any(|observe| observe.name == *seen)
            {
                fault(format!("observation {seen} does not exist"));
            }
            for code in condition.code.iter().flat_map(OneOrMany::as_slice) {
                if catalog.get(code).is_none() {
                    fault(format!("code {code} does not exist"));
                }
            }
        }
        for name in &failure.folds {
            let known = match name.split_once(':') {
                Some(("class", class)) => catalog.failures.iter().any(|other| {
                    other.class == class
                        || class
                            .strip_suffix(".*")
                            .is_some_and(|area| other.class.starts_with(&format!("{area}.")))
                }),
                Some(("family", family)) => catalog.failures.iter().any(|other| other.family == family),
                _ => catalog.get(name).is_some(),
            };
            if !known {
                fault(format!("folds {name}, which does not exist"));
            }
        }
    }
    for (name, patterns) in catalog
        .stages
        .iter()
        .map(|stage| (stage.stage.name(), &stage.patterns))
        .chain(
            catalog
                .observes
                .iter()
                .map(|observe| (observe.name.as_str(), &observe.patterns)),
        )
    {
        for pattern in patterns {
            for regex in [&pattern.regex, &pattern.unless].into_iter().flatten() {
                if regex.get().is_none() {
                    faults.push(format!("{name}: regex does not compile: {}", regex.source()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn samples_are_judged_as_they_say() {
    let diagnoser = Diagnoser::new().unwrap();
    let mut faults = Vec::new();
    for failure in &diagnoser.catalog().failures {
        for (number, sample) in failure.yes.iter().enumerate() {
            let diagnosis = judge(&diagnoser, sample);
            let first = diagnosis.first().unwrap();
            let named = |code: &str| {
                first.finding.code == code
                    || first.led_to.iter().any(|led| led.code == code)
                    || diagnosis.harmless.iter().any(|line| line.code == code)
            };
            let right = match failure.role {
                Role::Cause | Role::Symptom | Role::NotInForce => first.finding.code == failure.code,
                Role::Cascade => named(&failure.code) && first.finding.verdict == Verdict::Unknown,
                Role::Benign => named(&failure.code) && first.finding.verdict != Verdict::Fail,
            };
            if !right {
                faults.push(format!(
                    "{} yes[{number}]: {} {:?} (family {}): {}",
                    failure.code,
                    first.finding.code,
                    first.finding.confidence,
                    first.family,
                    first.finding.what
                ));
            }
            for text in std::iter::once(&first.finding.what).chain(std::iter::once(&first.finding.why)) {
                let unfilled = text.split('<').skip(1).any(|rest| {
                    rest.split_once('>').is_some_and(|(name, _)| {
                        name != "html"
                            && name.len() > 1
                            && name
                                .chars()
                                .all(|c| c.is_ascii_lowercase() || matches!(c, '.' | '-' | '_'))
                    })
                });
                if unfilled {
                    faults.push(format!("{} yes[{number}]: unfilled: {text}", failure.code));
                }
            }
        }
        for (number, sample) in failure.no.iter().enumerate() {
            let diagnosis = judge(&diagnoser, sample);
            if diagnosis
                .first()
                .is_some_and(|first| first.finding.code == failure.code)
            {
                faults.push(format!("{} no[{number}] is judged so", failure.code));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{}\n{} faults",
        faults.join("\n"),
        faults.len()
    );
}
