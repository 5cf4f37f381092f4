//! Prometheus text: no panic, and every line is a sample, a bad line, a comment or empty.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shakedown_wire::prometheus;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let page = prometheus::parse(&text);
    let lines = text
        .lines()
        .map(|line| line.trim_matches([' ', '\t']))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count();
    assert_eq!(page.samples().len() + page.bad_lines(), lines);
    for sample in page.samples() {
        let labels: Vec<(&str, &str)> = sample
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut names: Vec<&str> = labels.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        // A label that a line repeats has its first value.
        if names.len() == labels.len() {
            assert!(page.value(&sample.name, &labels).is_some());
        }
        if !sample.value.is_nan() {
            assert!(page.sum(&sample.name).is_some());
        }
    }
});
