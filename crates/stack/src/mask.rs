//! Secrets out of what is shown and stored: by the name of a variable, and by the shape of a value.

use shakedown_model::MASK;

/// Parts of a variable's name that mark its value as secret.
const SECRET_NAMES: [&str; 8] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
];
/// Beginnings of values that are tokens whatever the name.
const SECRET_VALUES: [&str; 9] = [
    "sk-",
    "hf_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "AKIA",
    "Bearer ",
];

/// A URL with the user and password before its host masked.
pub(crate) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split('?').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}"),
        None => format!("{scheme}://{authority}{path}"),
    }
}

/// The value of an environment variable, masked where its name or its shape says that it is secret.
pub(crate) fn variable(name: &str, value: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if SECRET_NAMES.iter().any(|s| upper.contains(s)) && !matches!(value, "0" | "1" | "" | "true" | "false") {
        return MASK.to_owned();
    }
    value
        .split_inclusive([' ', ',', ':', '=', '"'])
        .map(|part| {
            let word = part.trim_start_matches(['"', '\'']);
            if SECRET_VALUES
                .iter()
                .any(|s| word.starts_with(s) && word.len() > s.len() + 8)
            {
                MASK.to_owned()
            } else {
                part.to_owned()
            }
        })
        .collect::<String>()
        .split_whitespace()
        .map(|part| {
            if part.contains("://") {
                url(part)
            } else {
                part.to_owned()
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(url("git+https://u:p@h/x?token=1"), "git+https://***@h/x");
        assert_eq!(url("https://h/x"), "https://h/x");
        assert_eq!(variable("HF_TOKEN", "abc"), MASK);
        assert_eq!(variable("SGLANG_API_KEY", "abc"), MASK);
        assert_eq!(variable("NCCL_DEBUG", "INFO"), "INFO");
        assert_eq!(variable("VLLM_X", "hf_abcdefghijklmnop"), MASK);
        assert_eq!(variable("LD_LIBRARY_PATH", "/a:/b"), "/a:/b");
        assert_eq!(
            variable("HF_ENDPOINT", "https://me:pw@mirror/x"),
            "https://***@mirror/x"
        );
    }
}
