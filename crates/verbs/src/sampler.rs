//! Samples the engine's own metrics while a run goes on, into `server.jsonl`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shakedown_model::{EngineMetrics, Stamp};
use shakedown_records::BundleWriter;
use shakedown_wire::clock;

use crate::server::Found;

/// Between two samples: often enough to see a queue build up, seldom enough to cost the server nothing.
const EVERY: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(20);

/// Samples until `over`. The first failed sample ends it: a server without metrics is not asked again.
pub(crate) fn sample(found: &Found, bundle: &BundleWriter, origin: Stamp, over: &AtomicBool) {
    let mut due = clock::now() + EVERY;
    while !over.load(Ordering::Relaxed) {
        if clock::now() < due {
            std::thread::sleep(NAP);
            continue;
        }
        due = clock::now() + EVERY;
        let Some(metrics) = found.metrics() else { return };
        let sample = EngineMetrics {
            at_us: clock::now().micros_since(origin),
            ..metrics
        };
        // The run itself tells when the disk is full: samples are the lesser loss.
        if bundle.append_server(&sample).is_err() {
            return;
        }
    }
}
