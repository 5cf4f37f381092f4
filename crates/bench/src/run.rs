//! Runs a plan: the warm-up, then the trials; records arrive here as requests end.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use shakedown_model::verb::{Event, Progress, Sink};
use shakedown_model::{ClientHealth, Metrics, Phase, RequestRecord, Stamp, Stop};
use shakedown_wire::clock;

use crate::client::{Core, CoreReport, Counters, Leg, Reuse, Shared};
use crate::health::HealthLog;
use crate::metrics::{self, Window};
use crate::plan::{Control, Plan};
use crate::workload;

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(100);

/// One measured trial.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredTrial {
    /// Number, from 1.
    pub number: u32,
    /// The window.
    pub window: Window,
    /// Its figures.
    pub metrics: Metrics,
}

/// What a run measured.
#[derive(Debug)]
pub struct Measured {
    /// The trials that ran, the last one perhaps cut short.
    pub trials: Vec<MeasuredTrial>,
    /// Figures over all trials.
    pub pooled: Metrics,
    /// What the client says of itself.
    pub health: ClientHealth,
    /// Every record of the run, warm-up included.
    pub records: Vec<RequestRecord>,
    /// The run was stopped from outside.
    pub interrupted: bool,
    /// The warm-up failed whole, so that nothing was measured.
    pub warmup_failed: bool,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The event loop failed.
    #[error("run the client's event loop")]
    Loop(#[source] io::Error),
    /// A record could not be kept.
    #[error("keep the record of a request")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A client thread panicked: a bug of ours.
    #[error("a client thread panicked")]
    Panicked,
}

/// Keeps records as requests end.
pub trait Keep {
    /// Keeps one record; it is durable against the end of this process when this returns.
    fn keep(&mut self, record: &RequestRecord) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

impl Keep for Vec<RequestRecord> {
    fn keep(&mut self, record: &RequestRecord) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.push(record.clone());
        Ok(())
    }
}

/// Measures as `plan` says. Stamps count from `origin`; each record goes to `keep` as its request ends.
pub fn run(
    plan: &Plan,
    origin: Stamp,
    control: &Control,
    sink: &dyn Sink,
    keep: &mut dyn Keep,
) -> Result<Measured, RunError> {
    let mut runner = Runner {
        plan,
        origin,
        control,
        sink,
        keep,
        records: Vec::new(),
        health: HealthLog::new(plan),
        reuse: Reuse::default(),
    };
    let mut measured = Vec::new();
    let mut warmup_failed = false;
    if plan.warmup > 0 {
        let leg = Leg::warmup(plan.warmup, plan.thread_count().min(plan.warmup));
        runner.leg(&leg, plan.streams().min(plan.warmup))?;
        warmup_failed =
            !control.stopped() && !runner.records.iter().any(|record| record.outcome.is_success());
    }
    if !warmup_failed {
        for number in 1..=plan.trials {
            if control.stopped() {
                break;
            }
            let leg = Leg::trial(number, plan.stop, plan.streams(), plan.thread_count());
            let window = runner.leg(&leg, plan.streams())?;
            measured.push((number, window));
        }
    }
    let Runner {
        records,
        health,
        reuse,
        ..
    } = runner;
    let trials: Vec<MeasuredTrial> = measured
        .iter()
        .map(|&(number, window)| MeasuredTrial {
            number,
            window,
            metrics: metrics::of(&records, &[(number, window)], plan.load),
        })
        .collect();
    Ok(Measured {
        pooled: metrics::of(&records, &measured, plan.load),
        health: health.finish(&records, reuse.known().filter(|_| !plan.cold)),
        trials,
        records,
        interrupted: control.stopped(),
        warmup_failed,
    })
}

struct Runner<'a> {
    plan: &'a Plan,
    origin: Stamp,
    control: &'a Control,
    sink: &'a dyn Sink,
    keep: &'a mut dyn Keep,
    records: Vec<RequestRecord>,
    health: HealthLog,
    reuse: Reuse,
}

