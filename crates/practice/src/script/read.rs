//! A script's TOML, read and checked.

use serde::Deserialize;
use shakedown_model::WriteKind;

use super::{Act, Body, Expect, Framing, HeadAt, Join, ScriptError, Step, Tear, Text, When};
use crate::shape::{Finish, ReasoningField, RoleContent};
use crate::sse::Style;

/// Most writes of a script with its repetitions written out.
const STEPS_CAP: u64 = 100_000;
/// Longest line that can be asked for, in megabytes.
const GIANT_CAP: u64 = 4_096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    reply: Reply,
    #[serde(default)]
    stream: Stream,
    #[serde(default)]
    step: Vec<RawStep>,
    expect: Option<Expect>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Reply {
    status: Option<u16>,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    error: Option<String>,
    framing: Option<Framing>,
    head: HeadAt,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Stream {
    crlf: bool,
    no_space: bool,
    event: Option<String>,
    reasoning: Option<ReasoningField>,
    continuous_usage: When,
}

/// What a step does, by its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Do {
    Role,
    Content,
    Reasoning,
    Tool,
    Finish,
    Usage,
    Error,
    Done,
    Comment,
    Raw,
    Giant,
    Endless,
    Cut,
    Reset,
    Stall,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    #[serde(rename = "do")]
    act: Do,
    at_ms: Option<f64>,
    repeat: Option<u32>,
    every_ms: Option<f64>,
    join: Option<Join>,
    parts: Option<usize>,
    tear_behind: Option<String>,
    tear_plus: Option<usize>,
    tear_gap_ms: Option<f64>,
    tear_framing: Option<bool>,
    content: Option<RoleContent>,
    text: Option<String>,
    hex: Option<String>,
    tokens: Option<u32>,
    finish: Option<String>,
    name: Option<String>,
    reason: Option<String>,
    when: Option<When>,
    message: Option<String>,
    code: Option<u16>,
    kind: Option<WriteKind>,
    megabytes: Option<u64>,
}

