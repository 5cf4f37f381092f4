//! From a URL to a server that can be measured: address, engine, model, settings in force.

use std::net::SocketAddr;
use std::time::Duration;

use shakedown_engines::Recognition;
use shakedown_model::{EngineKind, EngineMetrics, Exit, Secret, Server, ServerState};
use shakedown_wire::client::{Client, ClientError, ClientOptions};
use shakedown_wire::request::Headers;
use shakedown_wire::target::{Target, TargetError};

/// How long a name may take to resolve.
const RESOLVE: Duration = Duration::from_secs(10);
/// How long a probe may take. SGLang's `/health` alone may take its own 20 s limit.
const PROBE: Duration = Duration::from_secs(25);

/// Why a server could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The URL is not one.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A header is not one.
    #[error("header {name:?} has a value that cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// None of its addresses accepted a connection.
    #[error("nothing answers at {target}: {}", tried.join("; "))]
    Unreachable {
        /// The target, credentials masked.
        target: String,
        /// Each address with what came of it.
        tried: Vec<String>,
    },
    /// Something answers, and it is no HTTP server.
    #[error("{target} does not answer as an HTTP server: {problem}")]
    NotHttp {
        /// The target, credentials masked.
        target: String,
        /// What it did instead.
        problem: String,
    },
    /// It lists no model, and none was named.
    #[error("{target} lists no model")]
    NoModel {
        /// The target, credentials masked.
        target: String,
    },
    /// It is still loading its model.
    #[error("{target} is still loading its model")]
    Loading {
        /// The target, credentials masked.
        target: String,
    },
}

impl ServerError {
    /// How the process should end.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Target(_) | Self::Header { .. } | Self::NoModel { .. } => Exit::Usage,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::NotHttp { .. } | Self::Loading { .. } => Exit::No,
        }
    }

    /// What to do about it, a line each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreachable { .. } => vec![
                "SGLang listens on 30000 by default, vLLM on 8000, llama-server on 8080 or 9931: check the port"
                    .to_owned(),
            ],
            Self::NoModel { .. } => vec!["name it with --model".to_owned()],
            Self::Loading { .. } => vec!["try again when it has finished".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// A server that can be measured.
pub(crate) struct Found {
    pub(crate) target: Target,
    pub(crate) address: SocketAddr,
    pub(crate) headers: Headers,
    pub(crate) model: String,
    pub(crate) server: Server,
    client: Client,
    recognition: Recognition,
}

/// Finds out what is at `url`.
pub(crate) fn look(
    url: &str,
    model: Option<&str>,
    api_key: Option<&Secret>,
    extra: &[(String, Secret)],
) -> Result<Found, ServerError> {
    let target = Target::parse(url)?;
    let mut headers = Headers::new();
    let mut push = |name: &str, value: &str| {
        headers.set(name, value).map_err(|_| ServerError::Header {
            name: name.to_owned(),
        })
    };
    push("content-type", "application/json")?;
    if let Some(key) = api_key {
        push("authorization", &format!("Bearer {}", key.expose()))?;
    }
    for (name, value) in extra {
        push(name, value.expose())?;
    }
    let client = Client::new(ClientOptions {
        timeout: PROBE,
        headers: headers.clone(),
        ..ClientOptions::default()
    });
    let address = reach(&target, &client)?;
    let recognition = shakedown_engines::recognise(&client, &target, Some(address));
    match recognition.state {
        ServerState::Silent => {
            let problem = recognition
                .failure
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            return Err(ServerError::NotHttp {
                target: target.to_string(),
                problem,
            });
        }
        ServerState::Loading => {
            return Err(ServerError::Loading {
                target: target.to_string(),
            });
        }
        _ => {}
    }
    let model = model
        .map(str::to_owned)
        .or_else(|| recognition.models.first().map(|model| model.id.clone()))
        .ok_or_else(|| ServerError::NoModel {
            target: target.to_string(),
        })?;
    let state = recognition
        .engine
        .as_ref()
        .map(|engine| shakedown_engines::read_state(&client, &target, engine));
    let (in_force, reports) = state
        .map(|state| (state.in_force, state.reports))
        .unwrap_or_default();
    let server = Server {
        url: target.to_string(),
        address: Some(address.to_string()),
        engine: recognition.engine.clone(),
        model: Some(model.clone()),
        in_force,
        reports,
        ..Server::default()
    };
    Ok(Found {
        target,
        address,
        headers,
        model,
        server,
        client,
        recognition,
    })
}

impl Found {
    /// Whether the server is known to tell usage with every chunk when asked to (`continuous_usage_stats`).
    pub(crate) fn continuous_usage(&self) -> bool {
        let known = [EngineKind::Sglang, EngineKind::Vllm, EngineKind::Practice];
        self.recognition
            .engine
            .as_ref()
            .is_some_and(|engine| known.contains(&engine.kind))
    }

    /// Whether the server is our practice server, in whatever manners.
    pub(crate) fn is_practice(&self) -> bool {
        self.recognition
            .engine
            .as_ref()
            .is_some_and(|engine| engine.practice)
    }

    /// The engine's own metrics now, where it has any.
    pub(crate) fn metrics(&self) -> Option<EngineMetrics> {
        let engine = self.recognition.engine.as_ref()?;
        shakedown_engines::read_metrics(&self.client, &self.target, engine)
    }

    /// The body of an allow-listed GET.
    pub(crate) fn get(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        self.client
            .get(&self.target, Some(self.address), path)
            .map(|reply| reply.body)
    }
}

/// The first of the target's addresses that accepts a connection. A name such as `localhost` may stand for two,
/// of which the server listens on one.
fn reach(target: &Target, client: &Client) -> Result<SocketAddr, ServerError> {
    let unreachable = |tried| ServerError::Unreachable {
        target: target.to_string(),
        tried,
    };
    let addresses = target
        .resolve(RESOLVE)
        .map_err(|error| unreachable(vec![error.to_string()]))?;
    let mut tried = Vec::new();
    for address in addresses {
        match client.connect(address) {
            Ok(()) => return Ok(address),
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(unreachable(tried))
}
