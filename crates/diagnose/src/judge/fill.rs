//! Fills the placeholders of the catalogue's sentences: `{name}` and `{name|words where it is not known}`.

/// `template` with each placeholder replaced by what `lookup` knows, its fallback, or its name in angle brackets.
pub fn fill(template: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let Some(end) = after.find('}') else {
            out.push_str(&rest[start..]);
            return out;
        };
        let inside = &after[..end];
        let (name, fallback) = match inside.split_once('|') {
            Some((name, fallback)) => (name, Some(fallback)),
            None => (inside, None),
        };
        if is_name(name) {
            match lookup(name) {
                Some(value) => out.push_str(&value),
                None => match fallback {
                    Some(words) => out.push_str(words),
                    None => {
                        out.push('<');
                        out.push_str(name);
                        out.push('>');
                    }
                },
            }
        } else {
            // Braces of a command, such as awk's or Go templates', stay.
            out.push('{');
            out.push_str(inside);
            out.push('}');
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
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
        assert_eq!(fill("on {port}, {host|some host}, {x}", &lookup), "on 8000, some host, <x>");
        assert_eq!(fill("awk '{print $1}' {port}", &lookup), "awk '{print $1}' 8000");
        assert_eq!(fill("open {port", &lookup), "open {port");
    }
}
