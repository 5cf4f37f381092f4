//! What serves at an address: asked in the classifier's order, few requests, nothing outside the allow-list.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use shakedown_model::{Engine, EngineKind, ServedModel, ServerState};
use shakedown_wire::client::{Client, ClientError};
use shakedown_wire::target::Target;

use crate::catalog::{Catalog, IdentityRule, StateWord};
use crate::mask::mask_text;
use crate::probe::{Answered, Prober};

/// Where every engine lists its models, and the first thing asked.
const MODELS_PATH: &str = "/v1/models";
/// Models that are kept of a listing.
const MODELS_CAP: usize = 1000;
/// Longest version that is believed, in bytes.
const VERSION_CAP: usize = 100;

/// What was found at an address.
#[derive(Debug)]
pub struct Recognition {
    /// The engine, where it was recognised.
    pub engine: Option<Engine>,
    /// What it is doing.
    pub state: ServerState,
    /// The models that it lists.
    pub models: Vec<ServedModel>,
    /// The paths that answered, in order.
    pub answered: Vec<Answered>,
    /// Some answer refused for want of a key.
    pub needs_key: bool,
    /// Why the first request without an answer had none.
    pub failure: Option<ClientError>,
}

/// How to recognise.
#[derive(Debug, Clone, Copy)]
pub struct Recogniser<'a> {
    catalog: &'a Catalog,
    hint: Option<EngineKind>,
    glance: bool,
}

impl<'a> Recogniser<'a> {
    /// With the whole classifier, and the state asked for even where that takes a second (SGLang's `/health`).
    pub const fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            hint: None,
            glance: false,
        }
    }

    /// What its process says that it is: its own signs are looked for first.
    #[must_use]
    pub const fn hint(mut self, kind: EngineKind) -> Self {
        self.hint = Some(kind);
        self
    }

    /// Leaves out probes that make the server generate; its state may then be no more than `answers`.
    #[must_use]
    pub const fn glance(mut self) -> Self {
        self.glance = true;
        self
    }

    /// Asks the target, at `addr` where one is given.
    pub fn recognise(&self, client: &Client, target: &Target, addr: Option<SocketAddr>) -> Recognition {
        let mut prober = Prober::new(self.catalog, client, target, addr);
        let first = prober.get(MODELS_PATH).map(|answer| answer.status);
        if first.is_none() {
            return failed(prober);
        }
        let engine = self.engine(&mut prober);
        let models = prober
            .get(MODELS_PATH)
            .and_then(|answer| answer.json.as_ref())
            .map(listed_models)
            .unwrap_or_default();
        // What answers like no engine may still be the one that its process is.
        let state = match engine.as_ref().map(|engine| engine.kind).or(self.hint) {
            Some(kind) => self.state(&mut prober, kind),
            None => ServerState::Answers,
        };
        let needs_key = prober.needs_key();
        let (answered, failure) = prober.into_parts();
        Recognition {
            engine,
            state,
            models,
            answered,
            needs_key,
            failure,
        }
    }

    fn engine(&self, prober: &mut Prober<'_>) -> Option<Engine> {
        let mut practice: Option<&str> = None;
        for (kind, rule) in self.rules() {
            let matched = prober
                .get(&rule.path)
                .is_some_and(|answer| rule.reply.holds(&answer.view()));
            if !matched {
                continue;
            }
            if rule.marks_practice {
                practice = Some(&rule.shows);
                continue;
            }
            return Some(Engine {
                kind,
                version: self.version(prober, kind),
                recognised_by: match practice {
                    Some(shows) => format!("{}, and {shows}", rule.shows),
                    None => rule.shows.clone(),
                },
                practice: practice.is_some() || kind == EngineKind::Practice,
            });
        }
        practice.map(|shows| Engine {
            kind: EngineKind::Practice,
            version: None,
            recognised_by: shows.to_owned(),
            practice: true,
        })
    }

    /// All rules in order; those of the hint first, after the mark of the practice server.
    fn rules(&self) -> Vec<(EngineKind, &'a IdentityRule)> {
        let mut rules: Vec<(EngineKind, &IdentityRule)> = self
            .catalog
            .entries()
            .flat_map(|entry| entry.identity.iter().map(move |rule| (entry.kind, rule)))
            .collect();
        rules.sort_by_key(|(kind, rule)| {
            let later = !(rule.marks_practice || self.hint == Some(*kind));
            (later, rule.order)
        });
        rules
    }

    fn version(&self, prober: &mut Prober<'_>, kind: EngineKind) -> Option<String> {
        self.catalog.entry(kind).version.iter().find_map(|source| {
            let told = prober
                .get(&source.path)?
                .json
                .as_ref()?
                .pointer(&source.at)?
                .as_str()?;
            let useful = !told.is_empty()
                && told.len() <= VERSION_CAP
                && !source.except.iter().any(|none| none == told);
            useful.then(|| mask_text(told))
        })
    }

    fn state(&self, prober: &mut Prober<'_>, kind: EngineKind) -> ServerState {
        for rule in &self.catalog.entry(kind).state {
            if self.glance && rule.generates {
                continue;
            }
            let deadline = rule.deadline_ms.map(Duration::from_millis);
            let Some(answer) = prober.get_within(&rule.path, deadline) else {
                continue;
            };
            let in_time = rule
                .within_ms
                .is_none_or(|most| answer.took <= Duration::from_millis(most));
            if in_time && rule.reply.holds(&answer.view()) {
                return match rule.state {
                    StateWord::Ready => ServerState::Ready,
                    StateWord::Loading => ServerState::Loading,
                    StateWord::Unhealthy => ServerState::Unhealthy,
                    StateWord::Idle => ServerState::Idle,
                };
            }
        }
        ServerState::Answers
    }
}

