//! One line of `Requires-Dist` (PEP 508): name, extras, version specifiers or URL, marker.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::Marker;

/// A requirement on a distribution.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The line as it stands.
    pub text: String,
    /// Name, normalized.
    pub name: String,
    /// Extras asked for, normalized.
    pub extras: Vec<String>,
    /// Versions allowed; empty allows all.
    pub specifiers: VersionSpecifiers,
    /// A URL in place of versions.
    pub url: Option<String>,
    /// When it applies; absent: always.
    pub marker: Option<Marker>,
}

/// A distribution's name as PEP 503 compares names: lower case, runs of `-`, `_` and `.` as one `-`.
pub fn normalize(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.trim().chars() {
        if matches!(c, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}

impl Requirement {
    /// Reads one requirement; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (head, marker) = match text.split_once(';') {
            // A URL may hold a semicolon; there the marker follows a space.
            Some((head, _)) if head.contains('@') => {
                text.split_once(" ;").map_or((text, None), |(h, m)| (h, Some(m)))
            }
            Some((head, marker)) => (head, Some(marker)),
            None => (text, None),
        };
        let head = head.trim();
        let end = head
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
            .unwrap_or(head.len());
        let name = normalize(head.get(..end)?);
        if name.is_empty() {
            return None;
        }
        let mut rest = head.get(end..)?.trim();
        let mut extras = Vec::new();
        if let Some(inner) = rest.strip_prefix('[') {
            let (list, after) = inner.split_once(']')?;
            extras = list.split(',').map(normalize).filter(|e| !e.is_empty()).collect();
            rest = after.trim();
        }
        let mut url = None;
        let mut specifiers = VersionSpecifiers::empty();
        if let Some(address) = rest.strip_prefix('@') {
            url = Some(address.trim().to_owned());
        } else if !rest.is_empty() {
            let list = rest
                .strip_prefix('(')
                .and_then(|r| r.strip_suffix(')'))
                .unwrap_or(rest);
            if !list.trim().is_empty() {
                specifiers = VersionSpecifiers::from_str(list.trim().trim_end_matches(',')).ok()?;
            }
        }
        let marker = match marker.map(str::trim).filter(|m| !m.is_empty()) {
            Some(marker) => Some(Marker::parse(marker)?),
            None => None,
        };
        Some(Self {
            text: text.to_owned(),
            name,
            extras,
            specifiers,
            url,
            marker,
        })
    }

    /// Whether a version is allowed; `None` if the version is not one of PEP 440.
    pub fn allows(&self, version: &str) -> Option<bool> {
        let version = Version::from_str(version).ok()?;
        Some(self.specifiers.contains(&version))
    }

    /// The requirement without its marker, as it is written in a command.
    pub fn short(&self) -> String {
        self.text.split(';').next().unwrap_or_default().trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let r = Requirement::parse("Flashinfer_Python[cu13,x]==0.6.3 ; python_version >= '3.10'").unwrap();
        assert_eq!((r.name.as_str(), r.extras.len()), ("flashinfer-python", 2));
        assert_eq!(r.allows("0.6.4"), Some(false));
        assert_eq!(r.allows("0.6.3+cu130"), Some(true), "a local tag is not compared");
        assert_eq!(r.short(), "Flashinfer_Python[cu13,x]==0.6.3");
        let old = Requirement::parse("six (>=1.5)").unwrap();
        assert_eq!(old.allows("1.4"), Some(false));
        let any = Requirement::parse("cuda-python").unwrap();
        assert_eq!(any.allows("13.0rc1"), Some(true));
        let url = Requirement::parse("x @ git+https://example.org/x;y ; extra == 'a'").unwrap();
        assert_eq!(url.url.as_deref(), Some("git+https://example.org/x;y"));
        assert!(url.marker.is_some());
        assert_eq!(
            Requirement::parse("a<3,>=2").unwrap().allows("2.9.1.post2"),
            Some(true)
        );
        assert!(Requirement::parse("==1").is_none());
        assert!(Requirement::parse("a ==oops").is_none());
        assert_eq!(
            Requirement::parse("torch!=2.0.1,>=1.13").unwrap().allows("2.0.1"),
            Some(false)
        );
    }

    #[test]
    fn names_compare() {
        assert_eq!(normalize("Sgl__Kernel.X"), "sgl-kernel-x");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,80}") {
            let _ = Requirement::parse(&text);
        }
    }
}
