//! Ends that look alike and are not, and what lives and does not answer.

use shakedown_model::{Confidence, DiagnosedState, Verdict};

use crate::{code, judge};

const LOADING: &str = "0.00.001.878 I srv  llama_server: initializing ...\n0.00.005.743 I srv    load_model: loading model 'models/gemma-3-270m-q4_k_m.gguf'\n";

#[test]
fn an_unflushed_log_and_a_signal() {
    let killed = judge(LOADING, r#"{"exit": "signal 9"}"#);
    assert_eq!(killed.state, DiagnosedState::KilledFromOutside);
    assert_eq!(code(&killed), "killed-by-signal");
    let crashed = judge(LOADING, r#"{"exit": "signal 11"}"#);
    assert_ne!(code(&crashed), "killed-by-signal");
}

#[test]
fn status_137_with_and_without_the_kernels_word() {
    let by_kernel = judge(
        LOADING,
        r#"{"exit": 137, "dmesg": ["Out of memory: Killed process 77 (llama-server) total-vm:9kB"]}"#,
    );
    assert_eq!(by_kernel.first().unwrap().class, "oom.host_killed");
    assert_eq!(by_kernel.state, DiagnosedState::Failed);
    let by_cgroup = judge(LOADING, r#"{"exit": 137, "cgroup": "oom 1 oom_kill 1"}"#);
    assert_eq!(by_cgroup.first().unwrap().class, "oom.host_killed");
    let by_somebody = judge(
        LOADING,
        r#"{"exit": 137, "dmesg": ["usb 1-1: new device"], "cgroup": "oom_kill 0"}"#,
    );
    assert_eq!(by_somebody.state, DiagnosedState::KilledFromOutside);
    assert_eq!(by_somebody.confidence, Confidence::Certain);
    let not_known = judge(LOADING, r#"{"exit": 137}"#);
    assert_eq!(not_known.state, DiagnosedState::KilledFromOutside);
    assert_ne!(not_known.confidence, Confidence::Certain);
}

#[test]
fn alive_is_not_dead() {
    let alive = judge(LOADING, r#"{"processes": ["llama-server running, state R"]}"#);
    assert_eq!(alive.state, DiagnosedState::StillLoading);
    assert_eq!(alive.first().unwrap().finding.verdict, Verdict::Info);
    let hung = judge(
        LOADING,
        r#"{"processes": ["llama-server pid 77"], "proc": "state D (disk sleep), no new output for 40 min"}"#,
    );
    assert_eq!(hung.state, DiagnosedState::Stalled);
    let silent = judge(
        LOADING,
        r#"{"processes": ["llama-server running"], "log_age_s": 4000}"#,
    );
    assert_eq!(silent.state, DiagnosedState::Stalled);
    assert_eq!(silent.confidence, Confidence::Possible);
    let nothing = judge(LOADING, "");
    assert_eq!(nothing.state, DiagnosedState::Unknown);
    assert!(!nothing.look_next.is_empty());
}

#[test]
fn sigterm_that_is_reported_as_an_exception() {
    let log = "(EngineCore pid=9) INFO 11-30 23:31:36 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'\n(EngineCore pid=9) INFO 11-30 23:31:55 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM\n(EngineCore pid=9) ERROR 11-30 23:31:55 [core.py:1510] EngineCore failed to start.\n(EngineCore pid=9) ERROR 11-30 23:31:55 [core.py:1510] Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.\n";
    let diagnosis = judge(log, "");
    assert_eq!(diagnosis.state, DiagnosedState::KilledFromOutside);
    assert_eq!(code(&diagnosis), "stopped-by-sigterm");
    // The launcher's own signal after a failure is no cause.
    let failed = judge(
        "(EngineCore pid=9) INFO 11-30 23:31:36 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'\n(EngineCore pid=9) ERROR 11-30 23:31:50 [core.py:1510] RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist\n(Worker_TP1 pid=10) INFO 11-30 23:31:55 [core.py:1454] [shutdown] Worker: trigger received signal=SIGTERM\n",
        "",
    );
    assert_eq!(code(&failed), "nvcc-missing");
}

#[test]
fn a_load_timeout_with_a_kill_is_the_kill() {
    let log = "time=2026-01-01T00:00:00Z level=INFO source=server.go:1 msg=\"waiting for llama runner to start responding\"\ntime=2026-01-01T00:05:00Z level=ERROR source=sched.go:1 msg=\"error loading llama server\" error=\"timed out waiting for llama runner to start - progress 0.20 - \"\n";
    assert_eq!(code(&judge(log, "")), "load-timeout");
    let killed = judge(
        log,
        r#"{"dmesg": ["Memory cgroup out of memory: Killed process 12 (ollama)"]}"#,
    );
    assert_eq!(killed.first().unwrap().class, "oom.host_killed");
}

#[test]
fn opposite_advice() {
    let wrapped = |inner: &str| {
        format!(
            "[2026-05-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=9.1 GB\n[2026-05-01 10:00:05 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/a.py\", line 1, in f\nException: Capture cuda graph failed: {inner}\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
        )
    };
    let class = |inner: &str| judge(&wrapped(inner), "").first().unwrap().class.clone();
    assert_eq!(
        class("CUDA out of memory. Tried to allocate 2.00 MiB."),
        "oom.graph_capture"
    );
    assert_eq!(
        class("No supported CUDA architectures found for major versions [9, 10]."),
        "arch.backend_unsupported"
    );
    assert_eq!(
        class("no kernel image is available for execution on the device"),
        "arch.kernel_missing"
    );
    assert_eq!(
        class("Command '['/usr/bin/gcc', '/tmp/x.c']' returned non-zero exit status 1."),
        "jit.subprocess"
    );
    assert!(class("the moon is full").starts_with("unknown."));
}

#[test]
fn facts_refute_words() {
    let log = "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n";
    assert_eq!(judge(log, "").first().unwrap().class, "lib.cuda_major_mismatch");
    let unreadable = judge(log, r#"{"files": {"/usr/lib/libcudart.so.12": "mode 000"}}"#);
    assert_eq!(unreadable.first().unwrap().class, "fs.permission");
    assert!(
        unreadable
            .ruled_out
            .iter()
            .any(|other| other.code == "cuda-major-differs")
    );
    let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    assert!(judge(oom, "").first().unwrap().class.starts_with("oom."));
    let held = judge(
        oom,
        r#"{"processes": ["VLLM::Worker_TP0 pid 9 (left over from the earlier run)"]}"#,
    );
    assert_eq!(held.first().unwrap().class, "oom.orphan_process");
}

#[test]
fn unknown_says_so_and_shows_what_is_unusual() {
    let log = "[2026-05-01 10:00:00 TP0] Load weight begin. avail mem=9.1 GB\n[2026-05-01 10:00:01 TP0] all is fine\n[2026-05-01 10:00:05 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/odd.py\", line 7, in wobble\n    x()\nWobbleError: the flux is inverted\n[2026-05-01 10:00:06] Received sigquit from a child process. It usually means the child failed.\n";
    let diagnosis = judge(log, "");
    assert_eq!(diagnosis.state, DiagnosedState::Unknown);
    assert_eq!(diagnosis.exit().code(), 5);
    assert_eq!(diagnosis.confidence, Confidence::Possible);
    assert!(diagnosis.verdict.contains("WobbleError"), "{}", diagnosis.verdict);
    assert!(diagnosis.unusual.iter().any(|line| line.line == Some(6)));
    assert!(!diagnosis.look_next.is_empty());
}

#[test]
fn never_started() {
    let diagnosis = judge(
        "",
        r#"{"processes": ["no sglang process"], "sockets": ["nothing on 30000"]}"#,
    );
    assert_eq!(diagnosis.state, DiagnosedState::NeverStarted);
}
