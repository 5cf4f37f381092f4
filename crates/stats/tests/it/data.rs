//! The reference values.

use serde_json::Value;

/// The cases of one file.
pub(crate) fn cases(text: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()["cases"].take()
}

/// A list of numbers; null is NaN.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry.as_f64().unwrap_or(f64::NAN))
        .collect()
}

/// Asserts that two numbers agree to `tolerance`, relative to the larger (absolute below 1e-3).
pub(crate) fn close(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    let scale = ours.abs().max(theirs.abs()).max(1e-3);
    assert!(
        (ours - theirs).abs() <= tolerance * scale,
        "{what}: {ours} is not {theirs}"
    );
}
