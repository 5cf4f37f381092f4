//! Every built-in stream script gives exactly its documented outcome, token count and token source.

use shakedown_verbs::practice::{Options, Script};

use crate::support::{bench, practice};

#[test]
fn every_script_is_read_as_documented() {
    let server = practice(Options::default());
    let url = server.url();
    let scripts = shakedown_verbs::practice::scripts();
    assert!(scripts.len() >= 40, "{} scripts", scripts.len());
    // Each script waits for its own clock more than for the CPU, so they run side by side.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let url = &url;
        let handles: Vec<_> = (0..4)
            .map(|lane| {
                scope.spawn(move || {
                    let mut wrong = Vec::new();
                    for script in scripts.iter().skip(lane).step_by(4) {
                        if let Err(problem) = check(url, script) {
                            wrong.push(format!("{}: {problem}", script.name()));
                        }
                    }
                    wrong
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap())
            .collect()
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn check(url: &str, script: &Script) -> Result<(), String> {
    let expect = script.expect().ok_or("says nothing of what to expect")?;
    let header = format!("x-practice-script: {}", script.name());
    // A script that sends usage with its chunks does so unasked.
    let fixed = [
        "--requests",
        "1",
        "--warmup",
        "0",
        "--chunk-usage",
        "off",
        "--header",
        &header,
    ];
    let mut arguments: Vec<String> = fixed.map(str::to_owned).to_vec();
    let needs = &expect.needs;
    for (option, limit_ms) in [
        ("--timeout-idle", needs.idle_timeout_ms),
        ("--timeout-first-token", needs.first_token_timeout_ms),
        ("--timeout", needs.total_timeout_ms),
    ] {
        arguments.extend(
            limit_ms
                .iter()
                .flat_map(|limit| [option.to_owned(), format!("{limit}ms")]),
        );
    }
    arguments.extend(
        needs
            .max_tokens
            .iter()
            .flat_map(|tokens| ["--max-tokens".to_owned(), tokens.to_string()]),
    );
    if needs.ignore_eos {
        arguments.push("--ignore-eos".to_owned());
    }
    if needs.fresh_connection {
        arguments.push("--cold".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measured = bench(url, &arguments);
    let [record] = measured.records.as_slice() else {
        return Err(format!(
            "{} records instead of 1\n{}",
            measured.records.len(),
            measured.stderr
        ));
    };
    let seen = (record.outcome, record.tokens.output, record.tokens.source);
    let expected = (expect.outcome, expect.tokens, expect.source);
    if seen != expected {
        return Err(format!(
            "read as {seen:?}, documented as {expected:?}; error {:?}",
            record.error
        ));
    }
    let failed = expected.0.is_failure();
    // On a busy machine a run may rightly call itself client-limited, which is 5.
    let allowed: &[i32] = if failed { &[1] } else { &[0, 5] };
    if !allowed.contains(&measured.exit) {
        return Err(format!(
            "exit {} although the request {}",
            measured.exit,
            if failed { "failed" } else { "went well" }
        ));
    }
    Ok(())
}
