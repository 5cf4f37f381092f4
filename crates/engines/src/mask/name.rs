//! Which names are given to secrets.

/// Words that make a name a secret's wherever they stand in it.
const ALWAYS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "cookie",
    "apikey",
    "apikeys",
    "hft",
];

/// Words that make the `key` after them a secret's.
const BEFORE_KEY: &[&str] = &[
    "api",
    "access",
    "admin",
    "auth",
    "encryption",
    "private",
    "secret",
    "service",
    "signing",
    "watermark",
    "master",
];

/// Words that make the `token` after them a secret's: `bos_token` and `num_draft_tokens` are none.
const BEFORE_TOKEN: &[&str] = &[
    "access", "admin", "api", "auth", "gh", "github", "gitlab", "hf", "hub", "id", "jwt", "ngc", "refresh",
    "security", "session", "user", "wandb", "bearer",
];

/// Last words that say that the value is not the secret itself but where or what it is.
const NOT_ITSELF: &[&str] = &[
    "file", "path", "dir", "env", "header", "headers", "name", "type", "length", "size", "count", "format",
    "usage",
];

/// Whether an argument, a JSON member or a query parameter of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    if words
        .last()
        .is_some_and(|word| NOT_ITSELF.contains(&word.as_str()))
    {
        return false;
    }
    let mut before = "";
    for (at, word) in words.iter().enumerate() {
        let word = word.as_str();
        let secret = ALWAYS.contains(&word)
            || (matches!(word, "key" | "keys") && BEFORE_KEY.contains(&before))
            || (word == "token" && (words.len() == 1 || BEFORE_TOKEN.contains(&before)))
            || (word == "auth" && at + 1 == words.len());
        if secret {
            return true;
        }
        before = word;
    }
    false
}

/// Whether an environment variable of this name holds a secret: as [`is_secret_name`], and every name that ends in
/// `TOKEN`, `KEY`, `PASS` or `PAT`.
pub fn is_secret_variable(name: &str) -> bool {
    if is_secret_name(name) {
        return true;
    }
    let shouted =
        name.chars().any(|c| c.is_ascii_uppercase()) && !name.chars().any(|c| c.is_ascii_lowercase());
    shouted
        && words(name)
            .last()
            .is_some_and(|word| matches!(word.as_str(), "token" | "key" | "pass" | "pat"))
}

/// The words of a name in any spelling, in small letters: `--admin-api-key`, `HF_TOKEN`, `apiKey`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before_is_small = false;
    for c in name.chars().take(256) {
        if !c.is_ascii_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            before_is_small = false;
            continue;
        }
        if c.is_ascii_uppercase() && before_is_small {
            words.push(std::mem::take(&mut word));
        }
        before_is_small = c.is_ascii_lowercase();
        word.push(c.to_ascii_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_others() {
        for name in [
            "--api-key",
            "api_key",
            "apiKey",
            "--admin-api-key",
            "hf_token",
            "token",
            "--token",
            "HF_TOKEN",
            "ssl_keyfile_password",
            "Authorization",
            "watermark_key_b",
            "clientSecret",
            "--auth",
            "x-api-key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "--max-tokens",
            "tokenizer",
            "bos_token",
            "eos_token",
            "speculative_num_draft_tokens",
            "token_usage",
            "ssl_keyfile",
            "api_key_file",
            "key_name",
            "monkey",
            "num_key_value_heads",
            "authors",
            "",
            "kv_cache_dtype",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(
            is_secret_variable("SOME_SERVICE_TOKEN")
                && is_secret_variable("MY_KEY")
                && is_secret_variable("DB_PASS")
        );
        assert!(!is_secret_variable("TOKENIZERS_PARALLELISM") && !is_secret_variable("eos_token"));
        assert!(!is_secret_variable("SSH_KEY_PATH"));
    }
}
