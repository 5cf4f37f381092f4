//! The scripts that ship with the server.

use std::sync::LazyLock;

use super::Script;

/// Their texts, by name.
const TEXTS: [&str; 66] = [
    include_str!("../../scripts/broken-chunk.toml"),
    include_str!("../../scripts/close-delimited.toml"),
    include_str!("../../scripts/comments.toml"),
    include_str!("../../scripts/content-length.toml"),
    include_str!("../../scripts/continuous-usage.toml"),
    include_str!("../../scripts/crlf.toml"),
    include_str!("../../scripts/cut-before-done.toml"),
    include_str!("../../scripts/cut-before-finish.toml"),
    include_str!("../../scripts/cut-before-finish-usage.toml"),
    include_str!("../../scripts/cut-before-first-byte.toml"),
    include_str!("../../scripts/data-no-space.toml"),
    include_str!("../../scripts/early-stop.toml"),
    include_str!("../../scripts/early-stop-ignored.toml"),
    include_str!("../../scripts/empty-output.toml"),
    include_str!("../../scripts/endless.toml"),
    include_str!("../../scripts/error-event.toml"),
    include_str!("../../scripts/error-in-stream.toml"),
    include_str!("../../scripts/error-in-stream-usage.toml"),
    include_str!("../../scripts/event-lines.toml"),
    include_str!("../../scripts/finish-separate.toml"),
    include_str!("../../scripts/finish-with-text.toml"),
    include_str!("../../scripts/giant-line.toml"),
    include_str!("../../scripts/gzip-encoding.toml"),
    include_str!("../../scripts/head-at-once.toml"),
    include_str!("../../scripts/invalid-utf8.toml"),
    include_str!("../../scripts/late-usage.toml"),
    include_str!("../../scripts/malformed-json.toml"),
    include_str!("../../scripts/many-events-one-write.toml"),
    include_str!("../../scripts/mock-a.toml"),
    include_str!("../../scripts/mock-b-cut.toml"),
    include_str!("../../scripts/mock-b-cut-usage.toml"),
    include_str!("../../scripts/mock-b-error.toml"),
    include_str!("../../scripts/mock-b-error-usage.toml"),
    include_str!("../../scripts/mock-b-stop.toml"),
    include_str!("../../scripts/mock-b-stop-usage.toml"),
    include_str!("../../scripts/no-answer.toml"),
    include_str!("../../scripts/no-done.toml"),
    include_str!("../../scripts/no-finish.toml"),
    include_str!("../../scripts/no-role.toml"),
    include_str!("../../scripts/no-usage.toml"),
    include_str!("../../scripts/not-http.toml"),
    include_str!("../../scripts/not-sse.toml"),
    include_str!("../../scripts/one-event-many-writes.toml"),
    include_str!("../../scripts/ordinary.toml"),
    include_str!("../../scripts/rate-limited.toml"),
    include_str!("../../scripts/reasoning.toml"),
    include_str!("../../scripts/reasoning-content.toml"),
    include_str!("../../scripts/redirect.toml"),
    include_str!("../../scripts/reset-after-first-byte.toml"),
    include_str!("../../scripts/reset-after-head.toml"),
    include_str!("../../scripts/reset-before-first-byte.toml"),
    include_str!("../../scripts/role-absent.toml"),
    include_str!("../../scripts/role-empty.toml"),
    include_str!("../../scripts/role-null.toml"),
    include_str!("../../scripts/split-utf8.toml"),
    include_str!("../../scripts/stall.toml"),
    include_str!("../../scripts/stall-before-first-token.toml"),
    include_str!("../../scripts/status-400.toml"),
    include_str!("../../scripts/status-401.toml"),
    include_str!("../../scripts/status-403.toml"),
    include_str!("../../scripts/status-404.toml"),
    include_str!("../../scripts/status-500.toml"),
    include_str!("../../scripts/status-502.toml"),
    include_str!("../../scripts/status-503.toml"),
    include_str!("../../scripts/tokens-per-chunk-3.toml"),
    include_str!("../../scripts/tool-calls.toml"),
];

static SCRIPTS: LazyLock<Vec<Script>> = LazyLock::new(|| {
    TEXTS
        .iter()
        .filter_map(|text| Script::from_toml(text).ok())
        .collect()
});

/// The built-in scripts, sorted by name. Each says what a client must make of it.
pub fn scripts() -> &'static [Script] {
    &SCRIPTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_script_with_an_expectation() {
        for text in TEXTS {
            let script = Script::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let expect = script
                .expect()
                .unwrap_or_else(|| panic!("{} expects nothing", script.name()));
            let known = expect.source != shakedown_model::TokenSource::Unknown;
            assert_eq!(known, expect.tokens.is_some(), "{}", script.name());
            if let Some(tokens) = expect.tokens {
                assert_eq!(tokens, expect.generated, "{}", script.name());
            }
            assert!(!script.about().is_empty());
        }
    }

    #[test]
    fn names_are_sorted_and_find_their_script() {
        assert!(scripts().is_sorted_by(|a, b| a.name() < b.name()));
        assert_eq!(scripts().len(), TEXTS.len());
        assert_eq!(Script::named("mock-a").unwrap().name(), "mock-a");
        assert!(Script::named("no-such-script").is_none());
    }

    #[test]
    fn the_guide_lists_every_script_as_it_is() {
        let guide = include_str!("../../../../docs/practice-scripts.md");
        let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
        for script in scripts() {
            let expect = script.expect().unwrap();
            let tokens = expect
                .tokens
                .map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string());
            let row = format!(
                "| `{}` | {} | `{}` | {tokens} | `{}` |",
                script.name(),
                script.about(),
                expect.outcome,
                expect.source.as_str()
            );
            assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
        }
    }

    #[test]
    fn the_guides_example_is_a_script() {
        let guide = include_str!("../../../../docs/practice-scripts.md");
        let (_, rest) = guide.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        // It shows every member at once; an error has no steps, so that line goes.
        let example: Vec<&str> = example
            .lines()
            .filter(|line| !line.starts_with("error ="))
            .collect();
        let script = Script::from_toml(&example.join("\n")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(script.name(), "two-words");
    }
}
