//! Signs: what follows from facts and log together, by name, so that catalogue entries can rest on it.
//!
//! A sign is present, absent, or not known; nothing is taken from a fact that was not given.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use shakedown_model::{EngineKind, Evidence};

use super::net::{self, Address};
use super::view::{Argument, View, value_of};
use super::{gpu, size};
use crate::catalog::Stage;
use crate::facts::{Fact, key};

/// The signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Compute capability of the GPU, 10 × major + minor.
    GpuSm,
    /// Major version of the kernel driver.
    Driver,
    /// CUDA major version of the installed torch.
    TorchCuda,
    /// The shared memory file system is smaller than 1 GiB.
    ShmSmall,
    /// The client's limit of open files.
    ClientFiles,
    /// The server's limit of open files.
    ServerFiles,
    /// No CUDA compiler is found.
    NvccMissing,
    /// A weight file is as small as a Git LFS pointer.
    LfsPointer,
    /// CUDA's compatibility libcuda comes before the driver's.
    CompatFirst,
    /// Processes of an earlier run are still there.
    LeftOver,
    /// Another process uses the GPU.
    GpuTaken,
    /// The server's process does not exist.
    NoProcess,
    /// The server's process exists.
    Alive,
    /// The process lives and nothing comes of it.
    Hung,
    /// The server listens on the loopback address only.
    LoopbackOnly,
    /// Nothing listens where the client knocks.
    NothingListens,
    /// A proxy is set in the environment.
    ProxySet,
    /// A proxy is set and the server's own address is not excepted.
    ProxyInTheWay,
    /// The health endpoint answered well.
    HttpOk,
    /// The health endpoint says that the server is loading.
    HttpLoading,
    /// The kernel killed a process for want of memory.
    KernelOom,
    /// Kernel messages were given and show no such kill.
    KernelClean,
    /// The signal that ended the process.
    ExitSignal,
    /// The code with which the process ended.
    ExitCode,
    /// The server runs in a container.
    InContainer,
    /// The container publishes no port.
    PortNotPublished,
    /// The container was given no GPU.
    NoGpuGiven,
    /// The client is on another machine or outside the container.
    ClientElsewhere,
    /// The client knocks at another port than the server's.
    PortDiffers,
    /// The GPUs are connected over PCIe only.
    PcieOnly,
    /// An IOMMU or access control is in force.
    Iommu,
    /// Speculation was asked for and no draft model was given.
    DraftMissing,
    /// A disk is full.
    DiskFull,
    /// The server came up in this launch.
    CameUp,
    /// The last line was written long ago.
    Silent,
    /// A client's report gives a peak throughput below the average.
    PeakBelowAverage,
}

/// A sign that is present.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Its number, for signs that have one.
    pub(super) number: Option<f64>,
    /// Its value in words.
    pub(super) text: String,
    /// What shows it.
    pub(super) evidence: Option<Evidence>,
}

/// What is known of a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Known {
    Present(Seen),
    Absent(Option<Evidence>),
    NotGiven,
}

macro_rules! pattern {
    ($name:ident, $source:expr) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($source).ok());
    };
}

