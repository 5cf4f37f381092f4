//! `bench`: measure one server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shakedown_bench::validity::{self, Basis};
use shakedown_bench::workload::{BodyOptions, Prompts, WorkloadRequest};
use shakedown_bench::{Control, Keep, Limits, Measured, Plan};
use shakedown_host::Host;
use shakedown_model::verb::{BenchOutcome, BenchRequest, ChunkUsage, Event, Salt, Sink};
use shakedown_model::{
    EngineMetrics, Exit, Finding, Load, Metrics, PromptSource, RUN_SCHEMA, RequestOutcome, RequestRecord,
    RunDocument, RunEnd, Stamp, Trial, Truth, Verdict,
};
use shakedown_practice::Practice;
use shakedown_records::{BundleWriter, Store};
use shakedown_wire::clock;

use crate::error::VerbError;
use crate::server::{self, Found};
use crate::{client, practice, sampler, truth};

/// Measures as `request` says and keeps the bundle.
pub fn run(request: &BenchRequest, control: &Control, sink: &dyn Sink) -> Result<BenchOutcome, VerbError> {
    sane(request)?;
    let practice = request
        .practice
        .then(|| Practice::start(demonstration()))
        .transpose()?;
    let url = match (&practice, &request.url) {
        (Some(practice), _) => practice.url(),
        (None, Some(url)) => url.clone(),
        (None, None) => {
            return Err(VerbError::Usage {
                what: "no server named".to_owned(),
                hint: "give its URL, or --practice to try the tool on the built-in server".to_owned(),
            });
        }
    };
    sink.event(Event::Stage {
        name: format!("looking at {url}"),
    });
    let found = server::look(
        &url,
        request.model.as_deref(),
        request.api_key.as_ref(),
        &request.headers,
    )?;
    let origin_unix_us = clock::unix_micros();
    let origin = clock::now();
    let run_id = shakedown_records::new_run_id(origin_unix_us, origin.nanos());
    let prompts = Prompts::prepare(workload(request, &run_id), request.warmup as usize)?;
    let before = found.metrics();
    let mut document = document(request, &found, &prompts, &run_id, origin, origin_unix_us);
    document.findings = asked_not_in_force(&found, sink);
    let store = Store::locate(request.store.as_deref())?;
    let bundle = store.create(&document)?;
    sink.event(Event::Note {
        text: format!("run {run_id} on {}", describe_server(&found)),
    });

    let plan = plan(request, &found, prompts, run_id);
    let machine = Host::local();
    let cpu_before = machine.cpu_times().ok();
    let mut measured = measure(&plan, &found, origin, control, sink, &bundle)?;
    measured.health.steal = cpu_before
        .zip(machine.cpu_times().ok())
        .and_then(|(before, after)| after.steal_since(&before));
    let after = found.metrics();
    engine_acceptance(&mut measured.pooled, &found, before.as_ref(), after.as_ref());
    document.truth = compare_with_truth(practice.as_ref(), &found, origin, &measured, request);
    document.findings.extend(judge(request, &document, &measured));
    complete(&mut document, origin, measured);
    let exit = exit(&document);
    let bundle = bundle.finish(&document)?;
    Ok(BenchOutcome {
        document,
        bundle,
        exit,
    })
}

/// The practice server of `bench --practice`: quick enough for a first look.
fn demonstration() -> practice::Options {
    practice::Options {
        port: Some(0),
        ttft: Duration::from_millis(50),
        itl: Duration::from_millis(5),
        ..practice::Options::default()
    }
}

/// Refuses what cannot be meant.
fn sane(request: &BenchRequest) -> Result<(), VerbError> {
    let usage = |what: &str, hint: &str| {
        Err(VerbError::Usage {
            what: what.to_owned(),
            hint: hint.to_owned(),
        })
    };
    if request.practice && request.url.is_some() {
        return usage("both a URL and --practice were given", "keep one of them");
    }
    match request.stop {
        shakedown_model::Stop::Requests(0) => {
            return usage("--requests 0 measures nothing", "ask for at least 1");
        }
        shakedown_model::Stop::Seconds(seconds) if !(seconds.is_finite() && seconds > 0.0) => {
            return usage("--duration must be longer than 0", "for example --duration 30s");
        }
        _ => {}
    }
    if request.concurrency == 0 || request.trials == 0 || request.max_tokens == 0 {
        return usage(
            "--concurrency, --runs and --max-tokens must be at least 1",
            "leave them out for the defaults",
        );
    }
    if matches!(request.prompts, PromptSource::Synthetic { tokens: 0 }) {
        return usage(
            "--prompt-tokens must be at least 1",
            "for example --prompt-tokens 512",
        );
    }
    Ok(())
}

