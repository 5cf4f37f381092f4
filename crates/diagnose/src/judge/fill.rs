//! Fills the placeholders of the catalogue's sentences.
//!
//! `{name}` is the value; `{name|words}` the value or the words, in which placeholders may stand again;
//! `{name?words %}` the words with the value for `%`, or nothing.

/// `template` with each placeholder replaced by what `lookup` knows; without value and fallback its name stays, in
/// angle brackets.
pub(crate) fn fill(template: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let Some(end) = closing(after) else {
            out.push_str(&rest[start..]);
            return out;
        };
        let inside = &after[..end];
        let name_end = inside.find(['|', '?']).unwrap_or(inside.len());
        let name = &inside[..name_end];
        let words = inside.get(name_end + 1..);
        if !is_name(name) {
            // Braces of a command, such as awk's or Go templates', stay.
            out.push('{');
            out.push_str(inside);
            out.push('}');
        } else if inside[name_end..].starts_with('?') {
            if let (Some(value), Some(words)) = (lookup(name), words) {
                out.push_str(&words.replace('%', &value));
            }
        } else {
            match (lookup(name), words) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(words)) => out.push_str(&fill(words, lookup)),
                (None, None) => {
                    out.push('<');
                    out.push_str(name);
                    out.push('>');
                }
            }
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Where the brace that is already open closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        let lookup = |name: &str| (name == "port").then(|| "8000".to_owned());
        assert_eq!(
            fill("on {port}, {host|some host}, {x}", &lookup),
            "on 8000, some host, <x>"
        );
        assert_eq!(fill("awk '{print $1}' {port}", &lookup), "awk '{print $1}' 8000");
        assert_eq!(fill("{host|port {port|?}}.", &lookup), "port 8000.");
        assert_eq!(fill("up{port? on %}{host? at %}", &lookup), "up on 8000");
        assert_eq!(fill("open {port", &lookup), "open {port");
    }
}
