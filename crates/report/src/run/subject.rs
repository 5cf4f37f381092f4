//! What was measured, and whether it counts.

use shakedown_model::{Finding, Load, PromptSource, RunDocument, RunEnd, Server, Stop, Verdict};

use crate::number::{counted, duration, figure};
use crate::style::Tone;
use crate::text::clean;
use crate::words;

/// The server: engine, model, address.
pub(super) fn server(server: &Server) -> String {
    let engine = match &server.engine {
        None => "unrecognised engine".to_owned(),
        Some(engine) => {
            let version = engine
                .version
                .as_ref()
                .map(|version| format!(" {version}"))
                .unwrap_or_default();
            let practice = engine.practice && engine.kind != shakedown_model::EngineKind::Practice;
            format!(
                "{}{}{version}",
                if practice { "practice server as " } else { "" },
                engine.kind
            )
        }
    };
    let model = server
        .model
        .as_ref()
        .map(|model| format!(", {model}"))
        .unwrap_or_default();
    clean(&format!("{engine}{model} at {}", server.url))
}

/// The load and the workload in one line.
pub(super) fn sent(document: &RunDocument) -> String {
    let mut parts = Vec::new();
    match document.load {
        Load::Closed { concurrency } => parts.push(counted(concurrency.into(), "stream")),
        Load::Open {
            rate,
            arrival,
            max_concurrency,
        } => {
            parts.push(format!(
                "{} requests/s ({})",
                figure(rate),
                words::arrival(arrival)
            ));
            parts.extend(max_concurrency.map(|most| format!("at most {most} in flight")));
        }
    }
    let each = match document.stop {
        Stop::Requests(requests) => counted(requests.into(), "request"),
        Stop::Seconds(seconds) => duration(seconds),
    };
    parts.push(match document.trials.len() {
        0 | 1 => each,
        trials => format!("{trials} trials of {each}"),
    });
    let workload = &document.workload;
    parts.push(format!(
        "at most {}",
        counted(workload.max_tokens.into(), "token")
    ));
    parts.push(match &workload.prompts {
        PromptSource::BuiltIn { .. } => format!("built-in prompts ({})", words::kinds(&workload.kinds)),
        PromptSource::File { path } => format!("prompts of {}", path.display()),
        PromptSource::Synthetic { tokens } => {
            format!("synthetic prompts of {}", counted((*tokens).into(), "token"))
        }
    });
    if !workload.stream {
        parts.push("not streamed".to_owned());
    }
    if document.cold {
        parts.push("a new connection each".to_owned());
    }
    clean(&parts.join(", "))
}

/// Whether the figures count, in one line.
pub(super) fn standing(document: &RunDocument) -> (&'static str, String, Tone) {
    if let Some((word, text, tone)) = words::run_end(document.end) {
        return (word, text.to_owned(), tone);
    }
    let count = |verdict| {
        document
            .findings
            .iter()
            .filter(|finding| finding.verdict == verdict)
            .count() as u64
    };
    let (faults, unknown, warnings) = (
        count(Verdict::Fail),
        count(Verdict::Unknown),
        count(Verdict::Warn),
    );
    if document
        .pooled
        .as_ref()
        .is_none_or(|metrics| metrics.successes() == 0)
    {
        ("not valid", "no request was answered".to_owned(), Tone::Bad)
    } else if faults > 0 {
        (
            "not valid",
            format!("{} against these figures", counted(faults, "finding")),
            Tone::Bad,
        )
    } else if unknown > 0 {
        (
            "not known to be valid",
            format!("{} could not be judged", counted(unknown, "point")),
            Tone::Warning,
        )
    } else if warnings > 0 {
        (
            "valid",
            format!("with {}", counted(warnings, "warning")),
            Tone::Warning,
        )
    } else {
        (
            "valid",
            "nothing was found against these figures".to_owned(),
            Tone::Good,
        )
    }
}

/// The findings to show, as they stand in the document: what is merely well is not news.
pub(super) fn findings(document: &RunDocument) -> impl Iterator<Item = &Finding> {
    document
        .findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Ok)
}

/// Why there are no figures, where there are none.
pub(super) fn without_figures(document: &RunDocument) -> Option<&'static str> {
    match (&document.pooled, document.end) {
        (Some(_), _) => None,
        (None, RunEnd::Running) => {
            Some("no figures: they are made when a run ends; its requests are in the bundle")
        }
        (None, _) => Some("no figures: no measured request ended"),
    }
}
