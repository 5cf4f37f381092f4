//! Environment markers (PEP 508): parsed once, evaluated against an environment and a set of extras.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifier};

/// Depth of parentheses that anything real stays below.
const MAX_DEPTH: u32 = 64;

/// A parsed marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// Both.
    And(Box<Marker>, Box<Marker>),
    /// Either.
    Or(Box<Marker>, Box<Marker>),
    /// One comparison.
    Compare {
        /// Left side.
        left: Term,
        /// Operator as written.
        operator: String,
        /// Right side.
        right: Term,
    },
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// A variable of the environment.
    Variable(String),
    /// A quoted string.
    Text(String),
}

/// The values that markers are evaluated against.
#[derive(Debug, Clone, Default)]
pub struct MarkerValues {
    /// For example `3.11`.
    pub python_version: String,
    /// For example `3.11.7`.
    pub python_full_version: String,
    /// For example `x86_64`.
    pub platform_machine: String,
    /// Kernel release, where known.
    pub platform_release: Option<String>,
}

impl MarkerValues {
    fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "python_version" => &self.python_version,
            "python_full_version" | "implementation_version" => &self.python_full_version,
            "platform_machine" => &self.platform_machine,
            "os_name" => "posix",
            "sys_platform" => "linux",
            "platform_system" => "Linux",
            "implementation_name" => "cpython",
            "platform_python_implementation" | "python_implementation" => "CPython",
            "platform_release" => self.platform_release.as_deref()?,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Open,
    Close,
    Word(String),
    Text(String),
    Operator(String),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let skip = match c {
            '(' => {
                out.push(Token::Open);
                1
            }
            ')' => {
                out.push(Token::Close);
                1
            }
            '\'' | '"' => {
                let end = rest.get(1..)?.find(c)?;
                out.push(Token::Text(rest.get(1..=end)?.to_owned()));
                end + 2
            }
            '<' | '>' | '=' | '!' | '~' => {
                let end = rest
                    .find(|c: char| !matches!(c, '<' | '>' | '=' | '!' | '~'))
                    .unwrap_or(rest.len());
                out.push(Token::Operator(rest.get(..end)?.to_owned()));
                end
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
                    .unwrap_or(rest.len());
                out.push(Token::Word(rest.get(..end)?.to_owned()));
                end
            }
            _ => return None,
        };
        rest = rest.get(skip..)?.trim_start();
    }
    Some(out)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    depth: u32,
}

impl Parser {
    fn word(&mut self, word: &str) -> bool {
        if matches!(self.tokens.peek(), Some(Token::Word(w)) if w == word) {
            self.tokens.next();
            return true;
        }
        false
    }

    fn either(&mut self) -> Option<Marker> {
        let mut left = self.both()?;
        while self.word("or") {
            left = Marker::Or(Box::new(left), Box::new(self.both()?));
        }
        Some(left)
    }

    fn both(&mut self) -> Option<Marker> {
        let mut left = self.one()?;
        while self.word("and") {
            left = Marker::And(Box::new(left), Box::new(self.one()?));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Marker> {
        if self.tokens.peek() == Some(&Token::Open) {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            self.tokens.next();
            let inner = self.either()?;
            self.depth -= 1;
            return (self.tokens.next()? == Token::Close).then_some(inner);
        }
        let left = self.term()?;
        let operator = match self.tokens.next()? {
            Token::Operator(operator) => operator,
            Token::Word(w) if w == "in" => "in".to_owned(),
            Token::Word(w) if w == "not" && self.word("in") => "not in".to_owned(),
            _ => return None,
        };
        Some(Marker::Compare {
            left,
            operator,
            right: self.term()?,
        })
    }

    fn term(&mut self) -> Option<Term> {
        match self.tokens.next()? {
            Token::Word(name) => Some(Term::Variable(name)),
            Token::Text(text) => Some(Term::Text(text)),
            _ => None,
        }
    }
}

impl Marker {
    /// Reads a marker; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser {
            tokens: tokens(text)?.into_iter().peekable(),
            depth: 0,
        };
        let marker = parser.either()?;
        parser.tokens.peek().is_none().then_some(marker)
    }

