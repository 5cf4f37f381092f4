//! What the client can say of itself: how late it read, how busy it was.

use std::time::Duration;

use shakedown_model::{ClientHealth, Phase, ReadLag, RequestRecord};
use shakedown_stats::Sorted;

use crate::client::CoreReport;
use crate::plan::Plan;

/// Gathers the reports of the runtime threads over a run.
pub(crate) struct HealthLog {
    threads: u32,
    lags: Vec<Duration>,
    cpu: Option<Duration>,
    busiest: Option<f64>,
}

impl HealthLog {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            threads: plan.thread_count(),
            lags: Vec::new(),
            cpu: None,
            busiest: None,
        }
    }

    pub(crate) fn add(&mut self, reports: Vec<CoreReport>) {
        for report in reports {
            self.lags.extend(report.lags);
            if let Some(cpu) = report.cpu {
                *self.cpu.get_or_insert(Duration::ZERO) += cpu;
            }
            if let Some(busiest) = report.busiest {
                self.busiest = Some(self.busiest.map_or(busiest, |most| most.max(busiest)));
            }
        }
    }

    /// The whole account. `keep_alive` is what was seen of the server's connections.
    pub(crate) fn finish(self, records: &[RequestRecord], keep_alive: Option<bool>) -> ClientHealth {
        let measured = || records.iter().filter(|record| record.phase == Phase::Measured);
        let lags: Vec<f64> = self.lags.iter().map(|lag| lag.as_secs_f64() * 1e6).collect();
        let read_lag = Sorted::new(lags).ok().map(|lags| ReadLag {
            samples: lags.count(),
            p50_us: lags.quantile(0.5),
            p99_us: lags.quantile(0.99),
            max_us: lags.max(),
        });
        let send_lags: Vec<f64> = measured()
            .filter_map(|record| Some(record.stamps.sent?.saturating_sub(record.stamps.scheduled) as f64))
            .collect();
        let send_lag_p99_us = Sorted::new(send_lags).ok().map(|lags| lags.quantile(0.99));
        let events: u64 = measured().map(|record| record.gaps_us.len() as u64).sum();
        let together: u64 = measured()
            .map(|record| record.gaps_us.iter().skip(1).filter(|gap| **gap == 0).count() as u64)
            .sum();
        ClientHealth {
            read_lag,
            send_lag_p99_us,
            busiest_thread_cpu: self.busiest,
            cpu_seconds: self.cpu.map(|cpu| cpu.as_secs_f64()),
            steal: None,
            reads: events - together,
            events,
            coalesced: if events > 0 {
                together as f64 / events as f64
            } else {
                0.0
            },
            threads: self.threads,
            keep_alive,
        }
    }
}
