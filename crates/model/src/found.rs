//! Servers found on a machine: the document of `find`, schema `shakedown.find/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Engine, Evidence, Finding, InForce};

/// Name and version of the find document's schema.
pub const FIND_SCHEMA: &str = "shakedown.find/1";

/// What a server is doing, as far as it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It says that it answers requests.
    Ready,
    /// It is loading or warming up.
    Loading,
    /// It says itself that it is not well.
    Unhealthy,
    /// It is well and holds no model: the next request loads one.
    Idle,
    /// It answers HTTP and was not asked, or does not tell, whether it is ready.
    Answers,
    /// Its port takes connections and no HTTP answer comes.
    Silent,
    /// A port is open; nothing was asked.
    Listening,
    /// Processes of it run without their head: left over from a server that ended.
    LeftOver,
    /// Not known.
    #[default]
    Unknown,
}

/// A model that a server lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServedModel {
    /// The name that requests carry.
    pub id: String,
    /// What it was loaded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Longest context in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u64>,
    /// Who owns it, in the engine's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<String>,
}

/// From where an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// From this machine alone.
    ThisMachine,
    /// From other machines too, as far as no firewall stands between.
    Outside,
    /// From inside its own network namespace alone.
    Namespace,
}

/// What put a server at its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum AddressReason {
    /// An argument.
    Argument {
        /// The argument with its value.
        argument: String,
    },
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
    },
    /// The engine's default, for nothing asks for another.
    Default {
        /// The argument that would ask for another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flag: Option<String>,
    },
    /// A configuration file is named, which may say it.
    ConfigFile {
        /// The file.
        path: String,
    },
    /// Another program passes connections on.
    Published {
        /// Which program, in one sentence.
        how: String,
    },
    /// Its arguments cannot be read, or do not explain it.
    Unknown,
}

/// One address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundAddress {
    /// Where it listens, as the kernel says it: `127.0.0.1:30000`, `0.0.0.0:8000`, `[::]:8000`, `unix:/run/x.sock`.
    pub listens: String,
    /// Base URL that reaches it from this machine; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// From where it can be reached.
    pub reach: Reach,
    /// What put it there.
    pub because: AddressReason,
    /// Whether requests go here; other ports of a server are internal.
    pub requests: bool,
}

/// What a process is to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessPart {
    /// Its main process.
    Head,
    /// One of its helpers.
    Worker,
}

/// One process of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundProcess {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Its title or command name.
    pub name: String,
    /// What it is to the server.
    pub part: ProcessPart,
}

/// Where the log of a server goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FoundLog {
    /// A file.
    File {
        /// Its path, as this machine sees it.
        path: String,
        /// How the log gets there, in one sentence.
        how: String,
        /// Whether it was removed while still written.
        #[serde(default)]
        deleted: bool,
    },
    /// A terminal, and nowhere else.
    Terminal {
        /// Its device.
        device: String,
    },
    /// The system's journal.
    Journal {
        /// The unit, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<String>,
    },
    /// The log of a container.
    Container {
        /// The container's id.
        id: String,
    },
    /// Thrown away.
    Discarded,
    /// A pipe whose reader writes no file that we can see.
    Pipe {
        /// The reader, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reader: Option<String>,
    },
    /// Not known; why is in `not_read`.
    Unknown,
}

/// A worker that a router passes requests to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundWorker {
    /// Base URL as the router knows it, credentials masked.
    pub url: String,
    /// The model, where the router tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the router holds it for well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
    /// Process id of the server in this document that is this worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundServer {
    /// The engine.
    pub engine: Engine,
    /// What it is doing.
    pub state: ServerState,
    /// The model that it was asked to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models that it lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ServedModel>,
    /// Its addresses, those for requests first.
    pub addresses: Vec<FoundAddress>,
    /// Where it will listen when it has loaded, by its arguments or its engine's default; absent where it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub will_listen: Option<FoundAddress>,
    /// Process id of its main process.
    pub pid: u32,
    /// Its processes, the main one first.
    pub processes: Vec<FoundProcess>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Start of its main process in seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// The same start in clock ticks since boot: with boot id and pid it names the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// Its arguments, secrets masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The part of its environment that matters, secrets masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Settings asked for, and in force where the engine was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<InForce>,
    /// GPU device files that its processes hold open: it may use fewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_devices: Vec<String>,
    /// Where its log goes, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<FoundLog>,
    /// The container or service that it runs in, in the control group's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Whether it has a network namespace of its own.
    #[serde(default)]
    pub own_network: bool,
    /// What it passes requests to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<FoundWorker>,
    /// What of it could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<Evidence>,
}

impl FoundServer {
    /// The base URL for requests from this machine.
    pub fn url(&self) -> Option<&str> {
        self.addresses
            .iter()
            .filter(|address| address.requests)
            .find_map(|address| address.url.as_deref())
    }
}

/// What `find` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// [`FIND_SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Host name.
    pub host: String,
    /// The servers, by process id.
    pub servers: Vec<FoundServer>,
    /// Judged facts that concern the machine as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What could not be read for want of privileges, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<Evidence>,
}