impl Runner<'_> {
    /// Runs one leg over `streams` streams and returns its window.
    fn leg(&mut self, leg: &Leg, streams: u32) -> Result<Window, RunError> {
        let threads = self.plan.thread_count().min(streams);
        let counters: Vec<Counters> = (0..threads).map(|_| Counters::default()).collect();
        let (sender, receiver) = mpsc::channel();
        let (origin, control) = (self.origin, self.control);
        let reuse = std::mem::take(&mut self.reuse);
        let shared = Shared {
            plan: self.plan,
            leg,
            control,
            reuse: &reuse,
            origin,
        };
        let reports: Result<Vec<CoreReport>, RunError> = std::thread::scope(|scope| {
            let mut handles = Vec::new();
            for (thread, counters) in counters.iter().enumerate() {
                let thread = thread as u32;
                let own = streams * thread / threads..streams * (thread + 1) / threads;
                let handle = Core::new(shared, counters, own, sender.clone()).and_then(|core| {
                    std::thread::Builder::new()
                        .name(format!("bench-{thread}"))
                        .spawn_scoped(scope, move || core.run())
                });
                match handle {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        leg.abort();
                        return Err(RunError::Loop(error));
                    }
                }
            }
            drop(sender);
            let kept = self.collect(leg, &counters, &receiver);
            if kept.is_err() {
                control.stop();
            }
            let mut reports = Vec::new();
            for handle in handles {
                reports.push(
                    handle
                        .join()
                        .map_err(|_| RunError::Panicked)?
                        .map_err(RunError::Loop)?,
                );
            }
            kept.map(|()| reports)
        });
        self.reuse = reuse;
        self.health.add(reports?);
        let start = leg.start();
        let end = if control.stopped() {
            clock::now()
        } else {
            leg.last_end()
        };
        Ok(Window {
            start_us: start.micros_since(origin),
            end_us: end.micros_since(origin),
        })
    }

    /// Takes the records of a leg until its threads have ended, and tells how far it is.
    fn collect(
        &mut self,
        leg: &Leg,
        counters: &[Counters],
        receiver: &mpsc::Receiver<RequestRecord>,
    ) -> Result<(), RunError> {
        let mut meter = Meter::new(self.plan, leg.trial);
        loop {
            match receiver.recv_timeout(meter.until_next()) {
                Ok(mut record) => {
                    self.describe_prompt(&mut record);
                    meter.count(&record);
                    self.keep.keep(&record).map_err(RunError::Record)?;
                    self.records.push(record);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if meter.due() {
                self.sink
                    .event(Event::Progress(meter.read(counters, leg.start())));
            }
        }
    }

    /// Completes the record's reference to its prompt: hashing a long prompt is not for the measuring threads.
    fn describe_prompt(&self, record: &mut RequestRecord) {
        let index = record.prompt.index;
        let prompt = match record.phase {
            Phase::Warmup => self.plan.prompts.warmup(index),
            Phase::Measured | Phase::Filler => self.plan.prompts.measured(record.trial, index),
        };
        record.prompt = workload::reference(&prompt, index, self.plan.keep_text);
    }
}

/// Turns counters and ended requests into progress.
struct Meter {
    progress: Progress,
    last: Stamp,
    chunks: u64,
    tokens: Option<u64>,
    ttft_us: Vec<u64>,
}

impl Meter {
    fn new(plan: &Plan, trial: u32) -> Self {
        let (total, total_s) = match plan.stop {
            _ if trial == 0 => (Some(u64::from(plan.warmup)), None),
            Stop::Requests(requests) => (Some(u64::from(requests)), None),
            Stop::Seconds(seconds) => (None, Some(seconds)),
        };
        let progress = Progress {
            trial,
            trials: plan.trials,
            total,
            total_s,
            ..Progress::default()
        };
        Self {
            progress,
            last: clock::now(),
            chunks: 0,
            tokens: Some(0),
            ttft_us: Vec::new(),
        }
    }

    fn until_next(&self) -> Duration {
        PROGRESS.saturating_sub(clock::now().since(self.last))
    }

    fn due(&self) -> bool {
        self.until_next().is_zero()
    }

    fn count(&mut self, record: &RequestRecord) {
        if record.phase == Phase::Filler {
            return;
        }
        self.progress.done += 1;
        self.progress.failed += u64::from(record.outcome.is_failure());
        if let (Some(sent), Some(first)) = (record.stamps.sent, record.stamps.first_token) {
            let ttft = first.saturating_sub(sent);
            let place = self.ttft_us.partition_point(|other| *other < ttft);
            self.ttft_us.insert(place, ttft);
        }
    }

    fn read(&mut self, counters: &[Counters], start: Stamp) -> Progress {
        let now = clock::now();
        let seconds = now.since(self.last).as_secs_f64().max(1e-9);
        let sum = |get: fn(&Counters) -> u64| counters.iter().map(get).sum::<u64>();
        let chunks = sum(|counters| counters.chunks.load(Ordering::Relaxed));
        let tokens = counters.iter().try_fold(0u64, |sum, counters| {
            let tokens = counters.tokens.load(Ordering::Relaxed);
            (tokens != u64::MAX).then(|| sum + tokens)
        });
        self.progress.in_flight = sum(|counters| counters.in_flight.load(Ordering::Relaxed));
        self.progress.chunks_s = chunks.saturating_sub(self.chunks) as f64 / seconds;
        self.progress.tokens_s = tokens
            .zip(self.tokens)
            .map(|(now, before)| now.saturating_sub(before) as f64 / seconds);
        self.progress.elapsed_s = if start == Stamp::ZERO {
            0.0
        } else {
            now.since(start).as_secs_f64()
        };
        self.progress.ttft_ms = self
            .ttft_us
            .get(self.ttft_us.len() / 2)
            .map(|ttft| *ttft as f64 / 1000.0);
        (self.last, self.chunks, self.tokens) = (now, chunks, tokens);
        self.progress.clone()
    }
}
