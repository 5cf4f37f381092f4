//! Which trials belong to which launch of a server.

use shakedown_model::{RunDocument, Trial};

/// What identifies a launch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LaunchKey {
    /// The identity that the run carries.
    Id(String),
    /// The server's process.
    Process { host: String, pid: u32, started_s: f64 },
    /// Nothing: runs against one address count as one launch, for taking them for several would make a claim on
    /// restarts that nobody saw.
    Unknown { url: String },
}

impl LaunchKey {
    fn of(run: &RunDocument) -> Self {
        if let Some(id) = &run.launch.id {
            return Self::Id(id.clone());
        }
        match (run.server.pid, run.server.started_s) {
            (Some(pid), Some(started_s)) => Self::Process {
                host: run.client.host.clone(),
                pid,
                started_s,
            },
            _ => Self::Unknown {
                url: run.server.url.clone(),
            },
        }
    }

    /// Whether both are known to be the same launch. The start time of a process is derived from the boot time, which the
    /// kernel moves by a second when the clock is set.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Process { host, pid, started_s },
                Self::Process {
                    host: other_host,
                    pid: other_pid,
                    started_s: other_started_s,
                },
            ) => host == other_host && pid == other_pid && (started_s - other_started_s).abs() <= 2.0,
            _ => self == other,
        }
    }

    /// Whether nothing identifies it.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// A trial with its place in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedTrial<'a> {
    /// Its start in microseconds since the epoch.
    pub(crate) at_us: u64,
    pub(crate) trial: &'a Trial,
    /// Block of an interleaved comparison, where its run carries one.
    pub(crate) block: Option<u32>,
}

/// A launch with its trials in order of time.
#[derive(Debug, Clone)]
pub(crate) struct Launch<'a> {
    pub(crate) key: LaunchKey,
    pub(crate) trials: Vec<TimedTrial<'a>>,
}

/// The launches of a side, in order of their first trial.
pub(crate) fn group<'a>(runs: &[&'a RunDocument]) -> Vec<Launch<'a>> {
    let mut launches: Vec<Launch<'a>> = Vec::new();
    for &run in runs {
        let key = LaunchKey::of(run);
        let trials = run.trials.iter().map(|trial| TimedTrial {
            at_us: run.origin_unix_us.saturating_add(trial.start_us),
            trial,
            block: run.launch.block,
        });
        match launches.iter_mut().find(|launch| launch.key.same(&key)) {
            Some(launch) => launch.trials.extend(trials),
            None => launches.push(Launch {
                key,
                trials: trials.collect(),
            }),
        }
    }
    launches.retain(|launch| !launch.trials.is_empty());
    for launch in &mut launches {
        launch.trials.sort_by_key(|trial| trial.at_us);
    }
    launches.sort_by_key(|launch| launch.trials.first().map(|trial| trial.at_us));
    launches
}
