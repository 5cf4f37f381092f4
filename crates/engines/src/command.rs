//! A process's command with its interpreter taken off, and the settings that it asks for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use shakedown_model::Setting;

use crate::catalog::{Entry, Flag};

/// Longest text of a command that is put together for patterns.
const TEXT_CAP: usize = 16 * 1024;

/// What a process runs: `python3 -u -m sglang.launch_server --port 1` is `-m sglang.launch_server --port 1`, and
/// `/venv/bin/python /venv/bin/vllm serve m` is `vllm serve m`.
///
/// So a pattern that begins with `^vllm serve` sees the program that runs, and neither an editor that holds its
/// file open nor a shell that was given it as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    text: String,
    /// Where the arguments of the program begin.
    first: usize,
    /// The script that an interpreter runs, as it was given.
    script: Option<String>,
}

impl Command {
    /// The command of the arguments `argv`, the first of which is the program.
    pub fn of(argv: &[String]) -> Self {
        let Some(program) = argv.first() else {
            return Self {
                text: String::new(),
                first: 0,
                script: None,
            };
        };
        if is_python(base_name(program)) {
            let (skip, module) = python_options(&argv[1..]);
            let at = 1 + skip;
            if let Some(target) = argv.get(at) {
                let (head, script) = if module {
                    (format!("-m {target}"), None)
                } else {
                    (base_name(target).to_owned(), Some(target.clone()))
                };
                return Self::joined(head, argv, at + 1, script);
            }
        }
        Self::joined(base_name(program).to_owned(), argv, 1, None)
    }

    fn joined(mut text: String, argv: &[String], first: usize, script: Option<String>) -> Self {
        for argument in argv.get(first..).unwrap_or_default() {
            if text.len() + argument.len() > TEXT_CAP {
                break;
            }
            text.push(' ');
            text.push_str(argument);
        }
        Self { text, first, script }
    }

    /// What patterns look at.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The arguments of the program itself, out of the `argv` that it was made of.
    pub fn arguments<'a>(&self, argv: &'a [String]) -> &'a [String] {
        argv.get(self.first..).unwrap_or_default()
    }

    /// The script that an interpreter runs.
    pub fn script(&self) -> Option<&str> {
        self.script.as_deref()
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_python(name: &str) -> bool {
    let rest = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't'))
}

/// How many of the arguments after the interpreter are its own, and whether the next one is a module.
fn python_options(arguments: &[String]) -> (usize, bool) {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        match argument.as_str() {
            "-m" => return (at + 1, true),
            // Code given as text is not a program that we know.
            "-c" | "-" | "--" => return (at, false),
            "-X" | "-W" | "--check-hash-based-pycs" => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return (at, false),
        }
    }
    (at, false)
}

/// The value that `argv` or `environment` gives to the setting `name`, and what gave it.
pub fn asked_value(
    entry: &Entry,
    argv: &[String],
    environment: &BTreeMap<String, String>,
    name: &str,
) -> Option<Setting> {
    let flag = entry.flag.iter().find(|flag| flag.setting == name)?;
    asked_by(flag, argv, environment)
}

/// Everything that `argv` and `environment` ask for, by our names, in the order of the catalogue.
///
/// Where an argument and a variable ask for the same setting, the argument is taken: every engine that we know
/// does so.
pub fn asked_settings(
    entry: &Entry,
    argv: &[String],
    environment: &BTreeMap<String, String>,
) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for flag in &entry.flag {
        if settings.iter().any(|setting| setting.name == flag.setting) {
            continue;
        }
        settings.extend(asked_by(flag, argv, environment));
    }
    settings
}

fn asked_by(flag: &Flag, argv: &[String], environment: &BTreeMap<String, String>) -> Option<Setting> {
    let found = by_argument(flag, argv).or_else(|| by_variable(flag, environment))?;
    Some(Setting {
        name: flag.setting.clone(),
        value: found.0,
        source: found.1,
    })
}

fn by_argument(flag: &Flag, argv: &[String]) -> Option<(String, String)> {
    // The last one wins, as in every argument parser at work here.
    let named = argv.iter().enumerate().rev().find_map(|(at, argument)| {
        let (name, attached) = split(argument);
        let name = flag.names.iter().find(|known| same_flag(known, &name))?;
        let value = match (&flag.switch, attached) {
            (Some(switch), None) => switch.clone(),
            (_, Some(value)) => value.to_owned(),
            (None, None) => argv.get(at + 1)?.clone(),
        };
        if let Some(means) = &flag.means {
            return Some((means.clone(), format!("argument {name}")));
        }
        let value = match &flag.at {
            Some(pointer) => json_text(serde_json::from_str::<Value>(&value).ok()?.pointer(pointer)?)?,
            None => value,
        };
        Some((value, format!("argument {name}")))
    });
    named.or_else(|| {
        let at = argv.iter().position(|argument| flag.after.contains(argument))?;
        let value = argv.get(at + 1)?;
        (!value.starts_with('-')).then(|| (value.clone(), format!("argument after {}", argv[at])))
    })
}