    /// Whether it holds; `None` where that hangs on a value that is not known.
    pub fn holds(&self, values: &MarkerValues, extras: &BTreeSet<String>) -> Option<bool> {
        match self {
            Self::And(a, b) => match (a.holds(values, extras), b.holds(values, extras)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.holds(values, extras), b.holds(values, extras)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Self::Compare {
                left,
                operator,
                right,
            } => compare(left, operator, right, values, extras),
        }
    }
}

fn compare(
    left: &Term,
    operator: &str,
    right: &Term,
    values: &MarkerValues,
    extras: &BTreeSet<String>,
) -> Option<bool> {
    if let (Term::Variable(name), Term::Text(extra)) | (Term::Text(extra), Term::Variable(name)) =
        (left, right)
        && name == "extra"
    {
        let asked = extras.contains(&super::normalize(extra));
        return match operator {
            "==" => Some(asked),
            "!=" => Some(!asked),
            _ => None,
        };
    }
    let value = |term: &Term| match term {
        Term::Variable(name) => values.get(name).map(str::to_owned),
        Term::Text(text) => Some(text.clone()),
    };
    let (a, b) = (value(left)?, value(right)?);
    match operator {
        "in" => return Some(b.contains(&a)),
        "not in" => return Some(!b.contains(&a)),
        _ => {}
    }
    // Versions compare as versions where both sides are some, other values as text.
    if let Ok(version) = Version::from_str(&a)
        && let Ok(specifier) = VersionSpecifier::from_str(&format!("{operator}{b}"))
    {
        return Some(specifier.contains(&version));
    }
    let order = a.cmp(&b);
    Some(match operator {
        "==" | "===" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, extras: &[&str]) -> Option<bool> {
        let values = MarkerValues {
            python_version: "3.11".into(),
            python_full_version: "3.11.7".into(),
            platform_machine: "x86_64".into(),
            platform_release: None,
        };
        let extras = extras.iter().map(|e| (*e).to_owned()).collect();
        Marker::parse(text).expect(text).holds(&values, &extras)
    }

    #[test]
    fn as_installers_evaluate_them() {
        for (text, expected) in [
            ("python_version >= '3.9'", Some(true)),
            ("python_version < '3.9'", Some(false)),
            ("python_version == \"3.11.*\"", Some(true)),
            ("'3.10' <= python_version", Some(true)),
            (
                "sys_platform == 'linux' and platform_machine == 'x86_64'",
                Some(true),
            ),
            (
                "platform_system == 'Linux' and platform_machine != 'aarch64'",
                Some(true),
            ),
            (
                "(os_name == 'nt' or sys_platform == 'win32') and python_version > '3'",
                Some(false),
            ),
            ("platform_machine in 'x86_64 AMD64'", Some(true)),
            ("platform_machine not in 'x86_64 AMD64'", Some(false)),
            ("platform_release > '5'", None),
            ("platform_release > '5' or os_name == 'posix'", Some(true)),
            ("extra == 'dev'", Some(false)),
            ("extra != 'dev'", Some(true)),
        ] {
            assert_eq!(holds(text, &[]), expected, "{text}");
        }
        assert_eq!(
            holds("extra == 'CU_13' and python_version > '3.10'", &["cu-13"]),
            Some(true)
        );
    }

    #[test]
    fn precedence_and_errors() {
        assert_eq!(
            holds("os_name == 'nt' and os_name == 'nt' or os_name == 'posix'", &[]),
            Some(true)
        );
        assert_eq!(
            holds("os_name == 'nt' and (os_name == 'nt' or os_name == 'posix')", &[]),
            Some(false)
        );
        for bad in [
            "",
            "python_version",
            "python_version >=",
            "(os_name == 'a'",
            "os_name == 'a",
            "a == 'b' 'c'",
        ] {
            assert!(Marker::parse(bad).is_none(), "{bad}");
        }
        assert!(Marker::parse(&"(".repeat(100_000)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[ ()'\"a-z_=<>!~.0-9]{0,80}") {
            if let Some(marker) = Marker::parse(&text) {
                let _ = marker.holds(&MarkerValues::default(), &BTreeSet::new());
            }
        }
    }
}
