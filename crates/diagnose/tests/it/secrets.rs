//! Secrets appear nowhere: not in the document, not in saved evidence.

use shakedown_diagnose::{Evidence, Facts, save};

use crate::DIAGNOSER;

const SECRETS: [&str; 8] = [
    "hf_AbCdEfGhIjKlMnOpQrSt",
    "sk-live-0123456789abcdef",
    "tok3nInArguments",
    "s3cretInEnvironment",
    "proxyPassw0rd",
    "bearerTokenValue123",
    "keyInServerArgs99",
    "keyInDict77",
];

fn log() -> String {
    [
        "[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m', api_key='keyInServerArgs99', port=30000)",
        "(APIServer pid=1) INFO 11-30 23:38:50 [api_utils.py:286] non-default args: {'model': 'm', 'api_key': ['keyInDict77']}",
        "command=python -m sglang.launch_server --model-path m --api-key tok3nInArguments --port 1",
        "export HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt",
        "error: openai.AuthenticationError: Incorrect API key provided: sk-live-0123456789abcdef",
        "Authorization: Bearer bearerTokenValue123 failed",
        "requests.exceptions.ProxyError: Cannot connect to http://user:proxyPassw0rd@proxy:3128/ failed",
        "RuntimeError: something failed with api_key='keyInServerArgs99' and sk-live-0123456789abcdef",
    ]
    .join("\n")
}

fn facts() -> Facts {
    Facts::from_json(
        br#"{"argv": "serve --api-key tok3nInArguments", "env": {"HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrSt", "MY_SECRET": "s3cretInEnvironment", "https_proxy": "http://user:proxyPassw0rd@proxy:3128"}, "processes": ["vllm serve --api-key tok3nInArguments (old)"]}"#,
    )
    .unwrap()
}

fn assert_clean(text: &str, what: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

#[test]
fn the_document_is_clean() {
    // Each line by itself too, so that each gets to be quoted.
    let log = log();
    for part in std::iter::once(log.as_str()).chain(log.lines()) {
        let diagnosis = DIAGNOSER
            .diagnose(Evidence::new().with_log("server.log", part).with_facts(facts()))
            .unwrap();
        assert_clean(&serde_json::to_string(&diagnosis).unwrap(), "the document");
    }
}

#[test]
fn saved_evidence_is_clean_and_judged_alike() {
    let dir = tempfile::tempdir().unwrap();
    let evidence = || Evidence::new().with_log("server.log", log()).with_facts(facts());
    save(evidence(), dir.path()).unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_clean(
            &std::fs::read_to_string(&path).unwrap(),
            &path.display().to_string(),
        );
        files += 1;
    }
    assert_eq!(files, 2);
    let before = DIAGNOSER.diagnose(evidence()).unwrap();
    let after = DIAGNOSER
        .diagnose(Evidence::from_dir(dir.path()).unwrap())
        .unwrap();
    assert_eq!(crate::code(&before), crate::code(&after));
}
