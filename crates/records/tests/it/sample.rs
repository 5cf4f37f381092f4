//! Documents and records that tests write.

use std::collections::BTreeMap;

use shakedown_model::{
    Acceptance, AcceptanceSource, Api, Applicability, Arrival, CacheHits, Channel, ChunkSizes, Client,
    ClientHealth, Distribution, Engine, EngineKind, Evidence, Finding, FinishReason, InForce, LaunchRef,
    Load, Metrics, OutcomeCount, Percentile, Phase, PromptKind, PromptRef, PromptSource, RUN_SCHEMA, Rate,
    ReadLag, RequestOutcome, RequestRecord, RunDocument, RunEnd, Sampling, Server, Setting, Stamps, Stop,
    TextRef, TokenSource, Tokens, Trial, Truth, Verdict, Workload,
};

pub(crate) fn document(id: &str) -> RunDocument {
    RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        id: id.to_owned(),
        tool_version: "0.1.0".to_owned(),
        started: "2026-12-01T14:30:12Z".to_owned(),
        origin_unix_us: 1_796_135_412_000_000,
        origin_monotonic_ns: 1_234_567_890,
        end: RunEnd::Running,
        duration_s: None,
        server: Server {
            url: "http://127.0.0.1:30000".to_owned(),
            ..Server::default()
        },
        launch: LaunchRef::default(),
        client: Client::default(),
        workload: Workload {
            api: Api::Chat,
            prompts: PromptSource::default(),
            kinds: vec![PromptKind::Chat],
            max_tokens: 128,
            sampling: Sampling::default(),
            stream: true,
            order_seed: 1,
            sha256: "00".repeat(32),
        },
        load: Load::Closed { concurrency: 1 },
        stop: Stop::Requests(8),
        warmup_requests: 2,
        cold: false,
        findings: Vec::new(),
        trials: Vec::new(),
        pooled: None::<Metrics>,
        client_health: None,
        truth: None,
        stack_fingerprint: None,
        tags: Vec::new(),
    }
}

/// A whole answer of one token a chunk with the given gaps, an hour into the run.
pub(crate) fn answer(number: u64, gaps_us: Vec<u32>) -> RequestRecord {
    let scheduled = 3_600_000_000 + number * 2_000_000;
    let sent = scheduled + 183;
    let first_token = sent + 101_234;
    let last_token = first_token + gaps_us.iter().map(|&gap| u64::from(gap)).sum::<u64>();
    let tokens = u32::try_from(gaps_us.len()).unwrap();
    RequestRecord {
        id: format!("k7q2-1-{number}"),
        trial: 1,
        phase: Phase::Measured,
        stream: 12,
        prompt: PromptRef {
            index: u32::try_from(number % 1000).unwrap(),
            kind: PromptKind::Reasoning,
            sha256: "0123456789abcdef".to_owned(),
            bytes: 1312,
            text: None,
        },
        max_tokens: tokens,
        outcome: RequestOutcome::Ok,
        error: None,
        status: Some(200),
        finish_reason: Some(FinishReason::Length),
        stamps: Stamps {
            scheduled,
            dequeued: scheduled + 12,
            connect_start: None,
            connected: None,
            secured: None,
            sent: Some(sent),
            first_byte: Some(sent + 100_100),
            first_event: Some(sent + 100_100),
            first_token: Some(first_token),
            first_output: Some(first_token),
            last_token: Some(last_token),
            finish: Some(last_token + 31),
            end: last_token + 95,
        },
        tokens: Tokens {
            output: Some(u64::from(tokens)),
            source: TokenSource::ServerUsage,
            timed: None,
            input: Some(312),
            cached: Some(0),
            reasoning: None,
            drafted: None,
            accepted: None,
            verify_steps: None,
        },
        chunk_tokens: Some(vec![[1, tokens]]),
        channels: vec![(Channel::Content, tokens)],
        gaps_us,
        reads: tokens + 3,
        events: tokens + 3,
        text: Some(TextRef {
            sha256: "fedcba9876543210".to_owned(),
            bytes: 612,
            text: None,
        }),
        server_decode_tok_s: None,
    }
}

/// Gaps around `itl_us` as a busy machine shows them: lateness of tens of microseconds, now and then of
/// milliseconds, the chunk after a late one early by as much.
pub(crate) fn steady_gaps(tokens: usize, itl_us: u32, seed: u64) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut before = 0_i64;
    let mut gaps = vec![0];
    for _ in 1..tokens {
        let late = if random(50) == 0 {
            800 + random(3200)
        } else {
            20 + random(120)
        };
        let late = i64::try_from(late).unwrap();
        gaps.push(u32::try_from(i64::from(itl_us) + late - before).unwrap());
        before = late;
    }
    gaps
}

