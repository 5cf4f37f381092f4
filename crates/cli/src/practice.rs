//! `shakedown practice`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shakedown_model::Exit;
use shakedown_verbs::{VerbError, practice};

use crate::args::{Format, PracticeArgs};
use crate::exit::CliError;
use crate::interrupt;
use crate::output::{self, Output};

pub(crate) fn run(args: PracticeArgs, output: &Output) -> Result<Exit, CliError> {
    if args.list_scripts {
        return list_scripts(output);
    }
    let interrupted = interrupt::flag()?;
    let server = practice::start(args.into_options()?).map_err(VerbError::from)?;
    // The address is data: a script that started the server on any port reads it here.
    match output.format {
        Format::Human => output::data(&format!("{}\n", server.url()))?,
        Format::Json => output::data(&format!("{}\n", serde_json::json!({"url": server.url()})))?,
    }
    output.say("serving; end with Ctrl-C; its own stamps are at /truth");
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.stop();
    Ok(Exit::Interrupted)
}

fn list_scripts(output: &Output) -> Result<Exit, CliError> {
    let scripts = practice::scripts();
    let text = match output.format {
        Format::Json => {
            let list: Vec<_> = scripts
                .iter()
                .map(|script| {
                    let expect = script.expect();
                    serde_json::json!({
                        "name": script.name(),
                        "about": script.about(),
                        "outcome": expect.map(|expect| expect.outcome),
                        "tokens": expect.and_then(|expect| expect.tokens),
                        "token_source": expect.map(|expect| expect.source),
                    })
                })
                .collect();
            serde_json::to_string_pretty(&list)? + "\n"
        }
        Format::Human => {
            let width = scripts
                .iter()
                .map(|script| script.name().len())
                .max()
                .unwrap_or(0);
            scripts.iter().fold(String::new(), |mut text, script| {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{:width$}  {}", script.name(), script.about());
                text
            })
        }
    };
    output::data(&text)?;
    Ok(Exit::Yes)
}
