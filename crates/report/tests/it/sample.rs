//! Documents made by hand. Their figures are round, so that the eye can check what is shown.

use shakedown_model::{
    Acceptance, AcceptanceSource, Api, Applicability, CacheHits, ChunkSizes, Client, ClientHealth,
    Distribution, Engine, EngineKind, Evidence, Finding, InForce, LaunchRef, Load, Metrics, OutcomeCount,
    Percentile, PromptKind, PromptSource, RUN_SCHEMA, Rate, ReadLag, RequestOutcome, RunDocument, RunEnd,
    Sampling, Server, Setting, Stop, TokenSource, Trial, Truth, Verdict, Workload,
};

/// A sample of `count` around `median` with as many percentiles as `count` bears.
pub(crate) fn around(median: f64, count: u64) -> Distribution {
    let percentile = |p, value| Percentile {
        p,
        value,
        low: None,
        high: None,
    };
    let mut percentiles = vec![Percentile {
        p: 50.0,
        value: median,
        low: Some(median * 0.99),
        high: Some(median * 1.02),
    }];
    for (p, needed, factor) in [(90.0, 10, 1.1), (95.0, 20, 1.2), (99.0, 100, 1.5)] {
        if count >= needed {
            percentiles.push(percentile(p, median * factor));
        }
    }
    Distribution {
        count,
        mean: median * 1.01,
        sd: Some(median * 0.1),
        min: median * 0.9,
        max: median * 1.6,
        percentiles,
    }
}

fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        source: "/server_info".to_owned(),
    }
}

pub(crate) fn metrics(requests: u64) -> Metrics {
    Metrics {
        outcomes: vec![OutcomeCount {
            outcome: RequestOutcome::Ok,
            count: requests,
        }],
        window_s: Some(20.0),
        output_tok_s: Some(Rate::exact(1234.4)),
        requests_s: Some(9.64),
        ttft_ms: Some(around(200.0, requests)),
        itl_ms: Some(around(10.02, requests * 127)),
        icl_ms: Some(around(10.02, requests * 127)),
        tpot_ms: Some(around(10.03, requests)),
        e2e_ms: Some(around(1473.8, requests)),
        tail_ms: Some(around(0.2, requests)),
        request_tok_s: Some(around(86.85, requests)),
        decode_tok_s: Some(around(99.7, requests)),
        output_tokens: Some(around(128.0, requests)),
        input_tokens: Some(around(312.0, requests)),
        token_sources: vec![(TokenSource::ServerUsage, requests)],
        chunk_sizes: Some(ChunkSizes {
            known: 1.0,
            histogram: vec![[1, requests * 128]],
        }),
        cache_hits: Some(CacheHits {
            cached_tokens: 0,
            input_tokens: 62_400,
            requests,
        }),
        ..Metrics::default()
    }
}

