//! Prometheus text, read tolerantly: a line that does not parse is counted and skipped.
//!
//! Both the plain format and OpenMetrics are read, as far as samples go; histograms are left as the samples that
//! they are written as.

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric's name, suffixes included.
    pub name: String,
    /// Labels in order.
    pub labels: Vec<(String, String)>,
    /// The value; may be NaN or infinite.
    pub value: f64,
}

impl Sample {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The samples of one page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposition {
    samples: Vec<Sample>,
    bad_lines: usize,
}

impl Exposition {
    /// All samples in order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Lines that are neither samples nor comments nor empty.
    pub const fn bad_lines(&self) -> usize {
        self.bad_lines
    }

    /// The samples of one name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| sample.name == name)
    }

    /// The value of the first sample of this name that has all these labels (and perhaps others).
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.named(name)
            .find(|sample| {
                labels
                    .iter()
                    .all(|(label, value)| sample.label(label) == Some(value))
            })
            .map(|sample| sample.value)
    }

    /// The sum over all samples of this name, whatever their labels. NaN, which Prometheus writes for "no value",
    /// does not count; `None` where there is no value at all.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.named(name)
            .map(|sample| sample.value)
            .filter(|value| !value.is_nan())
            .reduce(|sum, value| sum + value)
    }
}

/// Reads a page.
pub fn parse(text: &str) -> Exposition {
    let mut page = Exposition::default();
    for line in text.lines() {
        let line = line.trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Some(sample) => page.samples.push(sample),
            None => page.bad_lines += 1,
        }
    }
    page
}

/// `name{label="value",…} value [timestamp] [# exemplar]`
fn sample(line: &str) -> Option<Sample> {
    let end = line.find(|c: char| !is_name_char(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if !is_name(name) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let numbers = rest.split_once(" #").map_or(rest, |(numbers, _)| numbers);
    let mut numbers = numbers.split([' ', '\t']).filter(|number| !number.is_empty());
    let value = number(numbers.next()?)?;
    // The time of the sample is the time of the request to us.
    if let Some(timestamp) = numbers.next() {
        number(timestamp)?;
    }
    if numbers.next().is_some() {
        return None;
    }
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// The labels behind an opening brace, and what follows the closing one.
fn labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let blank = [' ', '\t'];
    let mut labels = Vec::new();
    let mut rest = text.trim_start_matches(blank);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_matches(blank);
        if !is_name(name) || name.contains(':') {
            return None;
        }
        let (value, after) = quoted(after.trim_start_matches(blank).strip_prefix('"')?)?;
        labels.push((name.to_owned(), value));
        let after = after.trim_start_matches(blank);
        // A comma may also stand before the closing brace.
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start_matches(blank),
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// A value behind its opening quote, and what follows the closing one. Of escapes the format knows `\\`, `\"` and
/// `\n`; another backslash stands for itself.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\'])?;
        value.push_str(&rest[..at]);
        let mark = &rest[at..];
        if let Some(after) = mark.strip_prefix('"') {
            return Some((value, after));
        }
        let (character, length) = match mark.as_bytes().get(1) {
            Some(b'n') => ('\n', 2),
            Some(b'"') => ('"', 2),
            Some(b'\\') => ('\\', 2),
            _ => ('\\', 1),
        };
        value.push(character);
        rest = &mark[length..];
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| is_name_char(c) && !c.is_ascii_digit()) && name.chars().all(is_name_char)
}

/// A number as Go writes it: decimal, with exponent, `NaN`, `+Inf`, `-Inf`.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_labels_and_numbers() {
        let page = parse(
            "# HELP a text {not=\"parsed\"} 1\n# TYPE a counter\na 1\n\
             b{x=\"1\",y=\"two\"} 2.5e+3\nb{x=\"2\", y=\"two\", } -4\n\
             c{} NaN\nd{le=\"+Inf\"} +Inf\ne -Inf\n  f\t7  1700000000000  \r\n\
             g{p=\"a\\\\b\\\"c\\nd\\t\"} 8 # {trace=\"x\"} 1\nllamacpp:n_total 9",
        );
        assert_eq!(page.bad_lines(), 0);
        assert_eq!(page.samples().len(), 9);
        assert_eq!(page.value("a", &[]), Some(1.0));
        assert_eq!(page.value("b", &[("x", "2")]), Some(-4.0));
        assert_eq!(page.value("b", &[("y", "two"), ("x", "1")]), Some(2500.0));
        assert_eq!(page.value("b", &[("x", "3")]), None);
        assert_eq!(page.sum("b"), Some(2496.0));
        assert!(page.value("c", &[]).unwrap().is_nan());
        assert_eq!(page.sum("c"), None);
        assert_eq!(page.value("d", &[("le", "+Inf")]), Some(f64::INFINITY));
        assert_eq!(page.value("e", &[]), Some(f64::NEG_INFINITY));
        assert_eq!(page.value("f", &[]), Some(7.0));
        assert_eq!(page.named("g").next().unwrap().label("p"), Some("a\\b\"c\nd\\t"));
        assert_eq!(page.value("llamacpp:n_total", &[]), Some(9.0));
        assert_eq!(page.sum("absent"), None);
    }

    #[test]
    fn bad_lines_are_counted_and_skipped() {
        let bad = [
            "1abc 2",
            "name",
            "name x",
            "name 1 2 3",
            "n{ 1",
            "n{a} 1",
            "n{a=b} 1",
            "n{a=\"b} 1",
            "n{a=\"b\"x} 1",
            "n{a=\"b\"",
            "n{1=\"b\"} 1",
            "{a=\"b\"} 1",
            "n 1 x",
            "<html>",
        ];
        let page = parse(&format!("ok 1\n{}\nok 2\n", bad.join("\n")));
        assert_eq!(page.bad_lines(), bad.len());
        assert_eq!(page.sum("ok"), Some(3.0));
    }
}
