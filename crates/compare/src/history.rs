//! How far launches of one server lie apart, from earlier runs.

use shakedown_model::{Metric, RestartSource, RestartSpread, RunDocument, RunEnd, Trial};
use shakedown_stats::{ASSUMED_RESTART_SD, mean};

use crate::estimate::{logs, means};
use crate::launches::group;

/// Degrees of freedom from which on a spread of launches is believed.
const MIN_DF: usize = 4;

/// The restart spread of `metric` by the runs of `history` that measured what one of `like` measured, on a server with
/// the same model, arguments and environment: the standard deviation of ln(launch mean), pooled over such servers. Absent with
/// fewer than four degrees of freedom (five launches of one server).
pub fn restart_spread(
    history: &[&RunDocument],
    like: &[&RunDocument],
    metric: Metric,
) -> Option<RestartSpread> {
    let mut seen: Vec<&RunDocument> = Vec::new();
    let (mut squares, mut df, mut count) = (0.0, 0, 0u32);
    for &one in like {
        if seen.iter().any(|earlier| alike(earlier, one)) {
            continue;
        }
        seen.push(one);
        let runs: Vec<&RunDocument> = history
            .iter()
            .copied()
            .filter(|run| run.end == RunEnd::Complete && alike(run, one))
            .collect();
        let launches: Vec<Vec<f64>> = group(&runs)
            .iter()
            .filter(|launch| !launch.key.is_unknown())
            .map(|launch| {
                let trials: Vec<&Trial> = launch.trials.iter().map(|timed| timed.trial).collect();
                logs(metric, &trials)
            })
            .filter(|logs| !logs.is_empty())
            .collect();
        if launches.len() < 2 {
            continue;
        }
        let means = means(&launches);
        let centre = mean(&means);
        squares += means
            .iter()
            .map(|value| (value - centre) * (value - centre))
            .sum::<f64>();
        df += means.len() - 1;
        count += means.len() as u32;
    }
    (df >= MIN_DF).then(|| RestartSpread {
        sd: (squares / df as f64).sqrt(),
        source: RestartSource::History { launches: count },
    })
}

/// The restart spread to allow for: the user's, else history's, else the assumed one.
pub(crate) fn spread_for(
    given: Option<f64>,
    history: &[&RunDocument],
    like: &[&RunDocument],
    metric: Metric,
) -> RestartSpread {
    given
        .map(|sd| RestartSpread {
            sd,
            source: RestartSource::Given,
        })
        .or_else(|| restart_spread(history, like, metric))
        .unwrap_or(RestartSpread {
            sd: ASSUMED_RESTART_SD,
            source: RestartSource::Assumed,
        })
}

fn alike(one: &RunDocument, other: &RunDocument) -> bool {
    one.workload.sha256 == other.workload.sha256
        && one.load == other.load
        && one.cold == other.cold
        && one.server.model == other.server.model
        && one.server.engine == other.server.engine
        && one.server.arguments == other.server.arguments
        && one.server.environment == other.server.environment
        && one.stack_fingerprint == other.stack_fingerprint
}
