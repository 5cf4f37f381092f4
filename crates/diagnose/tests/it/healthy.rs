//! Healthy logs raise nothing; one true failure among their noise is found, at its line.

use proptest::test_runner::{Config, TestRunner};
use shakedown_model::{DiagnosedState, Verdict};

use crate::{code, judge, lines};

/// Every line of noise that a healthy start may hold, as an engine prints it: without stamp and rank.
const NOISE: [&str; 22] = [
    "Ignore import error when loading sglang.srt.models.deepseek_janus_pro: No module named 'timm'",
    "Ignore import error when loading sglang.srt.models.mllama: cannot import name 'x' from 'transformers'",
    "Ignore import error when loading sglang.srt.multimodal.processors.foo: libfoo.so.1: cannot open shared object file: No such file or directory",
    "Endpoint '/get_server_info' is deprecated and will be removed in a future version. Please use '/server_info' instead.",
    "Using default HuggingFace chat template with detected content format: string",
    "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. To silence this warning, specify --disable-custom-all-reduce explicitly.",
    "Setup Custom allreduce failed with peer access is not supported between these two devices. To silence this warning, specify --disable-custom-all-reduce explicitly.",
    "TorchSymmMemCommunicator: Device capability 12 not supported, communicator is not available.",
    "SymmMemCommunicator: Device capability 8.9 not supported, communicator is not available.",
    "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative algorithm. You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental overlap scheduler.",
    "Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting --max-running-requests.",
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
    "DeepSeek MTP does not require setting speculative_draft_model_path.",
    "Compute capability below sm80. Use float16 due to lack of bfloat16 support.",
    "Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!",
    "No available shared memory broadcast block found in 60 seconds.",
    "Reducing Torch parallelism from 64 threads to 1 to avoid unnecessary CPU contention.",
    "Fail to set RLIMIT_STACK: current limit exceeds maximum limit",
    "Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit",
    "Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /x/E=64,N=768.json",
    "Attention backend not specified. Use flashinfer backend by default.",
    "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, rid=HEALTH_CHECK_1767323045.12",
];

/// Noise that carries no SGLang prefix.
const BARE: [&str; 6] = [
    "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0",
    "host-1:77:77 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
    "/x/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.",
    "NOTICE: server default port will be changed to :9931 in a future release",
    "common_fit_params: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort",
    "load: control-looking token: 128247 '</s>' was not control-type; this is probably a bug in the model. its type will be overridden",
];

/// Stages of a start, as every rank prints them.
const STAGES: [&str; 9] = [
    "Init torch distributed begin.",
    "Init torch distributed ends. elapsed=1.20 s, mem usage=0.53 GB",
    "Load weight begin. avail mem=78.20 GB",
    "Load weight end. elapsed=31.2 s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=18.10 GB.",
    "Using KV cache dtype: torch.bfloat16",
    "KV Cache is allocated. #tokens: 400000, K size: 24.00 GB, V size: 24.00 GB",
    "Memory pool end. avail mem=9.10 GB",
    "Capture cuda graph begin. This can take up to several minutes. avail mem=9.05 GB",
    "Capture cuda graph end. Time elapsed: 12.00 s. mem usage=1.10 GB. avail mem=7.90 GB.",
];

fn stamp(second: usize) -> String {
    format!("2026-05-01 10:{:02}:{:02}", (second / 60) % 60, second % 60)
}

/// A healthy start on `ranks` ranks with all the noise; `seed` moves the noise about.
fn start(ranks: usize, seed: usize) -> Vec<String> {
    let mut log = vec![format!(
        "[{}] server_args=ServerArgs(model_path='/m', host='127.0.0.1', port=30000, tp_size={ranks}, api_key=None)",
        stamp(0)
    )];
    let mut second = 0;
    let mut noise = seed;
    for stage in STAGES {
        for rank in 0..ranks {
            second += 1;
            log.push(format!("[{} TP{rank}] {stage}", stamp(second)));
            if (rank + seed).is_multiple_of(3) {
                log.push(format!(
                    "[{} TP{rank}] {}",
                    stamp(second),
                    NOISE[noise % NOISE.len()]
                ));
                noise += 1;
            }
            if (rank + noise).is_multiple_of(5) {
                log.push(BARE[noise % BARE.len()].to_owned());
            }
        }
    }
    for (rank, text) in NOISE.iter().enumerate() {
        log.push(format!("[{} TP{}] {text}", stamp(second), rank % ranks));
    }
    log.extend(BARE.iter().map(|text| (*text).to_owned()));
    for text in [
        "max_total_num_tokens=400000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=32768, available_gpu_mem=7.80 GB",
        "INFO:     Started server process [4242]",
        "INFO:     Waiting for application startup.",
        "INFO:     Application startup complete.",
        "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
        "INFO:     127.0.0.1:40000 - \"GET /model_info HTTP/1.1\" 200 OK",
        "INFO:     127.0.0.1:40002 - \"GET /props HTTP/1.1\" 404 Not Found",
        "The server is fired up and ready to roll!",
        "Decode batch, #running-req: 1, #token: 353, token usage: 0.00, cuda graph: True, gen throughput (token/s): 89.50, #queue-req: 0",
    ] {
        log.push(format!("[{}] {text}", stamp(second + 1)));
    }
    log
}

