//! What a user meets: help, errors, exit codes, secrets.

use std::net::TcpListener;

use shakedown_model::Secret;
use shakedown_verbs::practice::Options;

use crate::support::{bench, practice, run};

fn ends(arguments: &[&str]) -> (i32, String, String) {
    let store = tempfile::tempdir().unwrap();
    let output = run(store.path(), arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn help_and_version_are_answers() {
    let (code, stdout, stderr) = ends(&["--help"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("bench") && stdout.contains("practice"));
    assert_eq!(ends(&["--version"]).0, 0);
    assert!(ends(&["bench", "--help"]).1.contains("Examples:"));
    assert!(ends(&["completions", "bash"]).1.contains("complete"));
}

#[test]
fn usage_ends_with_2() {
    for arguments in [
        &["bench"][..],
        &["frobnicate"],
        &["bench", "ftp://host"],
        &["bench", "http://127.0.0.1:1", "--practice"],
        &["bench", "http://127.0.0.1:1", "--requests", "0"],
        &["bench", "http://127.0.0.1:1", "--extra-body", "[1]"],
        &["bench", "http://127.0.0.1:1", "--temperature", "hot"],
        &["bench", "--practice", "--prompts", "no-such-file.jsonl"],
        &["practice", "--script", "no-such-script"],
    ] {
        let (code, stdout, stderr) = ends(arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert_eq!(stdout, "", "{arguments:?}");
        assert!(!stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn nothing_there_ends_with_3() {
    // Taken and closed again, so that nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (code, _, stderr) = ends(&["bench", &format!("http://127.0.0.1:{port}")]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains(&format!("127.0.0.1:{port}")), "{stderr}");
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let server = practice(Options {
        api_key: Some(Secret::new("sk-very-secret-1")),
        ..Options::default()
    });
    let store = tempfile::tempdir().unwrap();
    let key = store.path().join("key");
    std::fs::write(&key, "sk-very-secret-1\n").unwrap();
    let arguments = [
        "--requests",
        "2",
        "--max-tokens",
        "4",
        "--api-key-file",
        key.to_str().unwrap(),
    ];
    let measured = bench(&server.url(), &arguments);
    assert!([0, 5].contains(&measured.exit), "{}", measured.stderr);
    let everything = format!(
        "{} {} {}",
        serde_json::to_string(&measured.document).unwrap(),
        serde_json::to_string(&measured.records).unwrap(),
        measured.stderr
    );
    assert!(!everything.contains("very-secret"));
    // Without it the server refuses, and says so.
    let refused = bench(
        &server.url(),
        &["--requests", "2", "--max-tokens", "4", "--model", "m"],
    );
    assert_eq!(refused.exit, 1);
}

#[test]
fn credentials_in_a_url_are_masked() {
    let (code, stdout, stderr) = ends(&["bench", "http://me:hunter2@127.0.0.1:1"]);
    assert_eq!(code, 3);
    assert!(
        !stdout.contains("hunter2") && !stderr.contains("hunter2"),
        "{stderr}"
    );
}

#[test]
fn the_summary_says_what_was_measured() {
    let (code, stdout, stderr) = ends(&[
        "bench",
        "--practice",
        "--requests",
        "8",
        "--max-tokens",
        "16",
        "--store",
        ".",
    ]);
    assert!([0, 5].contains(&code), "{stderr}");
    for word in ["TTFT", "ITL", "TPOT", "E2E", "tok/s", "ok"] {
        assert!(stdout.contains(word), "{word} is missing:\n{stdout}");
    }
}

#[test]
fn a_prompts_file_that_is_wrong_says_where() {
    let store = tempfile::tempdir().unwrap();
    std::fs::write(
        store.path().join("p.jsonl"),
        "{\"prompt\":\"a\"}\n{\"text\":\"b\"}\n",
    )
    .unwrap();
    let output = run(store.path(), &["bench", "--practice", "--prompts", "p.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("p.jsonl:2"));
}