fn workload(request: &BenchRequest, run_id: &str) -> WorkloadRequest {
    let salt = match &request.salt {
        // The run's id is unique, so a prompt made of it is too.
        Salt::Random => Some(run_id.to_owned()),
        Salt::Text(text) => Some(text.clone()),
        Salt::Bare => None,
    };
    WorkloadRequest {
        api: request.api,
        source: request.prompts.clone(),
        max_tokens: request.max_tokens,
        sampling: request.sampling.clone(),
        stream: request.stream,
        seed: request.order_seed,
        salt,
    }
}

fn plan(request: &BenchRequest, found: &Found, prompts: Prompts, run_id: String) -> Plan {
    let limits = request.limits;
    let seconds = |value: f64| Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX);
    Plan {
        target: found.target.clone(),
        address: found.address,
        headers: found.headers.clone(),
        model: found.model.clone(),
        prompts,
        body: BodyOptions {
            continuous_usage: match request.chunk_usage {
                ChunkUsage::Auto => found.continuous_usage(),
                ChunkUsage::On => true,
                ChunkUsage::Off => false,
            },
        },
        load: Load::Closed {
            concurrency: request.concurrency,
        },
        stop: request.stop,
        warmup: request.warmup,
        trials: request.trials,
        limits: Limits {
            connect: seconds(limits.connect_s),
            first_token: seconds(limits.first_token_s),
            idle: seconds(limits.idle_s),
            total: seconds(limits.total_s),
            ..Limits::default()
        },
        cold: request.cold,
        keep_text: request.keep_text,
        threads: request.threads,
        run_id,
    }
}

fn document(
    request: &BenchRequest,
    found: &Found,
    prompts: &Prompts,
    run_id: &str,
    origin: Stamp,
    origin_unix_us: u64,
) -> RunDocument {
    let started = i64::try_from(origin_unix_us)
        .ok()
        .and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    RunDocument {
        schema: RUN_SCHEMA.to_owned(),
        id: run_id.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started: started.map(|started| started.to_string()).unwrap_or_default(),
        origin_unix_us,
        origin_monotonic_ns: origin.nanos(),
        end: RunEnd::Running,
        duration_s: None,
        server: found.server.clone(),
        launch: shakedown_model::LaunchRef::default(),
        client: client::describe(),
        workload: prompts.describe(),
        load: Load::Closed {
            concurrency: request.concurrency,
        },
        stop: request.stop,
        warmup_requests: request.warmup,
        cold: request.cold,
        findings: Vec::new(),
        trials: Vec::new(),
        pooled: None,
        client_health: None,
        truth: None,
        stack_fingerprint: None,
        tags: request.tags.clone(),
    }
}

/// Settings that were asked for and are not in force: told before any figure.
fn asked_not_in_force(found: &Found, sink: &dyn Sink) -> Vec<Finding> {
    let findings = match (&found.server.engine, &found.server.in_force) {
        (Some(engine), Some(in_force)) => shakedown_engines::asked_not_in_force(engine, in_force),
        _ => Vec::new(),
    };
    for finding in &findings {
        sink.event(Event::Finding {
            finding: Box::new(finding.clone()),
        });
    }
    findings
}

fn describe_server(found: &Found) -> String {
    match &found.server.engine {
        Some(engine) => {
            let version = engine
                .version
                .as_deref()
                .map(|version| format!(" {version}"))
                .unwrap_or_default();
            let practice = if engine.practice && engine.kind != shakedown_model::EngineKind::Practice {
                " (the practice server in its manners)"
            } else {
                ""
            };
            format!(
                "{}{version}{practice} at {}, model {}",
                engine.kind, found.target, found.model
            )
        }
        None => format!("{} (engine not recognised), model {}", found.target, found.model),
    }
}