fn by_variable(flag: &Flag, environment: &BTreeMap<String, String>) -> Option<(String, String)> {
    flag.env.iter().find_map(|name| {
        let value = environment.get(name).filter(|value| !value.is_empty())?;
        Some((value.clone(), format!("variable {name}")))
    })
}

/// The flag and its attached value: `--port=1` is `--port` and `1`.
fn split(argument: &str) -> (Cow<'_, str>, Option<&str>) {
    match argument.split_once('=') {
        Some((name, value)) if argument.starts_with('-') => (Cow::Borrowed(name), Some(value)),
        _ => (Cow::Borrowed(argument), None),
    }
}

/// Whether two flags are the same; vLLM takes `_` for `-` in long flags.
fn same_flag(known: &str, given: &str) -> bool {
    known == given || (given.starts_with("--") && given.contains('_') && known == given.replace('_', "-"))
}

/// A JSON value as a setting: absent and null say nothing.
pub(crate) fn json_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn text(line: &str) -> String {
        Command::of(&words(line)).text().to_owned()
    }

    #[test]
    fn interpreters_are_taken_off() {
        assert_eq!(
            text("/usr/bin/python3.12 -u -m sglang.launch_server --port 1"),
            "-m sglang.launch_server --port 1"
        );
        assert_eq!(text("/v/bin/python /v/bin/vllm serve m"), "vllm serve m");
        assert_eq!(
            text("python3 -X importtime -W ignore -O x/launch_server.py a"),
            "launch_server.py a"
        );
        assert_eq!(text("/opt/llama-server -m x"), "llama-server -m x");
        assert_eq!(text("pythonista serve"), "pythonista serve");
        assert_eq!(text("python3"), "python3");
        assert_eq!(text(""), "");
    }

    #[test]
    fn code_as_text_is_not_a_program() {
        let argv = vec!["python3".to_owned(), "-c".to_owned(), "vllm serve".to_owned()];
        assert_eq!(Command::of(&argv).text(), "-c vllm serve");
        let argv = vec!["bash".to_owned(), "-c".to_owned(), "vllm serve m".to_owned()];
        assert_eq!(Command::of(&argv).text(), "bash -c vllm serve m");
    }

    fn entry(flags: &str) -> Entry {
        toml::from_str(&format!("kind = 'vllm'\n{flags}")).unwrap()
    }

    fn asked(flags: &str, line: &str, env: &[(&str, &str)]) -> Vec<(String, String, String)> {
        let environment = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        asked_settings(&entry(flags), &words(line), &environment)
            .into_iter()
            .map(|setting| (setting.name, setting.value, setting.source))
            .collect()
    }

    fn triple(name: &str, value: &str, source: &str) -> (String, String, String) {
        (name.to_owned(), value.to_owned(), source.to_owned())
    }

    #[test]
    fn the_last_argument_wins_and_an_argument_beats_a_variable() {
        let flags = "[[flag]]\nsetting='port'\nnames=['--port','-p']\nenv=['PORT']";
        assert_eq!(
            asked(flags, "x --port 1 --port=2", &[("PORT", "3")]),
            vec![triple("port", "2", "argument --port")]
        );
        assert_eq!(
            asked(flags, "x", &[("PORT", "3")]),
            vec![triple("port", "3", "variable PORT")]
        );
        assert_eq!(asked(flags, "x --port", &[]), vec![]);
        assert_eq!(
            asked(flags, "x -p 5", &[]),
            vec![triple("port", "5", "argument -p")]
        );
    }

    #[test]
    fn switches_json_and_positions() {
        let flags = "
            [[flag]]\nsetting='fusion'\nnames=['--enable-fusion']\nswitch='true'
            [[flag]]\nsetting='algorithm'\nnames=['--speculative-config']\nat='/method'
            [[flag]]\nsetting='model'\nnames=['--model']\nafter=['serve']";
        assert_eq!(
            asked(
                flags,
                r#"vllm serve m --enable_fusion --speculative-config {"method":"eagle3"}"#,
                &[]
            ),
            vec![
                triple("fusion", "true", "argument --enable-fusion"),
                triple("algorithm", "eagle3", "argument --speculative-config"),
                triple("model", "m", "argument after serve"),
            ]
        );
        assert_eq!(asked(flags, "vllm serve --port 1", &[]), vec![]);
    }
}
