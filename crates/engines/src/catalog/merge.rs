//! A user's file joined with the built-in entry: what it lists comes first, what it names again replaces.

use super::entry::{Entry, Metrics, Probes, Settings};

impl Entry {
    /// An entry that knows nothing but its engine.
    pub fn empty(kind: shakedown_model::EngineKind) -> Self {
        Self {
            kind,
            replace: false,
            provenance: super::Provenance::Unverified,
            checked: Vec::new(),
            distributions: Vec::new(),
            absorbs: Vec::new(),
            environment: Vec::new(),
            listen: Vec::new(),
            other_ports: Vec::new(),
            process: Vec::new(),
            flag: Vec::new(),
            probes: Probes::default(),
            identity: Vec::new(),
            version: Vec::new(),
            state: Vec::new(),
            report: Vec::new(),
            settings: Settings::default(),
            metrics: Metrics::default(),
        }
    }
}

/// `user` over `base`.
pub(super) fn joined(base: Entry, user: Entry) -> Entry {
    if user.replace {
        return user;
    }
    Entry {
        kind: base.kind,
        replace: false,
        provenance: base.provenance,
        checked: base.checked,
        distributions: before(user.distributions, base.distributions),
        absorbs: before(user.absorbs, base.absorbs),
        environment: before(user.environment, base.environment),
        listen: before(user.listen, base.listen),
        other_ports: before(user.other_ports, base.other_ports),
        process: before(user.process, base.process),
        flag: named(user.flag, base.flag, |flag| flag.setting.clone()),
        probes: Probes {
            allow: before(user.probes.allow, base.probes.allow),
            never: before(user.probes.never, base.probes.never),
        },
        identity: before(user.identity, base.identity),
        version: before(user.version, base.version),
        state: before(user.state, base.state),
        report: named(user.report, base.report, |report| report.id.clone()),
        settings: Settings {
            in_force: said(user.settings.in_force, base.settings.in_force),
            asked: said(user.settings.asked, base.settings.asked),
            launch_command: user.settings.launch_command.or(base.settings.launch_command),
            list: named(user.settings.list, base.settings.list, |rule| rule.name.clone()),
        },
        metrics: Metrics {
            paths: before(user.metrics.paths, base.metrics.paths),
            needs: user.metrics.needs.or(base.metrics.needs),
            copies: before(user.metrics.copies, base.metrics.copies),
            prefix: user.metrics.prefix.or(base.metrics.prefix),
            list: named(user.metrics.list, base.metrics.list, |rule| rule.name.clone()),
        },
    }
}

fn before<T>(mut first: Vec<T>, then: Vec<T>) -> Vec<T> {
    first.extend(then);
    first
}

fn said(user: String, base: String) -> String {
    if user.is_empty() { base } else { user }
}

/// The user's, and those of the base that the user does not name.
fn named<T>(user: Vec<T>, base: Vec<T>, name: impl Fn(&T) -> String) -> Vec<T> {
    let taken: Vec<String> = user.iter().map(&name).collect();
    let rest = base.into_iter().filter(|item| !taken.contains(&name(item)));
    user.into_iter().chain(rest).collect()
}