pattern!(
    NONE,
    r"(?i)^\W*(?:no\b|none\b|not running|nothing|empty|0 processes|-$|n/a)|\b(?:no|none|not) (?:\w+[ /-]){0,3}(?:process|running|found|alive|listed)|\b(?:exited|dead|gone|terminated|not running)\b"
);
pattern!(
    GONE,
    r"(?i)\b(?:exited|dead|gone|terminated|not running|does not exist)\b"
);
pattern!(
    OLD,
    r"(?i)\b(?:old|earlier|previous|prior|left[ -]?overs?|orphan\w*|stale|stray|still (?:listed|alive|running|there|holding|resident)|zombie|last run|first run|ppid[ =:]*1\b|since yesterday)\b"
);
pattern!(
    ALIVE,
    r"(?i)\b(?:alive|running|up\b|sleeping|state[ =:]*[rs]\b|started|[rs] \(\w+\)|live)|llama-server|sglang|vllm|ollama|trtllm|text-generation|python"
);
pattern!(
    HUNG,
    r"(?i)no (?:new |further |more )?(?:log|output|lines?|progress)|\bhang|hung|stuck|spin|busy[ -]loop|no progress|unchanged|(?:9\d|100) ?% ?(?:cpu|gpu)?|idle for|futex|blocked|state[ =:]*d\b|\bd \(disk|deadlock|frozen"
);
pattern!(
    TAKEN,
    r"(?i)\b(?:pid|process)\b.*?\d|in use by|held by|occupied|another process|other process|used by|(?:\d{4,}) ?/ ?\d{4,} ?mi?b|compute[- ]apps?"
);
pattern!(
    MISSING,
    r"(?i)\b(?:not|no|none|missing|absent|without|unavailable|n't)\b"
);
pattern!(
    COMPAT,
    r"(?i)(?:^|/|\b)compat\b[^\n]*(?:first|before|wins|precede|shadow)|(?:first|before)[^\n]*\bcompat\b|cuda[\w./-]*/compat|cuda-compat"
);
pattern!(
    OK,
    r"(?i)(?:->|→|=>|:|\s|=)\s*(?:http/?[\d.]* )?(?:200|204)\b|\bok\b|healthy"
);
pattern!(LOADING, r"(?i)\b503\b|loading model|still loading|starting up");
pattern!(
    REFUSED,
    r"(?i)refused|unreachable|reset by peer|timed? ?out|no route"
);
pattern!(
    OOM_KILL,
    r"(?i)out of memory:? kill|oom[-_ ]kill(?:ed|er|ing)?|invoked oom|memory cgroup out of memory|oomkilled|killed process \d+|killed as a result of limit"
);
pattern!(OOM_COUNT, r"(?i)oom_kill\s*[=: ]\s*(\d+)");
pattern!(
    FILES,
    r"(?i)(?:ulimit\s+-\w*n|nofile|open files|max open files|rlimit_nofile|fds?)[^\d]{0,24}(\d+)"
);
pattern!(
    PCIE,
    r"(?i)\b(?:node|sys|phb|pxb|pix|pcie)\b|no nvlink|without nvlink"
);
pattern!(NVLINK, r"(?i)\bnv\d+\b|nvswitch|nvlink (?:active|ok|up)");
pattern!(IOMMU, r"(?i)iommu|\bacs\b|\bdmar\b|io_page_fault|amd-vi|vt-d");
pattern!(
    FULL,
    r"(?i)\b(?:9[5-9]|100) ?%|\b0 ?(?:b|bytes|k|m|g)? (?:avail|free|left)|full\b"
);
pattern!(
    CONTAINER,
    r"(?i)\b(?:docker|podman|nerdctl|kubectl|kubernetes|k8s|container|compose|pod)\b"
);
pattern!(
    PUBLISHED,
    r"(?:^|\s)(?:-p|--publish|-P|--publish-all)(?:[ =]|$)|--net(?:work)?[ =]host|hostnetwork|hostport|(?:->|:)\d+/tcp"
);
pattern!(
    GPUS_GIVEN,
    r"(?i)--gpus|--runtime[ =]nvidia|nvidia\.com/gpu|--device[ =]/dev/(?:nvidia|kfd|dri)|cdi"
);
pattern!(LISTEN, r"(?i)listen|tcp|^\S*:\d+");
pattern!(
    NOTHING,
    r"(?i)\b(?:nothing|none|no (?:listener|socket|process)|not listening|closed|free)\b"
);
pattern!(
    DOCKER_RUN,
    r"(?i)\b(?:docker|podman|nerdctl)(?: container)? run\b"
);
pattern!(
    ELSEWHERE,
    r"(?i)\(host\)|from (?:the |another |a |other )*(?:host|machine|container|laptop|node|pc|network|browser|lan)|host\.docker\.internal|host-gateway|other (?:machine|host|container|node)|remote"
);
pattern!(
    SMALL_FILE,
    r"(?i)\b(1\d\d) ?(?:bytes?|b)\b|git-lfs|lfs pointer|pointer file"
);
pattern!(
    SIGNAL,
    r"(?i)sig(?:nal)?[ =:]*(\d+|kill|term|segv|abrt|bus|ill|int|hup|quit|fpe|pipe)\b"
);
pattern!(CODE, r"-?\d+");

