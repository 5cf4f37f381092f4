//! What does not change the cause must not change the verdict.

use shakedown_diagnose::{Case, CaseResult, Evidence};

use crate::{DIAGNOSER, cases_dir};

/// Noise of a start that was going on before the case's lines, as another rank prints it.
const BEFORE: &str = "[2026-01-01 00:00:00 TP7] Using default HuggingFace chat template with detected content format: string\n[2026-01-01 00:00:00 TP7] Ignore import error when loading sglang.srt.models.foo: No module named 'foo'\n/x/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.\n";

fn text(case: &Case) -> String {
    std::fs::read_to_string(case.dir.join("server.log")).unwrap()
}

/// The same of a vLLM worker.
const BEFORE_VLLM: &str = "(Worker_TP7 pid=4017) INFO 01-01 00:00:00 [importing.py:53] Triton module has been replaced with a placeholder.\n(Worker_TP7 pid=4017) WARNING 01-01 00:00:00 [symm_mem.py:58] SymmMemCommunicator: Device capability 8.9 not supported, communicator is not available.\n/x/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.\n";

/// Judges `case` with its log changed, and tells what is no longer right.
fn still_right(case: &Case, log: String) -> Result<(), String> {
    let facts = case.evidence().unwrap().facts;
    let diagnosis = DIAGNOSER
        .diagnose(Evidence::new().with_log("server.log", log).with_facts(facts))
        .unwrap();
    let mut truth = case.truth.clone();
    truth.line = None;
    let result = CaseResult::new(&case.name, &truth, &diagnosis);
    if result.right {
        Ok(())
    } else {
        Err(format!(
            "{}: {} {} ({})",
            case.name, result.code, result.class, diagnosis.verdict
        ))
    }
}

/// The cases that the evidence decides.
fn decided() -> Vec<Case> {
    ["handed", "real", "threads"]
        .iter()
        .flat_map(|name| Case::all_in(&cases_dir(name)).unwrap())
        .filter(|case| !case.truth.undecided)
        .collect()
}

/// Each line changed by itself.
fn each_line(log: &str, change: impl Fn(&str) -> String) -> String {
    let changed: Vec<String> = log.lines().map(change).collect();
    format!("{}\n", changed.join("\n"))
}

fn all(change: impl Fn(&Case, &str) -> Option<String>) {
    let mut faults = Vec::new();
    let mut tried = 0;
    for case in decided() {
        if let Some(log) = change(&case, &text(&case)) {
            tried += 1;
            if let Err(fault) = still_right(&case, log) {
                faults.push(fault);
            }
        }
    }
    assert!(tried > 10, "{tried}");
    assert!(
        faults.is_empty(),
        "{} of {tried}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn windows_line_ends() {
    all(|_, log| Some(log.replace("\r\n", "\n").replace('\n', "\r\n")));
}

#[test]
fn colours() {
    all(|_, log| {
        Some(
            log.lines()
                .enumerate()
                .map(|(number, line)| match number % 3 {
                    0 => format!("\u{1b}[0;36m{line}\u{1b}[0m\n"),
                    1 => format!("\u{1b}[1m\u{1b}[31m{line}\u{1b}[39m\u{1b}[22m\n"),
                    _ => format!("{line}\u{1b}[K\n"),
                })
                .collect(),
        )
    });
}

#[test]
fn container_and_journal_prefixes() {
    all(|_, log| {
        Some(each_line(log, |line| {
            format!("2026-11-30T23:41:41.123456789Z stderr F {line}")
        }))
    });
    all(|_, log| {
        Some(each_line(log, |line| {
            format!("Nov 30 23:41:41 node-1 python3[4242]: {line}")
        }))
    });
    all(|_, log| Some(each_line(log, |line| format!("server-1  | {line}"))));
}

#[test]
fn every_line_twice() {
    all(|_, log| Some(each_line(log, |line| format!("{line}\n{line}"))));
}

#[test]
fn the_whole_log_twice() {
    all(|_, log| Some(format!("{log}{log}")));
}

#[test]
fn noise_before_and_a_cut_head() {
    all(|_, log| {
        // One log is one engine's: another's noise would change what its marks mean.
        let noise = if log.contains("pid=") { BEFORE_VLLM } else { BEFORE };
        let long = format!("{}{log}", noise.repeat(50));
        // Cut in the middle of a line of the noise.
        Some(long[97..].to_owned())
    });
}

#[test]
fn a_cut_tail() {
    // Little of what follows the line that shows the cause is needed.
    all(|case, log| {
        let line = case.truth.line?;
        let keep: Vec<&str> = log.lines().take(usize::try_from(line).unwrap() + 4).collect();
        Some(keep.join("\n"))
    });
}

#[test]
fn other_ranks() {
    all(|_, log| {
        log.contains("TP0").then(|| {
            log.replace("TP0", "TP5")
                .replace("rank0", "rank5")
                .replace("rank=0", "rank=5")
        })
    });
}

#[test]
fn interleaved_with_other_ranks() {
    all(|case, log| {
        // A client's report or a shell's transcript is not interleaved with ranks.
        if case.truth.family == ["benchmark client"] || case.name.starts_with("llamacpp") {
            return None;
        }
        let other = "[2026-01-01 00:00:00 TP7] Using default HuggingFace chat template with detected content format: string";
        let mut out = String::new();
        for (number, line) in log.lines().enumerate() {
            out.push_str(line);
            out.push('\n');
            if number % 2 == 1 && !line.starts_with(' ') {
                out.push_str(other);
                out.push('\n');
            }
        }
        Some(out)
    });
}

#[test]
fn all_ranks_fail_alike() {
    let trace = |rank: usize| {
        format!(
            "[2026-05-01 10:00:0{rank} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/a.py\", line 1, in f\nRuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n\n"
        )
    };
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        let log: String = order.iter().map(|rank| trace(*rank)).collect();
        let diagnosis = crate::judge(&log, "");
        assert_eq!(crate::code(&diagnosis), "nvcc-missing");
        assert_eq!(crate::lines(&diagnosis)[0], 3);
        assert_eq!(
            diagnosis.first().unwrap().process.as_deref(),
            Some(format!("TP{}", order[0]).as_str()),
            "the first rank to fail is the one that is quoted"
        );
    }
}