/// Sixteen streams against SGLang, and nothing to complain of.
pub(crate) fn well() -> RunDocument {
    RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        id: "20261201-143012-k7q2".to_owned(),
        tool_version: "0.1.0".to_owned(),
        started: "2026-12-01T14:30:12Z".to_owned(),
        origin_unix_us: 1_796_135_412_000_000,
        origin_monotonic_ns: 0,
        end: RunEnd::Complete,
        duration_s: Some(23.4),
        server: Server {
            url: "http://127.0.0.1:30000".to_owned(),
            engine: Some(Engine {
                kind: EngineKind::Sglang,
                version: Some("0.5.9".to_owned()),
                recognised_by: "GET /server_info".to_owned(),
                practice: false,
            }),
            model: Some("meta-llama/Llama-3.1-8B-Instruct".to_owned()),
            in_force: Some(InForce {
                settings: vec![
                    setting("attention_backend", "flashinfer"),
                    setting("tp_size", "8"),
                    setting("kv_cache_dtype", "auto"),
                    setting("cuda_graph", "on"),
                    setting("chunked_prefill_size", "8192"),
                ],
                asked: vec![setting("tp_size", "8")],
            }),
            ..Server::default()
        },
        launch: LaunchRef::default(),
        client: Client::default(),
        workload: Workload {
            api: Api::Chat,
            prompts: PromptSource::default(),
            kinds: vec![PromptKind::Chat, PromptKind::Code],
            max_tokens: 128,
            sampling: Sampling::default(),
            stream: true,
            order_seed: 1,
            sha256: "ab".repeat(32),
        },
        load: Load::Closed { concurrency: 16 },
        stop: Stop::Requests(200),
        warmup_requests: 16,
        cold: false,
        findings: vec![Finding::new(
            "warm-up-over",
            Verdict::Ok,
            "run",
            "TTFT did not fall within the run",
        )],
        trials: vec![Trial {
            number: 1,
            start_us: 3_000_000,
            end_us: 23_000_000,
            metrics: metrics(200),
            canaries: Vec::new(),
        }],
        pooled: Some(metrics(200)),
        client_health: Some(ClientHealth {
            read_lag: Some(ReadLag {
                samples: 1600,
                p50_us: 70.0,
                p99_us: 120.0,
                max_us: 900.0,
            }),
            send_lag_p99_us: Some(310.0),
            busiest_thread_cpu: Some(0.124),
            cpu_seconds: Some(2.2),
            steal: Some(0.0),
            reads: 25_000,
            events: 25_600,
            coalesced: 0.004,
            threads: 2,
            keep_alive: Some(true),
        }),
        truth: None,
        stack_fingerprint: None,
        tags: Vec::new(),
    }
}

fn pooled(document: &mut RunDocument) -> &mut Metrics {
    document.pooled.as_mut().unwrap()
}

/// Some requests failed, more than is allowed.
pub(crate) fn failures() -> RunDocument {
    let mut document = well();
    let metrics = pooled(&mut document);
    metrics.outcomes = vec![
        OutcomeCount {
            outcome: RequestOutcome::Ok,
            count: 190,
        },
        OutcomeCount {
            outcome: RequestOutcome::ErrorInStream,
            count: 7,
        },
        OutcomeCount {
            outcome: RequestOutcome::ResetAfterFirstByte,
            count: 3,
        },
    ];
    metrics.ttft_ms = Some(around(200.0, 200));
    metrics.e2e_ms = Some(around(1473.8, 190));
    document.findings = vec![
        Finding::new(
            "failures",
            Verdict::Fail,
            "run",
            "10 of 200 requests failed (5.0%), 1.0% is allowed",
        )
        .evidence(Evidence::new("7 answers", "error in the stream: out of memory"))
        .fix(
            "look at the server's log for the first of them",
            None,
            Applicability::Safe,
        ),
    ];
    document
}

/// The server counts nothing and sends several tokens a chunk for all that can be known.
pub(crate) fn unknown_tokens() -> RunDocument {
    let mut document = well();
    document.server.engine = None;
    document.server.in_force = None;
    let metrics = pooled(&mut document);
    *metrics = Metrics {
        output_tok_s: None,
        itl_ms: None,
        tpot_ms: None,
        request_tok_s: None,
        decode_tok_s: None,
        output_tokens: None,
        input_tokens: None,
        token_sources: vec![(TokenSource::Unknown, 200)],
        chunk_sizes: None,
        cache_hits: None,
        ..metrics.clone()
    };
    document.client_health = Some(ClientHealth {
        read_lag: None,
        ..ClientHealth::default()
    });
    document.findings = vec![Finding::new(
        "token-counts-unknown",
        Verdict::Unknown,
        "run",
        "the server sends no usage, so no rate in tokens is known",
    )];
    document
}