#[test]
fn a_healthy_start_with_all_the_noise() {
    for seed in 0..12 {
        let diagnosis = judge(&start(8, seed).join("\n"), "");
        let first = diagnosis.first().unwrap();
        assert_eq!(
            diagnosis.state,
            DiagnosedState::UpAndWell,
            "{seed}: {}",
            diagnosis.verdict
        );
        assert_eq!(first.finding.verdict, Verdict::Ok);
        assert!(
            diagnosis
                .findings
                .iter()
                .all(|finding| finding.finding.verdict != Verdict::Fail)
        );
        assert_eq!(diagnosis.exit().code(), 0);
        assert!(
            diagnosis.harmless.len() >= 12,
            "the noise is known: {}",
            diagnosis.harmless.len()
        );
    }
}

/// Failures as SGLang and its libraries print them: the traceback of one rank, and the code that it must get.
const FAILURES: [(&str, &str); 8] = [
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 3 has a total capacity of 79.1 GiB",
        "oom",
    ),
    (
        "RuntimeError: SiluAndMul failed with error code no kernel image is available for execution on the device",
        "kernel-not-built",
    ),
    (
        "ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory",
        "cuda-major-differs",
    ),
    (
        "ImportError: /x/sgl_kernel/common_ops.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib",
        "built-for-another-torch",
    ),
    (
        "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist",
        "nvcc-missing",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/root/.cache/flashinfer'",
        "permission-denied",
    ),
    (
        "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface'",
        "disk-full",
    ),
    (
        "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])",
        "architecture-not-supported",
    ),
];

#[test]
fn one_true_failure_hidden_in_the_noise() {
    let mut runner = TestRunner::new(Config::with_cases(64));
    runner
        .run(
            &(0_usize..1000, 0_usize..8, 0_usize..FAILURES.len(), 10_usize..90),
            |(seed, rank, which, percent)| {
                let mut log = start(8, seed);
                // It dies there: nothing of the healthy end follows, only what follows a death.
                let at = log.len() * percent / 100;
                let ready = log
                    .iter()
                    .position(|line| line.contains("max_total_num_tokens"))
                    .unwrap();
                let at = at.clamp(2, ready);
                log.truncate(at);
                let (text, expected) = FAILURES[which];
                log.push(format!(
                    "[{} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):",
                    stamp(900)
                ));
                log.push(
                    "  File \"/x/sglang/srt/managers/scheduler.py\", line 2490, in run_scheduler_process"
                        .to_owned(),
                );
                log.push("    scheduler = Scheduler(server_args, port_args)".to_owned());
                log.push(
                    "  File \"/x/sglang/srt/model_executor/model_runner.py\", line 287, in initialize"
                        .to_owned(),
                );
                log.push("    self.step()".to_owned());
                log.push(text.to_owned());
                let line = log.len() as u64;
                log.push(String::new());
                log.push(format!(
                    "[{}] Received sigquit from a child process. It usually means the child failed.",
                    stamp(901)
                ));
                let diagnosis = judge(&log.join("\n"), "");
                let first = diagnosis.first().unwrap();
                let code = code(&diagnosis).to_owned();
                let right = if expected == "oom" {
                    first.class.starts_with("oom.")
                } else {
                    code == expected
                };
                proptest::prop_assert!(right, "{} {} {}", code, first.class, text);
                proptest::prop_assert!(
                    lines(&diagnosis).contains(&line),
                    "{:?} lacks {}",
                    lines(&diagnosis),
                    line
                );
                proptest::prop_assert_eq!(diagnosis.state, DiagnosedState::Failed);
                let label = format!("TP{rank}");
                proptest::prop_assert_eq!(first.process.as_deref(), Some(label.as_str()));
                Ok(())
            },
        )
        .unwrap();
}

#[test]
fn the_port_story() {
    let mut log = start(8, 3);
    log.push("$ curl http://127.0.0.1:8000/v1/models".to_owned());
    log.push("curl: (7) Failed to connect to 127.0.0.1 port 8000 after 0 ms: Connection refused".to_owned());
    let diagnosis = judge(&log.join("\n"), "");
    assert_eq!(code(&diagnosis), "wrong-port");
    assert_eq!(diagnosis.state, DiagnosedState::UpElsewhere);
    assert_eq!(diagnosis.exit().code(), 0);
    assert!(
        diagnosis.verdict.contains("127.0.0.1:30000"),
        "{}",
        diagnosis.verdict
    );
    assert_eq!(diagnosis.address.as_deref(), Some("127.0.0.1:30000"));
}

#[test]
fn asked_for_and_not_in_force() {
    let mut log = start(2, 1);
    log[0] = log[0].replace("api_key=None", "enable_torch_symm_mem=True");
    let diagnosis = judge(&log.join("\n"), "");
    assert_eq!(code(&diagnosis), "symmetric-memory-not-in-force");
    assert_eq!(diagnosis.state, DiagnosedState::Impaired);
    // Without the flag the same line is noise.
    assert_eq!(
        judge(&start(2, 1).join("\n"), "").state,
        DiagnosedState::UpAndWell
    );
}
