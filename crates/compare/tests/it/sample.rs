//! Run documents made to measure.

use std::collections::BTreeMap;

use shakedown_compare::{Options, Side, compare};
use shakedown_model::{
    Api, Client, Comparison, Distribution, Finding, InForce, LaunchRef, Load, Metrics, OutcomeCount,
    Percentile, PromptKind, PromptSource, RUN_SCHEMA, Rate, RequestOutcome, RunDocument, RunEnd, Sampling,
    Server, Setting, Stop, TokenSource, Trial, Workload,
};

/// Minutes between trials, in microseconds.
pub(crate) const STEP_US: u64 = 60_000_000;

/// Five numbers of mean 0 and standard deviation 1.
pub(crate) const NOISE: [f64; 5] = [0.338_06, -1.352_25, 1.183_22, -0.676_12, 0.507_09];

/// A trial with this output rate, from which its other figures follow.
pub(crate) fn trial(number: u32, rate: f64, start_us: u64) -> Trial {
    let tpot = 1000.0 / rate;
    Trial {
        number,
        start_us,
        end_us: start_us + STEP_US / 2,
        metrics: Metrics {
            outcomes: vec![OutcomeCount {
                outcome: RequestOutcome::Ok,
                count: 100,
            }],
            window_s: Some(30.0),
            output_tok_s: Some(Rate::exact(rate)),
            ttft_ms: Some(distribution(100.0)),
            tpot_ms: Some(distribution(tpot)),
            output_tokens: Some(distribution(256.0)),
            token_sources: vec![(TokenSource::ServerUsage, 100)],
            ..Metrics::default()
        },
        canaries: Vec::new(),
    }
}

pub(crate) fn distribution(middle: f64) -> Distribution {
    let percentile = |p: f64, factor: f64| Percentile {
        p,
        value: middle * factor,
        low: Some(middle * factor * 0.98),
        high: Some(middle * factor * 1.02),
    };
    Distribution {
        count: 100,
        mean: middle,
        sd: Some(middle / 10.0),
        min: middle * 0.7,
        max: middle * 1.5,
        percentiles: vec![
            percentile(50.0, 1.0),
            percentile(95.0, 1.2),
            percentile(99.0, 1.3),
        ],
    }
}

/// A run of one launch with these output rates.
pub(crate) fn run(id: &str, launch: &str, rates: &[f64]) -> RunDocument {
    RunDocument {
        schema: RUN_SCHEMA.into(),
        id: id.into(),
        tool_version: "0.1.0".into(),
        started: "2026-04-11T00:00:00Z".into(),
        origin_unix_us: 1_775_865_600_000_000,
        origin_monotonic_ns: 0,
        end: RunEnd::Complete,
        duration_s: Some(300.0),
        server: Server {
            url: "http://127.0.0.1:30000".into(),
            model: Some("glm".into()),
            arguments: ["python3", "-m", "sglang.launch_server", "--tp", "8"]
                .map(str::to_owned)
                .to_vec(),
            in_force: Some(InForce::default()),
            ..Server::default()
        },
        launch: LaunchRef {
            id: Some(launch.into()),
            block: None,
            order: None,
        },
        client: Client {
            host: "box".into(),
            kernel: "Linux 6.8".into(),
            cpus: 64,
            cpu_model: None,
            boot_id: None,
        },
        workload: Workload {
            api: Api::Chat,
            prompts: PromptSource::default(),
            kinds: vec![PromptKind::Chat, PromptKind::Code],
            max_tokens: 256,
            sampling: Sampling {
                temperature: Some(0.0),
                ..Sampling::default()
            },
            stream: true,
            order_seed: 1,
            sha256: "aa".repeat(32),
        },
        load: Load::Closed { concurrency: 16 },
        stop: Stop::Requests(100),
        warmup_requests: 2,
        cold: false,
        findings: Vec::<Finding>::new(),
        trials: (1..)
            .zip(rates)
            .map(|(number, &rate)| trial(number, rate, u64::from(number) * STEP_US))
            .collect(),
        pooled: None,
        client_health: None,
        truth: None,
        stack_fingerprint: None,
        tags: Vec::new(),
    }
}

/// Trials around `centre` with a standard deviation of `sd` (of ln), after a launch effect.
pub(crate) fn rates(centre: f64, launch_effect: f64, sd: f64) -> Vec<f64> {
    NOISE
        .iter()
        .map(|noise| centre * (launch_effect + sd * noise).exp())
        .collect()
}

/// A run a launch: launch effects of standard deviation `launch_sd` around `centre`, trials of `sd`.
pub(crate) fn side_of(name: &str, centre: f64, launches: usize, launch_sd: f64, sd: f64) -> Vec<RunDocument> {
    // Mean 0 and standard deviation 1 over four.
    const EFFECTS: [f64; 4] = [-0.387_30, 1.161_90, -1.161_90, 0.387_30];
    (0..launches)
        .map(|launch| {
            let effect = if launches == 1 {
                0.0
            } else {
                launch_sd * EFFECTS[launch % 4]
            };
            run(
                &format!("{name}{launch}"),
                &format!("launch-{name}{launch}"),
                &rates(centre, effect, sd),
            )
        })
        .collect()
}

pub(crate) fn side<'a>(label: &str, runs: &'a [RunDocument]) -> Side<'a> {
    Side {
        label: label.into(),
        runs: runs.iter().collect(),
        texts: BTreeMap::new(),
    }
}

pub(crate) fn compared(a: &[RunDocument], b: &[RunDocument]) -> Comparison {
    compare(&side("A", a), &side("B", b), &[], &Options::default()).unwrap()
}

pub(crate) fn codes(comparison: &Comparison) -> Vec<&str> {
    comparison.notes.iter().map(|note| note.code.as_str()).collect()
}

pub(crate) fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.into(),
        value: value.into(),
        source: "/server_info".into(),
    }
}