/// Recognises what serves at the target with the catalogue of this process: see [`Recogniser`].
pub fn recognise(client: &Client, target: &Target, addr: Option<SocketAddr>) -> Recognition {
    Recogniser::new(Catalog::shared()).recognise(client, target, addr)
}

/// Nothing came back to the first request.
fn failed(prober: Prober<'_>) -> Recognition {
    let (answered, failure) = prober.into_parts();
    let took_the_connection = matches!(
        failure,
        Some(
            ClientError::Timeout { .. }
                | ClientError::Reset { .. }
                | ClientError::Http { .. }
                | ClientError::BodyTooLarge { .. }
                | ClientError::ContentEncoding { .. }
                | ClientError::Io { .. }
        )
    );
    Recognition {
        engine: None,
        state: if took_the_connection {
            ServerState::Silent
        } else {
            ServerState::Unknown
        },
        models: Vec::new(),
        answered,
        needs_key: false,
        failure,
    }
}

/// The models of an OpenAI listing.
pub(crate) fn listed_models(listing: &Value) -> Vec<ServedModel> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(mask_text);
    listing
        .pointer("/data")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(MODELS_CAP)
        .filter_map(|model| {
            Some(ServedModel {
                id: text(model.get("id"))?,
                root: text(model.get("root")),
                // llama.cpp says it in `meta`.
                max_model_len: model
                    .get("max_model_len")
                    .or_else(|| model.pointer("/meta/n_ctx"))
                    .and_then(Value::as_u64),
                owned_by: text(model.get("owned_by")),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings() {
        let listing = serde_json::json!({"object": "list", "data": [
            {"id": "SmolLM2", "owned_by": "vllm", "root": "models/x", "max_model_len": 2048},
            {"id": "b", "meta": {"n_ctx": 4096}},
            {"name": "no id"},
            3,
        ]});
        let models = listed_models(&listing);
        assert_eq!(models.len(), 2);
        assert_eq!(models[0].max_model_len, Some(2048));
        assert_eq!(models[1].max_model_len, Some(4096));
        assert!(listed_models(&serde_json::json!({"data": "x"})).is_empty());
    }
}
