//! A regular expression that is compiled only once one of its literals was seen.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use super::CatalogError;

/// Longest text that a pattern looks at: command lines can be megabytes.
const PATTERN_TEXT_CAP: usize = 64 * 1024;

/// A pattern with the literals that guard it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// One of these must be in the text before the expression is tried.
    pub literals: Vec<String>,
    /// The expression.
    pub regex: String,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

impl Clone for Pattern {
    fn clone(&self) -> Self {
        Self {
            literals: self.literals.clone(),
            regex: self.regex.clone(),
            compiled: OnceLock::new(),
        }
    }
}

impl Pattern {
    /// Whether `text` matches. A pattern that does not compile matches nothing; [`Self::check`] tells.
    pub fn is_match(&self, text: &str) -> bool {
        let text = clip(text);
        self.may_match(text) && self.compiled().is_some_and(|regex| regex.is_match(text))
    }

    /// Whether one of its literals is in `text`.
    pub fn may_match(&self, text: &str) -> bool {
        self.literals
            .iter()
            .any(|literal| text.contains(literal.as_str()))
    }

    /// Compiles it, to find faults in a user's file when it is read and not when it is needed.
    pub fn check(&self) -> Result<(), CatalogError> {
        if self.literals.is_empty() || self.literals.iter().any(String::is_empty) {
            return Err(CatalogError::NoLiteral {
                pattern: self.regex.clone(),
            });
        }
        Regex::new(&self.regex)
            .map(drop)
            .map_err(|error| CatalogError::Pattern {
                pattern: self.regex.clone(),
                error: error.to_string(),
            })
    }

    fn compiled(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(&self.regex).ok())
            .as_ref()
    }
}

fn clip(text: &str) -> &str {
    if text.len() <= PATTERN_TEXT_CAP {
        return text;
    }
    let mut end = PATTERN_TEXT_CAP;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(literal: &str, pattern: &str) -> Pattern {
        Pattern {
            literals: vec![literal.to_owned()],
            regex: pattern.to_owned(),
            compiled: OnceLock::new(),
        }
    }

    #[test]
    fn compiles_only_after_a_literal() {
        let rule = pattern("vllm", "^vllm serve");
        assert!(!rule.is_match("sshd -D"));
        assert!(rule.compiled.get().is_none());
        assert!(rule.is_match("vllm serve m"));
        assert!(rule.compiled.get().is_some());
    }

    #[test]
    fn a_long_text_is_clipped_at_a_character() {
        let rule = pattern("x", "x$");
        let text = format!("x{}", "é".repeat(PATTERN_TEXT_CAP));
        assert!(!rule.is_match(&text));
    }

    #[test]
    fn faults_are_found() {
        assert!(pattern("a", "(").check().is_err());
        assert!(pattern("", "a").check().is_err());
        assert!(pattern("a", "a").check().is_ok());
    }
}
