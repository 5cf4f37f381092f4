//! One primary cause, and the others linked to what explains them.

use shakedown_model::{Finding, StackFinding, Verdict};

/// Codes that explain others, in the order in which they are mended.
const RANK: [&str; 19] = [
    "stack-overlap",
    "stack-python-tag",
    "stack-torch-cpu-only",
    "stack-library-wrong-major",
    "stack-file-missing",
    "stack-glibc-too-old",
    "stack-pin-conflict",
    "stack-pin-missing",
    "stack-library-missing",
    "stack-version-missing",
    "stack-symbol-undefined",
    "stack-driver-mismatch",
    "stack-driver-too-old",
    "stack-cuda-compat",
    "stack-flashinfer-trio",
    "stack-gpu-not-covered",
    "stack-ptxas-too-old",
    "stack-cudnn-check",
    "stack-toolchain",
];

/// What a code can be explained by, nearest first. The explanation must be about the same package, or name it.
const EXPLAINED_BY: [(&str, &[&str]); 8] = [
    (
        "stack-symbol-undefined",
        &[
            "stack-overlap",
            "stack-python-tag",
            "stack-torch-cpu-only",
            "stack-library-wrong-major",
            "stack-file-missing",
            "stack-pin-conflict",
            "stack-file-modified",
        ],
    ),
    (
        "stack-library-missing",
        &[
            "stack-overlap",
            "stack-torch-cpu-only",
            "stack-file-missing",
            "stack-pin-missing",
            "stack-pin-conflict",
        ],
    ),
    (
        "stack-library-wrong-major",
        &["stack-overlap", "stack-torch-cpu-only"],
    ),
    (
        "stack-cuda-majors-mixed",
        &["stack-library-wrong-major", "stack-pin-conflict"],
    ),
    (
        "stack-version-missing",
        &["stack-glibc-too-old", "stack-pin-conflict"],
    ),
    ("stack-flashinfer-trio", &["stack-pin-conflict"]),
    ("stack-file-modified", &["stack-overlap"]),
    ("stack-pin-missing", &["stack-overlap"]),
];

/// Codes of what keeps a package from being imported.
const STOPS_LOADING: [&str; 8] = [
    "stack-overlap",
    "stack-python-tag",
    "stack-torch-cpu-only",
    "stack-library-wrong-major",
    "stack-library-missing",
    "stack-version-missing",
    "stack-glibc-too-old",
    "stack-symbol-undefined",
];

fn rank(code: &str) -> usize {
    RANK.iter().position(|c| *c == code).unwrap_or(RANK.len())
}

fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Fail => 0,
        Verdict::Unknown => 1,
        Verdict::Warn => 2,
        Verdict::Info => 3,
        Verdict::Ok => 4,
    }
}

/// Whether `cause` is about the package that `effect` is about, or mentions it, or is about torch, on which all rest.
fn concerns(cause: &Finding, effect: &Finding) -> bool {
    let names = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .any(|word| word == effect.subject)
    };
    cause.subject == effect.subject
        || names(&cause.subject)
        || names(&cause.what)
        || (cause.subject == "torch"
            && effect.code == "stack-symbol-undefined"
            && effect.why.contains("another torch"))
        || cause.code == "stack-torch-cpu-only"
        || brings(cause, effect)
}

/// Whether the package that `cause` is about is the wheel that brings what `effect` misses.
fn brings(cause: &Finding, effect: &Finding) -> bool {
    cause.code == "stack-pin-missing"
        && effect
            .fixes
            .iter()
            .filter_map(|f| f.command.as_deref())
            .any(|c| c.split(' ').any(|word| word == cause.subject))
}