struct ToBundle<'a>(&'a BundleWriter);

impl Keep for ToBundle<'_> {
    fn keep(&mut self, record: &RequestRecord) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.0.append(record)?)
    }
}

/// Runs the plan, sampling the engine's own metrics beside it.
fn measure(
    plan: &Plan,
    found: &Found,
    origin: Stamp,
    control: &Control,
    sink: &dyn Sink,
    bundle: &BundleWriter,
) -> Result<Measured, VerbError> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| sampler::sample(found, bundle, origin, &over));
        let measured = shakedown_bench::run(plan, origin, control, sink, &mut ToBundle(bundle));
        over.store(true, Ordering::Relaxed);
        Ok(measured?)
    })
}

/// Puts the engine's own acceptance before what the replies show: it knows its verify steps.
fn engine_acceptance(
    pooled: &mut Metrics,
    found: &Found,
    before: Option<&EngineMetrics>,
    after: Option<&EngineMetrics>,
) {
    let Some(engine) = &found.server.engine else {
        return;
    };
    let figure = shakedown_engines::acceptance(engine, before, after, found.server.in_force.as_ref());
    if let Some(figure) = figure {
        pooled.acceptance.insert(0, figure);
    }
}

fn compare_with_truth(
    practice: Option<&Practice>,
    found: &Found,
    origin: Stamp,
    measured: &Measured,
    request: &BenchRequest,
) -> Option<Truth> {
    if !request.stream {
        return None;
    }
    let served = match practice {
        Some(practice) => practice.truth(),
        None if found.is_practice() => serde_json::from_slice(&found.get("/truth").ok()?).ok()?,
        None => return None,
    };
    truth::compare(&served, origin, &measured.records, &measured.pooled)
}

fn judge(request: &BenchRequest, document: &RunDocument, measured: &Measured) -> Vec<Finding> {
    validity::findings(&Basis {
        metrics: &measured.pooled,
        health: &measured.health,
        truth: document.truth.as_ref(),
        records: &measured.records,
        workload: &document.workload,
        load: document.load,
        max_failures: request.max_failures,
        warmup_failed: measured.warmup_failed,
    })
}

fn complete(document: &mut RunDocument, origin: Stamp, measured: Measured) {
    document.end = if measured.interrupted {
        RunEnd::Interrupted
    } else if measured.warmup_failed {
        RunEnd::Failed
    } else {
        RunEnd::Complete
    };
    document.duration_s = Some(clock::now().since(origin).as_secs_f64());
    document.trials = measured
        .trials
        .into_iter()
        .map(|trial| Trial {
            number: trial.number,
            start_us: trial.window.start_us,
            end_us: trial.window.end_us,
            metrics: trial.metrics,
            canaries: Vec::new(),
        })
        .collect();
    document.pooled = Some(measured.pooled).filter(|_| !measured.warmup_failed);
    document.client_health = Some(measured.health);
}

/// How the process should end: interrupted, then failed, then not valid.
fn exit(document: &RunDocument) -> Exit {
    let failed = |finding: &&Finding| finding.verdict == Verdict::Fail;
    if document.end == RunEnd::Interrupted {
        return Exit::Interrupted;
    }
    if document.end == RunEnd::Failed {
        let refused = |finding: &Finding| {
            finding.evidence.iter().any(|evidence| {
                evidence.value.starts_with(RequestOutcome::Refused.as_str())
                    || evidence.value.starts_with(RequestOutcome::ConnectFailed.as_str())
            })
        };
        return if document.findings.iter().any(refused) {
            Exit::Unreachable
        } else {
            Exit::No
        };
    }
    if document
        .findings
        .iter()
        .filter(failed)
        .any(|finding| finding.code == "requests-failed")
    {
        return Exit::No;
    }
    if document.findings.iter().any(validity::voids) {
        return Exit::NotEnoughEvidence;
    }
    Exit::Yes
}