/// Reads a script.
pub(super) fn read(text: &str) -> Result<Body, ScriptError> {
    let file: File = toml::from_str(text).map_err(|error| ScriptError::Toml(error.to_string()))?;
    let fault = |why: &str| ScriptError::Script {
        script: file.name.clone(),
        why: why.to_owned(),
    };
    let name_ok = !file.name.is_empty()
        && file.name.len() <= 64
        && file
            .name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !name_ok {
        return Err(fault("a name is 1 to 64 letters, digits, '-', '_' and '.'"));
    }
    let mut steps = Vec::new();
    let mut at = 0;
    let mut writes = 0;
    for (index, raw) in file.step.into_iter().enumerate() {
        let failed = |why: String| ScriptError::Step {
            script: file.name.clone(),
            number: index + 1,
            why,
        };
        if let Some(Step { act, .. }) = steps.last()
            && matches!(act, Act::Cut | Act::Reset | Act::Stall | Act::Endless(_))
        {
            return Err(failed("nothing can follow the step before it".to_owned()));
        }
        let step = step(raw, at).map_err(failed)?;
        if step.at < at {
            return Err(failed("it is earlier than the step before it".to_owned()));
        }
        let torn = step.tear_gap * (parts(&step) - 1);
        if step.repeat > 1 && step.every < torn {
            return Err(failed("its parts take longer than every_ms".to_owned()));
        }
        at = step.at + step.every * u64::from(step.repeat - 1) + torn;
        writes += u64::from(step.repeat) * parts(&step);
        if writes > STEPS_CAP {
            return Err(failed(format!("more than {STEPS_CAP} steps in all")));
        }
        steps.push(step);
    }
    let Reply {
        status,
        content_type,
        headers,
        error,
        framing,
        head,
    } = file.reply;
    let status = status.unwrap_or(200);
    if !(200..=599).contains(&status) {
        return Err(fault("a status is 200 to 599"));
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if headers
        .iter()
        .any(|(name, value)| name.is_empty() || !name.bytes().all(token) || value.contains(['\r', '\n']))
    {
        return Err(fault(
            "a header has a name of letters, digits and '-', and a value of one line",
        ));
    }
    if error.is_some() && !steps.is_empty() {
        return Err(fault("an answer with `error` has no steps"));
    }
    let framing = framing.unwrap_or(if status == 200 {
        Framing::Chunked
    } else {
        Framing::Length
    });
    if error.is_some() && !matches!(framing, Framing::Length | Framing::Close) {
        return Err(fault(
            "an answer with `error` is framed by its length or the end of the connection",
        ));
    }
    let lazy = |step: &Step| matches!(step.act, Act::Giant(_) | Act::Endless(_));
    if framing == Framing::Length && steps.iter().any(lazy) {
        return Err(fault("a giant line or an endless stream has no length to tell"));
    }
    if steps.last().is_some_and(|step| step.join.is_some()) {
        return Err(fault("the last step has nothing to join"));
    }
    Ok(Body {
        name: file.name,
        about: file.about,
        status,
        content_type,
        headers,
        error,
        framing,
        head,
        style: Style {
            crlf: file.stream.crlf,
            no_space: file.stream.no_space,
            event: file.stream.event,
        },
        reasoning: file.stream.reasoning,
        continuous_usage: file.stream.continuous_usage,
        steps,
        expect: file.expect,
    })
}

fn step(raw: RawStep, before: u64) -> Result<Step, String> {
    let mut raw = raw;
    let at = match raw.at_ms.take() {
        Some(ms) => nanos(ms)?,
        None => before,
    };
    let repeat = raw.repeat.take().unwrap_or(1);
    if repeat == 0 {
        return Err("repeat is at least 1".to_owned());
    }
    let act = act(&mut raw)?;
    let every = match raw.every_ms.take() {
        Some(ms) => nanos(ms)?,
        None => 0,
    };
    let tear = match (raw.parts.take(), raw.tear_behind.take()) {
        (Some(_), Some(_)) => return Err("parts and tear_behind exclude each other".to_owned()),
        (Some(0 | 10_001..), None) => return Err("parts is 1 to 10000".to_owned()),
        (Some(parts), None) => Some(Tear::Parts(parts)),
        (None, Some(text)) => Some(Tear::Behind(text, raw.tear_plus.take().unwrap_or(0))),
        (None, None) => None,
    };
    let join = raw.join.take();
    if join.is_some() && tear.is_some() {
        return Err("a step is joined or torn, not both".to_owned());
    }
    let tear_gap = raw.tear_gap_ms.take().map_or(Ok(0), nanos)?;
    let tear_framing = raw.tear_framing.take().unwrap_or(false);
    if let Some(name) = leftover(&raw) {
        return Err(format!("`{name}` means nothing there"));
    }
    Ok(Step {
        at,
        repeat,
        every,
        join,
        tear,
        tear_gap,
        tear_framing,
        act,
    })
}

/// Most writes that a step makes each time.
fn parts(step: &Step) -> u64 {
    match &step.tear {
        None => 1,
        Some(Tear::Parts(parts)) => *parts as u64,
        Some(Tear::Behind(..)) => 2,
    }
}

fn act(raw: &mut RawStep) -> Result<Act, String> {
    let finish = |word: Option<String>| {
        word.map(|word| match word.as_str() {
            "stop" => Ok(Finish::Stop),
            "length" => Ok(Finish::Length),
            "tool_calls" => Ok(Finish::ToolCalls),
            _ => Err(format!(
                "finish reason {word} is none of stop, length, tool_calls"
            )),
        })
        .transpose()
    };
    Ok(match raw.act {
        Do::Role => Act::Role(raw.content.take().unwrap_or_default()),
        Do::Content => Act::Content {
            text: text(raw),
            finish: finish(raw.finish.take())?,
        },
        Do::Reasoning => Act::Reasoning(text(raw)),
        Do::Tool => Act::Tool {
            text: text(raw),
            name: raw.name.take(),
        },
        Do::Finish => Act::Finish(finish(raw.reason.take())?.unwrap_or(Finish::Stop)),
        Do::Usage => Act::Usage {
            when: raw.when.take().unwrap_or_default(),
            completion: raw.tokens.take(),
        },
        Do::Error => Act::Error {
            message: raw
                .message
                .take()
                .unwrap_or_else(|| "the engine gave up".to_owned()),
            code: raw.code.take().unwrap_or(500),
        },
        Do::Done => Act::Done,
        Do::Comment => Act::Comment(raw.text.take().unwrap_or_default()),
        Do::Raw => Act::Raw {
            bytes: match (raw.text.take(), raw.hex.take()) {
                (Some(text), None) => text.into_bytes(),
                (None, Some(hex)) => bytes(&hex)?,
                _ => return Err("raw needs text or hex".to_owned()),
            },
            tokens: raw.tokens.take().unwrap_or(0),
            kind: raw.kind.take().unwrap_or(WriteKind::Raw),
        },
        Do::Giant => match raw.megabytes.take() {
            Some(megabytes @ 1..=GIANT_CAP) => Act::Giant(megabytes << 20),
            _ => return Err(format!("giant needs megabytes, 1 to {GIANT_CAP}")),
        },
        Do::Endless => Act::Endless(nanos(raw.every_ms.take().unwrap_or(1.0))?),
        Do::Cut => Act::Cut,
        Do::Reset => Act::Reset,
        Do::Stall => Act::Stall,
    })
}

fn text(raw: &mut RawStep) -> Text {
    match (raw.text.take(), raw.tokens.take()) {
        (None, tokens) => Text::Words(tokens.unwrap_or(1)),
        (Some(text), tokens) => {
            let tokens = tokens.unwrap_or_else(|| crate::tokenizer::count(&text));
            Text::Given(text, tokens)
        }
    }
}

fn nanos(ms: f64) -> Result<u64, String> {
    if (0.0..=86_400_000.0).contains(&ms) {
        Ok((ms * 1e6).round() as u64)
    } else {
        Err("a time is 0 ms to a day".to_owned())
    }
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(byte).to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()
        .ok_or("hex has only hexadecimal digits and blanks")?;
    if digits.len() % 2 == 1 {
        return Err("hex has two digits a byte".to_owned());
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A member that no part of the step has taken.
fn leftover(raw: &RawStep) -> Option<&'static str> {
    [
        ("tear_plus", raw.tear_plus.is_some()),
        ("content", raw.content.is_some()),
        ("text", raw.text.is_some()),
        ("hex", raw.hex.is_some()),
        ("tokens", raw.tokens.is_some()),
        ("finish", raw.finish.is_some()),
        ("name", raw.name.is_some()),
        ("reason", raw.reason.is_some()),
        ("when", raw.when.is_some()),
        ("message", raw.message.is_some()),
        ("code", raw.code.is_some()),
        ("kind", raw.kind.is_some()),
        ("megabytes", raw.megabytes.is_some()),
    ]
    .into_iter()
    .find_map(|(name, there)| there.then_some(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(text: &str) -> Result<Vec<Step>, ScriptError> {
        read(&format!("name = \"t\"\n{text}")).map(|body| body.steps)
    }

    #[test]
    fn times_are_absolute_and_default_to_the_step_before() {
        let steps = steps(
            r#"
            [[step]]
            at_ms = 1.5
            do = "content"
            repeat = 3
            every_ms = 2
            [[step]]
            do = "done"
            "#,
        )
        .unwrap();
        assert_eq!(steps[0].at, 1_500_000);
        assert_eq!(steps[1].at, 5_500_000);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        for (text, word) in [
            ("[[step]]\ndo = \"role\"\ntext = \"x\"", "`text` means nothing"),
            (
                "[[step]]\ndo = \"cut\"\n[[step]]\ndo = \"done\"",
                "nothing can follow",
            ),
            (
                "[[step]]\nat_ms = 5\ndo = \"done\"\n[[step]]\nat_ms = 4\ndo = \"done\"",
                "earlier",
            ),
            ("[[step]]\ndo = \"finish\"\nreason = \"bored\"", "bored"),
            ("[[step]]\ndo = \"raw\"\nhex = \"abc\"", "two digits"),
            ("[[step]]\ndo = \"content\"\nrepeat = 4000000000", "more than"),
            ("[[step]]\ndo = \"content\"\njoin = \"write\"", "nothing to join"),
            ("[[step]]\nat_ms = -1\ndo = \"done\"", "0 ms"),
            ("[[step]]\ndo = \"dance\"", "unknown variant"),
            ("[reply]\nstatus = 99", "status"),
            ("[reply]\nheaders = [[\"X\", \"a\\r\\nb\"]]", "one line"),
        ] {
            let error = steps(text).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,300}") {
            let _ = read(&text);
        }
    }
}