/// EAGLE on code and chat.
pub(crate) fn speculative() -> RunDocument {
    let mut document = well();
    let metrics = pooled(&mut document);
    metrics.ttfo_ms = Some(around(350.0, 200));
    metrics.icl_ms = Some(around(31.8, 200 * 42));
    metrics.chunk_sizes = Some(ChunkSizes {
        known: 0.98,
        histogram: vec![[1, 1000], [2, 2000], [4, 5000]],
    });
    let acceptance = |kind, length, rate| Acceptance {
        kind,
        length: Some(length),
        rate,
        source: AcceptanceSource::EngineCounters,
        derivation: "accepted / drafts + 1".to_owned(),
    };
    metrics.acceptance = vec![
        acceptance(None, 2.5, Some(0.5)),
        acceptance(Some(PromptKind::Chat), 1.9, Some(0.3)),
        Acceptance {
            source: AcceptanceSource::TokensPerChunk,
            ..acceptance(Some(PromptKind::Code), 3.07, None)
        },
    ];
    metrics.token_sources = vec![(TokenSource::ServerUsage, 197), (TokenSource::Unknown, 3)];
    metrics.output_tok_s = Some(Rate {
        value: 1235.0,
        low: Some(1220.0),
        high: Some(1250.0),
    });
    metrics.cache_hits = Some(CacheHits {
        cached_tokens: 640,
        input_tokens: 6000,
        requests: 20,
    });
    let in_force = document.server.in_force.as_mut().unwrap();
    in_force.asked.push(setting("attention_backend", "fa3"));
    document
}

/// The classic: five trials, one stream, long answers; against the practice server.
pub(crate) fn several_trials() -> RunDocument {
    let mut document = well();
    document.load = Load::Closed { concurrency: 1 };
    document.stop = Stop::Requests(1);
    document.workload.max_tokens = 2048;
    document.server.engine = Some(Engine {
        kind: EngineKind::Sglang,
        version: Some("0.5.9".to_owned()),
        recognised_by: "GET /server_info".to_owned(),
        practice: true,
    });
    let one = |rate: f64| Metrics {
        window_s: None,
        output_tok_s: None,
        requests_s: None,
        request_tok_s: Some(around(rate, 1)),
        ..metrics(1)
    };
    document.trials = [89.0, 89.5, 90.0, 89.5, 89.5]
        .into_iter()
        .zip(1..)
        .map(|(rate, number)| Trial {
            number,
            start_us: 0,
            end_us: 1,
            metrics: one(rate),
            canaries: Vec::new(),
        })
        .collect();
    document.pooled = Some(Metrics {
        window_s: None,
        output_tok_s: None,
        requests_s: None,
        request_tok_s: Some(around(89.5, 5)),
        ..metrics(5)
    });
    document.truth = Some(Truth {
        chunks: 10_240,
        early: 0,
        p50_ms: 0.052,
        p99_ms: 0.21,
        max_ms: 0.93,
        ttft_p99_ms: Some(200.4),
        server_ttft_p99_ms: Some(200.1),
        server_late_p99_ms: 0.08,
    });
    document
}

/// The client was the limit.
pub(crate) fn client_limited() -> RunDocument {
    let mut document = well();
    document.load = Load::Closed { concurrency: 4096 };
    document.findings = vec![
        Finding::new(
            "client-limited",
            Verdict::Fail,
            "run",
            "reads were 4.1 ms late (p99) where 0.3 ms is allowed, so ITL and ICL show this client rather than the server",
        )
        .why("a thread that is always busy reads late")
        .evidence(Evidence::new("read lag p99", "4.1 ms over 1600 reads"))
        .evidence(Evidence::at_line("client.log", 17, "busiest thread 99.0%"))
        .fix(
            "use fewer streams",
            Some("shakedown bench -c 1024 http://127.0.0.1:30000".to_owned()),
            Applicability::Review,
        ),
        Finding::new("coalesced-reads", Verdict::Warn, "run", "12.0% of chunks came in a read with another"),
        Finding::new("cache-hits", Verdict::Info, "run", "no prompt was taken from the prefix cache"),
    ];
    document.findings[0].verify = Some("shakedown calibrate -c 1024".to_owned());
    document
}