/// Orders findings and links each to what explains it.
pub(super) fn link(mut findings: Vec<Finding>) -> Vec<StackFinding> {
    findings.sort_by(|a, b| {
        severity(a.verdict)
            .cmp(&severity(b.verdict))
            .then(rank(&a.code).cmp(&rank(&b.code)))
            .then(a.subject.cmp(&b.subject))
    });
    let causes: Vec<Option<String>> = findings
        .iter()
        .enumerate()
        .map(|(at, effect)| {
            let (_, explains) = EXPLAINED_BY.iter().find(|(code, _)| *code == effect.code)?;
            explains.iter().find_map(|code| {
                let cause = findings.iter().enumerate().find(|(i, f)| {
                    *i != at && f.code == *code && f.verdict != Verdict::Info && concerns(f, effect)
                });
                cause.map(|(_, f)| f.code.clone())
            })
        })
        .collect();
    // What keeps something from loading, or explains that, comes before what is merely not as it should be.
    let stops = |finding: &Finding| STOPS_LOADING.contains(&finding.code.as_str());
    let root = |at: usize, verdict: Verdict| causes[at].is_none() && findings[at].verdict == verdict;
    let explains = |at: usize| {
        let cause = &findings[at];
        findings.iter().zip(&causes).any(|(effect, by)| {
            by.as_deref() == Some(cause.code.as_str())
                && stops(effect)
                && effect.verdict == Verdict::Fail
                && concerns(cause, effect)
        })
    };
    let places = 0..findings.len();
    let primary = places
        .clone()
        .find(|at| root(*at, Verdict::Fail) && (stops(&findings[*at]) || explains(*at)))
        .or_else(|| places.clone().find(|at| root(*at, Verdict::Fail)))
        .or_else(|| {
            places
                .clone()
                .find(|at| root(*at, Verdict::Warn) && rank(&findings[*at].code) < RANK.len())
        });
    let mut linked: Vec<StackFinding> = findings
        .into_iter()
        .zip(causes)
        .enumerate()
        .map(|(at, (finding, caused_by))| StackFinding {
            finding,
            primary: Some(at) == primary,
            caused_by,
        })
        .collect();
    // The cause to mend first comes first, whatever else is as bad.
    linked.sort_by_key(|f| !f.primary);
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symptoms_follow_their_cause() {
        let linked = link(vec![
            Finding::new("stack-symbol-undefined", Verdict::Fail, "sgl-kernel", "x")
                .why("built for another torch than 2"),
            Finding::new("stack-hook", Verdict::Info, "sitecustomize.py", "x"),
            Finding::new(
                "stack-pin-conflict",
                Verdict::Fail,
                "torch",
                "sglang wants torch==2.9.1, 2.8.0 is installed",
            ),
        ]);
        assert_eq!(linked[0].finding.code, "stack-pin-conflict");
        assert!(linked[0].primary);
        assert_eq!(linked[1].caused_by.as_deref(), Some("stack-pin-conflict"));
        assert_eq!(linked.iter().filter(|f| f.primary).count(), 1);
    }

    #[test]
    fn what_stops_loading_comes_first() {
        let missing = Finding::new(
            "stack-library-missing",
            Verdict::Fail,
            "torch",
            "libcudart.so.12 is not found",
        )
        .fix(
            "x",
            Some("pip install nvidia-cuda-runtime-cu12".into()),
            shakedown_model::Applicability::Review,
        );
        let linked = link(vec![
            missing,
            Finding::new(
                "stack-pin-conflict",
                Verdict::Fail,
                "flashinfer-python",
                "sglang wants another",
            ),
            Finding::new(
                "stack-pin-missing",
                Verdict::Fail,
                "nvidia-cuda-nvrtc-cu12",
                "foo wants it",
            ),
            Finding::new(
                "stack-pin-missing",
                Verdict::Fail,
                "nvidia-cuda-runtime-cu12",
                "foo wants it",
            ),
        ]);
        assert_eq!(linked[0].finding.subject, "nvidia-cuda-runtime-cu12");
        let missing = linked.iter().find(|f| f.finding.subject == "torch").unwrap();
        assert_eq!(missing.caused_by.as_deref(), Some("stack-pin-missing"));
    }

    #[test]
    fn nothing_wrong_has_no_cause() {
        assert!(
            link(vec![Finding::new("stack-hook", Verdict::Info, "a", "b")])
                .iter()
                .all(|f| !f.primary)
        );
    }
}