/// A document with every member filled, so that a schema or a renderer meets them all.
pub(crate) fn full_document(id: &str) -> RunDocument {
    let figures = |value: f64| Distribution {
        count: 200,
        mean: value * 1.1,
        sd: Some(value / 3.0),
        min: value / 2.0,
        max: value * 2.0,
        percentiles: vec![Percentile {
            p: 50.0,
            value,
            low: Some(value * 0.9),
            high: None,
        }],
    };
    let metrics = Metrics {
        outcomes: vec![OutcomeCount {
            outcome: RequestOutcome::Http5xx,
            count: 3,
        }],
        window_s: Some(10.0),
        output_tok_s: Some(Rate {
            value: 100.0,
            low: Some(99.0),
            high: Some(101.0),
        }),
        requests_s: Some(1.25),
        ttft_ms: Some(figures(50.0)),
        service_ttft_ms: Some(figures(49.0)),
        ttfo_ms: Some(figures(70.0)),
        itl_ms: Some(figures(10.0)),
        icl_ms: Some(figures(20.0)),
        tpot_ms: Some(figures(10.0)),
        e2e_ms: Some(figures(1300.0)),
        service_e2e_ms: Some(figures(1290.0)),
        tail_ms: Some(figures(1.0)),
        connect_ms: Some(figures(0.2)),
        send_lag_ms: Some(figures(0.1)),
        request_tok_s: Some(figures(90.0)),
        decode_tok_s: Some(figures(95.0)),
        server_decode_tok_s: Some(figures(96.0)),
        output_tokens: Some(figures(128.0)),
        input_tokens: Some(figures(300.0)),
        token_sources: vec![(TokenSource::ServerUsage, 197), (TokenSource::Unknown, 3)],
        chunk_sizes: Some(ChunkSizes {
            known: 1.0,
            histogram: vec![[1, 10], [3, 20]],
        }),
        acceptance: vec![Acceptance {
            kind: Some(PromptKind::Code),
            length: Some(2.5),
            rate: Some(0.5),
            source: AcceptanceSource::EngineCounters,
            derivation: "accepted / drafts + 1".to_owned(),
        }],
        cache_hits: Some(CacheHits {
            cached_tokens: 64,
            input_tokens: 600,
            requests: 2,
        }),
    };
    let setting = Setting {
        name: "attention_backend".into(),
        value: "fa3".into(),
        source: "/server_info".into(),
    };
    RunDocument {
        duration_s: Some(12.5),
        server: Server {
            url: "http://127.0.0.1:30000".into(),
            address: Some("127.0.0.1:30000".into()),
            engine: Some(Engine {
                kind: EngineKind::Sglang,
                version: Some("0.5.9".into()),
                recognised_by: "GET /server_info".into(),
                practice: true,
            }),
            model: Some("model".into()),
            pid: Some(1),
            started_s: Some(1.5),
            arguments: vec!["--port".into(), "30000".into()],
            environment: BTreeMap::from([("HF_TOKEN".into(), "***".into())]),
            in_force: Some(InForce {
                settings: vec![setting.clone()],
                asked: vec![setting],
            }),
            reports: BTreeMap::from([("/server_info".into(), serde_json::json!({ "tp_size": 8 }))]),
        },
        launch: LaunchRef {
            id: Some("boot-1-9".into()),
            block: Some(1),
            order: Some(2),
        },
        client: Client {
            host: "box".into(),
            kernel: "Linux 6.1".into(),
            cpus: 2,
            cpu_model: Some("a CPU".into()),
            boot_id: Some("b".into()),
        },
        load: Load::Open {
            rate: 2.5,
            arrival: Arrival::Poisson,
            max_concurrency: Some(9),
        },
        stop: Stop::Seconds(10.0),
        findings: vec![
            Finding::new("client-limited", Verdict::Warn, "run", "the client was late")
                .why("its figures may be the client's")
                .evidence(Evidence::at_line("log", 3, "late"))
                .fix(
                    "use fewer streams",
                    Some("shakedown bench -c 4".into()),
                    Applicability::Safe,
                ),
        ],
        trials: vec![Trial {
            number: 1,
            start_us: 1,
            end_us: 2,
            metrics: metrics.clone(),
            canaries: vec!["0123".into()],
        }],
        pooled: Some(metrics),
        client_health: Some(ClientHealth {
            read_lag: Some(ReadLag {
                samples: 9,
                p50_us: 1.0,
                p99_us: 2.0,
                max_us: 3.0,
            }),
            send_lag_p99_us: Some(4.0),
            busiest_thread_cpu: Some(0.5),
            cpu_seconds: Some(1.5),
            steal: Some(0.01),
            reads: 100,
            events: 101,
            coalesced: 0.01,
            threads: 2,
            keep_alive: Some(true),
        }),
        truth: Some(Truth {
            chunks: 100,
            early: 0,
            p50_ms: 0.05,
            p99_ms: 0.2,
            max_ms: 0.9,
            ttft_p99_ms: Some(51.0),
            server_ttft_p99_ms: Some(50.5),
            server_late_p99_ms: 0.1,
        }),
        stack_fingerprint: Some("f".into()),
        tags: vec!["before".into()],
        ..document(id)
    }
}
