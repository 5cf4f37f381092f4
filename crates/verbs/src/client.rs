//! The machine and process that measure.

use shakedown_host::Host;
use shakedown_model::Client;

/// What this machine is.
pub(crate) fn describe() -> Client {
    let facts = Host::local().facts();
    let allowed = || {
        std::thread::available_parallelism()
            .ok()
            .and_then(|cpus| u32::try_from(cpus.get()).ok())
    };
    Client {
        host: facts.name.unwrap_or_default(),
        kernel: facts.kernel.unwrap_or_default(),
        cpus: facts.cpus_allowed.or_else(allowed).unwrap_or(1),
        cpu_model: facts.cpu_model,
        boot_id: facts.boot_id,
    }
}