fn is(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn group(regex: &LazyLock<Option<Regex>>, text: &str) -> Option<String> {
    Some(regex.as_ref()?.captures(text)?.get(1)?.as_str().to_owned())
}

fn quote(fact: &Fact) -> Evidence {
    let text: String = crate::mask::mask(&fact.text).chars().take(400).collect();
    Evidence::new(fact.place(), text)
}

fn present(text: impl Into<String>, evidence: Option<Evidence>) -> Known {
    Known::Present(Seen {
        number: None,
        text: text.into(),
        evidence,
    })
}

fn counted(number: f64, evidence: Option<Evidence>) -> Known {
    Known::Present(Seen {
        number: Some(number),
        text: number.to_string(),
        evidence,
    })
}

fn signal_number(word: &str) -> Option<f64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "hup" => 1.0,
        "int" => 2.0,
        "quit" => 3.0,
        "ill" => 4.0,
        "abrt" => 6.0,
        "bus" => 7.0,
        "fpe" => 8.0,
        "kill" => 9.0,
        "segv" => 11.0,
        "pipe" => 13.0,
        "term" => 15.0,
        digits => digits.parse().ok()?,
    })
}

impl View<'_> {
    /// The first of the facts under `keys` for which `holds`; else absent with the first of them, or not known.
    fn by_fact(&self, keys: &[&str], holds: impl Fn(&Fact) -> bool) -> Known {
        let mut first = None;
        for key in keys {
            for fact in self.facts.get(key) {
                if holds(fact) {
                    return present(fact.text.clone(), Some(quote(fact)));
                }
                first.get_or_insert(fact);
            }
        }
        first.map_or(Known::NotGiven, |fact| Known::Absent(Some(quote(fact))))
    }

    fn by_number(&self, keys: &[&str], number: impl Fn(&Fact) -> Option<f64>) -> Known {
        for key in keys {
            for fact in self.facts.get(key) {
                if let Some(number) = number(fact) {
                    return counted(number, Some(quote(fact)));
                }
            }
        }
        Known::NotGiven
    }

    /// What is known of a sign.
    pub(super) fn sign(&self, sign: Sign) -> Known {
        match sign {
            Sign::GpuSm => self.gpu_sm(),
            Sign::Driver => self.driver(),
            Sign::TorchCuda => self.torch_cuda(),
            Sign::ShmSmall => self.by_fact(&[key::SHM], |fact| {
                size::bytes(&fact.text).is_some_and(|bytes| bytes < 1024.0 * 1024.0 * 1024.0)
            }),
            Sign::ClientFiles => self.by_number(&[key::CLIENT], files),
            Sign::ServerFiles => self.by_number(&[key::SERVER, key::LIMITS, key::PROC], files),
            Sign::NvccMissing => self.by_fact(&[key::NVCC], |fact| is(&MISSING, &fact.text)),
            Sign::LfsPointer => self.by_fact(&[key::FILES], |fact| is(&SMALL_FILE, &fact.text)),
            Sign::CompatFirst => {
                self.by_fact(&[key::LDCONFIG, key::ENV, key::PROC, key::CONTAINER], |fact| {
                    is(&COMPAT, &fact.text)
                        || (fact.name.as_deref() == Some("LD_LIBRARY_PATH") && fact.text.contains("/compat"))
                })
            }
            Sign::LeftOver => self.by_fact(&[key::PROCESSES, key::GPU], |fact| is(&OLD, &fact.text)),
            Sign::GpuTaken => self.by_fact(&[key::GPU], |fact| is(&TAKEN, &fact.text)),
            Sign::NoProcess => self.by_fact(&[key::PROCESSES, key::PROC], |fact| {
                let gone = if fact.key == key::PROC {
                    is(&GONE, &fact.text)
                } else {
                    is(&NONE, &fact.text)
                };
                gone && !is(&OLD, &fact.text)
            }),
            Sign::Alive => self.by_fact(&[key::PROCESSES, key::PROC], |fact| {
                is(&ALIVE, &fact.text) && !is(&NONE, &fact.text) && !is(&OLD, &fact.text)
            }),
            Sign::Hung => self.by_fact(&[key::PROC, key::PROCESSES], |fact| {
                is(&HUNG, &fact.text) && !is(&GONE, &fact.text)
            }),
            Sign::LoopbackOnly => self.loopback_only(),
            Sign::NothingListens => self.nothing_listens(),
            Sign::ProxySet => self
                .proxy()
                .map_or(Known::NotGiven, |(text, evidence)| present(text, Some(evidence))),
            Sign::ProxyInTheWay => self.proxy_in_the_way(),
            Sign::HttpOk => self.by_fact(&[key::HTTP], |fact| {
                is(&OK, &fact.text) && !is(&LOADING, &fact.text) && !is(&REFUSED, &fact.text)
            }),
            Sign::HttpLoading => self.by_fact(&[key::HTTP], |fact| is(&LOADING, &fact.text)),
            Sign::KernelOom => self.kernel_oom(),
            Sign::KernelClean => match self.kernel_oom() {
                Known::Absent(evidence) => present("no kill for want of memory", evidence),
                Known::Present(seen) => Known::Absent(seen.evidence),
                Known::NotGiven => Known::NotGiven,
            },
            Sign::ExitSignal => self.exit_signal(),
            Sign::ExitCode => self.exit_code(),
            Sign::InContainer => self.by_fact(&[key::ARGV, key::CONTAINER, key::SERVER], |fact| {
                fact.key == key::CONTAINER || is(&CONTAINER, &fact.text)
            }),
            Sign::PortNotPublished => self.by_fact(&[key::ARGV], |fact| {
                is(&DOCKER_RUN, &fact.text) && !is(&PUBLISHED, &fact.text)
            }),
            Sign::NoGpuGiven => self.by_fact(&[key::ARGV], |fact| {
                is(&DOCKER_RUN, &fact.text) && !is(&GPUS_GIVEN, &fact.text)
            }),
            Sign::ClientElsewhere => self.client_elsewhere(),
            Sign::PortDiffers => self.port_differs(),
            Sign::PcieOnly => self.by_fact(&[key::TOPO], |fact| {
                let linked = is(&NVLINK, &fact.text) && !fact.text.to_ascii_lowercase().contains("no nvlink");
                is(&PCIE, &fact.text) && !linked
            }),
            Sign::Iommu => self.by_fact(
                &[key::KERNEL, key::TOPO, "iommu", "bios", "host", "acs"],
                |fact| is(&IOMMU, &fact.text) || fact.key == "iommu" || fact.key == "acs",
            ),
            Sign::DraftMissing => self.draft_missing(),
            Sign::DiskFull => self.by_fact(&[key::DISK, key::FILES], |fact| is(&FULL, &fact.text)),
            Sign::CameUp => match self.ready() {
                Some(stage) => present(
                    stage.hit.text.clone(),
                    Some(self.quote(stage.log, stage.hit.line, &stage.hit.text)),
                ),
                None => Known::Absent(None),
            },
            Sign::PeakBelowAverage => {
                let value = |name: &str| {
                    let (log, observed, text) = self.last_observed(name)?;
                    Some((
                        size::number(text)?,
                        self.quote(log, observed.line, &observed.text),
                    ))
                };
                match (value("average-throughput"), value("peak-throughput")) {
                    (Some((average, evidence)), Some((peak, _))) if peak < average => {
                        counted(average, Some(evidence))
                    }
                    (Some(_), Some(_)) => Known::Absent(None),
                    _ => Known::NotGiven,
                }
            }
            Sign::Silent => self.by_number(&[key::LOG_AGE], |fact| {
                size::number(&fact.text).filter(|age| *age >= 600.0)
            }),
        }
    }

    /// A sign's number or words, for a placeholder.
    pub(super) fn sign_text(&self, sign: Sign) -> Option<String> {
        match self.sign(sign) {
            Known::Present(seen) => Some(seen.text),
            _ => None,
        }
    }

    fn gpu_sm(&self) -> Known {
        let from_fact = self.by_number(&[key::GPU], |fact| gpu::capability(&fact.text).map(f64::from));
        if from_fact != Known::NotGiven {
            return from_fact;
        }
        for name in ["gpu-sm", "gpu"] {
            if let Some((log, observed, value)) = self.last_observed(name)
                && let Some(capability) = gpu::capability(value).or_else(|| gpu::capability(&observed.text))
            {
                return counted(
                    f64::from(capability),
                    Some(self.quote(log, observed.line, &observed.text)),
                );
            }
        }
        Known::NotGiven
    }

    fn driver(&self) -> Known {
        let from_fact = self.by_number(&[key::DRIVER], |fact| {
            size::number(&fact.text)
                .map(f64::trunc)
                .filter(|major| *major > 100.0)
        });
        if from_fact != Known::NotGiven {
            return from_fact;
        }
        match self.last_observed("driver") {
            Some((log, observed, value)) => match size::number(value) {
                Some(number) => counted(
                    number.trunc(),
                    Some(self.quote(log, observed.line, &observed.text)),
                ),
                None => Known::NotGiven,
            },
            None => Known::NotGiven,
        }
    }

    fn torch_cuda(&self) -> Known {
        let digits = |version: &str| -> Option<f64> {
            let tag = version.split_once("+cu")?.1;
            let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
            // cu118, cu121, cu130: the last digit is the minor version.
            digits.get(..digits.len().checked_sub(1)?)?.parse().ok()
        };
        if let Some((fact, version)) = self.facts.package("torch")
            && let Some(major) = digits(&version)
        {
            return counted(major, Some(quote(fact)));
        }
        if let Some((log, observed, value)) = self.last_observed("torch")
            && let Some(major) = digits(value)
        {
            return counted(major, Some(self.quote(log, observed.line, &observed.text)));
        }
        Known::NotGiven
    }

    /// The mark that says that the server came up.
    pub(super) fn ready(&self) -> Option<super::view::PlacedStage<'_>> {
        let sglang = self.engine == Some(EngineKind::Sglang);
        self.stages
            .iter()
            .filter(|stage| match stage.mark.stage {
                Stage::Ready | Stage::Serving => true,
                // SGLang opens its port before its warm-up.
                Stage::Listening => stage.mark.end && !sglang,
                _ => false,
            })
            .copied()
            .last()
    }

    /// Where the server listens, by sockets, log and arguments.
    pub(super) fn server_address(&self) -> Option<(Address, Option<Evidence>)> {
        let mut best: Option<(Address, Option<Evidence>)> = None;
        for (log, observed) in self.observed("listen") {
            if let Some(address) = value_of(observed)
                .and_then(net::address)
                .or_else(|| net::address(&observed.text))
            {
                best = Some((address, Some(self.quote(log, observed.line, &observed.text))));
            }
        }
        if best.is_some() {
            return best;
        }
        for fact in self.facts.get(key::SOCKETS) {
            if is(&LISTEN, &fact.text)
                && !is(&NOTHING, &fact.text)
                && let Some(address) = net::address(&fact.text)
            {
                return Some((address, Some(quote(fact))));
            }
        }
        let word = |name: &str| match self.argument(name) {
            Argument::Given(value) if !value.is_empty() => Some(value),
            _ => None,
        };
        let (host, port) = (word("host"), word("port").and_then(|port| port.parse().ok()));
        (host.is_some() || port.is_some()).then_some((Address { host, port }, None))
    }

    /// Where the client knocked, in the order of the log.
    pub(super) fn client_targets(&self) -> Vec<(Address, Evidence)> {
        self.observed("client-target")
            .filter_map(|(log, observed)| {
                let address = value_of(observed).and_then(net::address)?;
                Some((address, self.quote(log, observed.line, &observed.text)))
            })
            .collect()
    }

    fn loopback_only(&self) -> Known {
        for fact in self.facts.get(key::SOCKETS) {
            if is(&LISTEN, &fact.text)
                && !is(&NOTHING, &fact.text)
                && let Some(host) = net::address(&fact.text).and_then(|address| address.host)
            {
                return if net::is_loopback(&host) {
                    present(host, Some(quote(fact)))
                } else {
                    Known::Absent(Some(quote(fact)))
                };
            }
        }
        if let Some((address, evidence)) = self.server_address()
            && let Some(host) = address.host
        {
            return if net::is_loopback(&host) {
                present(host, evidence)
            } else {
                Known::Absent(evidence)
            };
        }
        // Arguments without a host mean the engine's default.
        let loopback_by_default = matches!(
            self.engine,
            Some(
                EngineKind::Sglang
                    | EngineKind::LlamaCpp
                    | EngineKind::Ollama
                    | EngineKind::TensorRtLlm
                    | EngineKind::Transformers
            )
        );
        match (self.argument("host"), loopback_by_default) {
            (Argument::Absent, true) if self.facts.env("OLLAMA_HOST").is_none() => {
                let evidence = self.facts.get(key::ARGV).next().map(quote);
                present("127.0.0.1", evidence)
            }
            _ => Known::NotGiven,
        }
    }

    fn nothing_listens(&self) -> Known {
        self.by_fact(&[key::SOCKETS], |fact| is(&NOTHING, &fact.text))
    }

    fn proxy(&self) -> Option<(String, Evidence)> {
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            if let Some((fact, value)) = self.facts.env(name)
                && !value.trim().is_empty()
            {
                return Some((crate::mask::mask(&value).into_owned(), quote(fact)));
            }
        }
        let (log, observed, value) = self.last_observed("proxy")?;
        Some((value.to_owned(), self.quote(log, observed.line, &observed.text)))
    }

    fn proxy_in_the_way(&self) -> Known {
        let Some((proxy, evidence)) = self.proxy() else {
            return if self.facts.has(key::ENV) {
                Known::Absent(None)
            } else {
                Known::NotGiven
            };
        };
        let no_proxy = self.facts.env("no_proxy");
        if let Some((fact, rules)) = &no_proxy {
            let hosts: Vec<String> = self
                .server_address()
                .and_then(|(address, _)| address.host)
                .into_iter()
                .chain(
                    self.client_targets()
                        .into_iter()
                        .filter_map(|(address, _)| address.host),
                )
                .collect();
            if !hosts.is_empty() && hosts.iter().all(|host| net::bypasses(rules, host)) {
                return Known::Absent(Some(quote(fact)));
            }
        }
        present(proxy, Some(evidence))
    }

    fn kernel_oom(&self) -> Known {
        let killed =
            |fact: &Fact| {
                is(&OOM_KILL, &fact.text) && group(&OOM_COUNT, &fact.text).is_none_or(|count| count != "0")
                    || group(&OOM_COUNT, &fact.text).is_some_and(|count| count != "0")
                    || (fact.name.as_deref().is_some_and(|name| {
                        name.contains("oom_kill") || name.eq_ignore_ascii_case("OOMKilled")
                    }) && !matches!(fact.text.trim(), "0" | "false"))
            };
        let from_fact = self.by_fact(
            &[key::KERNEL, key::CGROUP, key::CONTAINER, key::MEMORY, key::EXIT],
            killed,
        );
        if matches!(from_fact, Known::Present(_)) {
            return from_fact;
        }
        if let Some((log, observed)) = self.observed("kernel-oom").next() {
            return present(
                observed.text.clone(),
                Some(self.quote(log, observed.line, &observed.text)),
            );
        }
        if self.facts.has(key::KERNEL) || self.facts.has(key::CGROUP) {
            from_fact
        } else {
            Known::NotGiven
        }
    }

    fn exit_signal(&self) -> Known {
        if let Some(fact) = self.facts.get(key::EXIT).next() {
            let by_word = group(&SIGNAL, &fact.text).and_then(|word| signal_number(&word));
            let by_code = || {
                let code: f64 = CODE.as_ref()?.find(&fact.text)?.as_str().parse().ok()?;
                // A shell and Docker add 128 to the signal's number, Python negates it.
                match code {
                    code if code < 0.0 => Some(-code),
                    code if (129.0..=159.0).contains(&code) => Some(code - 128.0),
                    _ => None,
                }
            };
            return match by_word.or_else(by_code) {
                Some(number) => counted(number, Some(quote(fact))),
                None => Known::Absent(Some(quote(fact))),
            };
        }
        match self.last_observed("exit-signal") {
            Some((log, observed, value)) => {
                let number = signal_number(value.trim_start_matches('-')).map(|number| {
                    if (129.0..=159.0).contains(&number) {
                        number - 128.0
                    } else {
                        number
                    }
                });
                number.map_or(Known::NotGiven, |number| {
                    counted(number, Some(self.quote(log, observed.line, &observed.text)))
                })
            }
            None => Known::NotGiven,
        }
    }

    fn exit_code(&self) -> Known {
        self.by_number(&[key::EXIT], |fact| {
            if is(&SIGNAL, &fact.text) {
                return None;
            }
            CODE.as_ref()?.find(&fact.text)?.as_str().parse().ok()
        })
    }

    fn client_elsewhere(&self) -> Known {
        for (address, evidence) in self.client_targets() {
            if let Some(host) = address.host
                && !net::is_loopback(&host)
                && !net::is_any(&host)
            {
                return present(host, Some(evidence));
            }
        }
        if let Some((log, observed)) = self.observed("from-host").next() {
            return present("the host", Some(self.quote(log, observed.line, &observed.text)));
        }
        let from_fact = self.by_fact(&[key::CLIENT, key::NETWORK], |fact| is(&ELSEWHERE, &fact.text));
        if matches!(from_fact, Known::Present(_)) {
            return from_fact;
        }
        // A published port that answers with a reset: the client is outside, the server inside.
        let published = self.by_fact(&[key::ARGV], |fact| {
            is(&DOCKER_RUN, &fact.text) && is(&PUBLISHED, &fact.text)
        });
        match published {
            Known::Present(seen) if !self.client_targets().is_empty() => {
                present("outside the container", seen.evidence)
            }
            _ => from_fact,
        }
    }

    fn port_differs(&self) -> Known {
        let Some((server, listens)) = self.server_address() else {
            return Known::NotGiven;
        };
        let Some(port) = server.port else {
            return Known::NotGiven;
        };
        let targets = self.client_targets();
        let Some((last, evidence)) = targets.iter().rfind(|(address, _)| address.port.is_some()) else {
            return Known::NotGiven;
        };
        // A published port may lead elsewhere on purpose.
        let mapped = self.facts.get(key::ARGV).any(|fact| {
            last.port
                .is_some_and(|asked| fact.text.contains(&format!("{asked}:{port}")))
        });
        if last.port == Some(port) || mapped {
            Known::Absent(listens)
        } else {
            present(
                last.port.map_or_else(String::new, |port| port.to_string()),
                Some(evidence.clone()),
            )
        }
    }

    fn draft_missing(&self) -> Known {
        let algorithm = match self.argument("speculative_algorithm") {
            Argument::NotKnown => return Known::NotGiven,
            Argument::Absent => return Known::Absent(None),
            Argument::Given(algorithm) => algorithm,
        };
        let needs = ["eagle", "eagle3", "standalone"]
            .iter()
            .any(|name| algorithm.eq_ignore_ascii_case(name));
        let given = ["speculative_draft_model_path", "speculative_draft_model"]
            .iter()
            .any(|name| matches!(self.argument(name), Argument::Given(_)));
        let evidence = self.facts.get(key::ARGV).next().map(quote).or_else(|| {
            self.observed("args")
                .next()
                .map(|(log, observed)| self.quote(log, observed.line, &observed.text))
        });
        let said_missing = self
            .facts
            .get(key::ARGV)
            .any(|fact| fact.text.contains("no draft"));
        if needs && (!given || said_missing) {
            present(algorithm, evidence)
        } else {
            Known::Absent(evidence)
        }
    }
}

fn files(fact: &Fact) -> Option<f64> {
    group(&FILES, &fact.text)
        .or_else(|| {
            fact.name
                .as_deref()
                .filter(|name| {
                    ["nofile", "open files", "ulimit -n", "ulimit_n", "Max open files"]
                        .iter()
                        .any(|known| name.eq_ignore_ascii_case(known))
                })
                .and_then(|_| size::number(&fact.text).map(|number| number.to_string()))
        })
        .and_then(|digits| digits.parse().ok())
}
