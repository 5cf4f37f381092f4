//! Generation requests: what they ask for, made into a job.

use std::sync::atomic::Ordering::Relaxed;

use shakedown_model::Api;

use super::Seen;
use crate::ask::Ask;
use crate::connection::{HeadState, Job, Slot, Source};
use crate::http::Head;
use crate::options::{Manners, Options};
use crate::random::{fnv, mix};
use crate::reply::{self, Body};
use crate::script::{Context, Script, ScriptRun};
use crate::shape::{Finish, ReasoningField, Shape, Usage, escape};
use crate::shared::{Shared, lock};
use crate::stream::{Make, Stream, decide};
use crate::tokenizer::{self, Words};
use crate::truth::Record;

/// A job for a generation request; an error is a job too, so that the truth tells of it.
pub(super) fn generate(shared: &Shared, head: &Head, body: &[u8], seen: Seen, api: Api) -> Job {
    let options = &shared.options;
    let ask = match Ask::read(api, head, body) {
        Ok(ask) => ask,
        Err(why) => return refuse(options, head, seen, 400, &why),
    };
    let prompt_tokens = tokenizer::count(&ask.prompt);
    let room = options.context.saturating_sub(prompt_tokens);
    if room == 0 {
        let body = too_long(options.engine, prompt_tokens, options.context);
        return refuse_with(options, head, seen, 400, &body);
    }
    let named = ask.model.as_deref().unwrap_or(&options.model);
    if options.engine == Manners::Vllm && named != options.model && !named.starts_with("script:") {
        let why = format!("The model `{named}` does not exist.");
        let body = reply::error_body(options.engine, 404, &why, Some("model"));
        return refuse_with(options, head, seen, 404, &body);
    }
    let script = match script_for(shared, head, &ask) {
        Ok(script) => script,
        Err(why) => return refuse(options, head, seen, 404, &why),
    };
    let ordinal = shared.ordinal.fetch_add(1, Relaxed);
    let cached = if options.prefix_cache {
        lock(&shared.cache).take(&ask.prompt, prompt_tokens)
    } else {
        0
    };
    let tell_cached = options
        .report_cached
        .unwrap_or(matches!(options.engine, Manners::Plain | Manners::LlamaCpp));
    // The same prompt and seed give the same answer, whatever else happens.
    let words = Words::new(mix(options.seed ^ mix(ask.seed)) ^ fnv(ask.prompt.as_bytes()));
    let answer = decide(options, &ask, &words, room);
    let id = identity(options.engine, api, mix(shared.origin ^ mix(ordinal)));
    let shape = Shape {
        manners: options.engine,
        api,
        id,
        created: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        model: escape(ask.model.as_deref().unwrap_or(&options.model)),
        include_usage: ask.include_usage,
        token_ids: ask.token_ids,
        prompt_ids: if ask.token_ids && api != Api::Generate {
            tokenizer::ids(&ask.prompt)
        } else {
            Vec::new()
        },
        reasoning: ReasoningField::ReasoningContent,
    };
    let usage = Usage {
        prompt: prompt_tokens,
        completion: 0,
        cached: (tell_cached || api == Api::Generate).then_some(cached),
    };
    if let Some(script) = script {
        let context = Context {
            options,
            shape,
            usage,
            continuous_asked: ask.continuous_usage,
            words,
            read: seen.read,
            keep_alive: head.keep_alive,
        };
        return scripted(&script, context, head, seen);
    }
    shared.counters.prompt(prompt_tokens, cached);
    let chunked = !head.http_1_0;
    let keep_alive = head.keep_alive && (chunked || !ask.stream);
    let mut record = Record::new(
        head.request_id.clone(),
        head.path.clone(),
        seen.accepted,
        seen.read,
        answer.tokens as usize + 8,
    );
    record.set_status(200);
    record.set_prompt_tokens(prompt_tokens);
    let way = usize::from(answer.finish == Finish::Length);
    let body = if chunked { Body::Chunked } else { Body::UntilClose };
    let (head_state, whole_head) = match (ask.stream, options.engine) {
        (false, _) => {
            let kind = reply::json_type(options.engine);
            (
                HeadState::Sent,
                Some(reply::head(options, 200, kind, "", Body::Open, keep_alive)),
            )
        }
        // llama-server waits for the first result before it commits to a status.
        (true, Manners::LlamaCpp) => (
            HeadState::WithFirst(reply::stream_head(options, body, keep_alive)),
            None,
        ),
        (true, _) => (
            HeadState::Alone(reply::stream_head(options, body, keep_alive)),
            None,
        ),
    };
    let stream = Stream::new(Make {
        options,
        ask: &ask,
        shape,
        usage,
        answer,
        words,
        ordinal,
        read: seen.read,
    });
    Job {
        source: Source::Stream(Box::new(stream)),
        record,
        ordinal,
        slot: Slot::Waiting,
        head: head_state,
        chunked,
        whole_head,
        keep_alive,
        way,
    }
}

/// The script that answers a request: the one it names (header, model name), else the server's. A script is a
/// stream: a request for a whole answer gets an ordinary one, unless the script's status is an error.
fn script_for(shared: &Shared, head: &Head, ask: &Ask) -> Result<Option<Script>, String> {
    let model = ask
        .model
        .as_deref()
        .and_then(|model| model.strip_prefix("script:"));
    let script = match head.script.as_deref().or(model) {
        Some(name) => Some(Script::named(name).ok_or_else(|| format!("no script is named {name}"))?),
        None => shared.options.script.clone(),
    };
    Ok(script.filter(|script| ask.stream || script.status() != 200))
}

/// A job that carries out a script.
fn scripted(script: &Script, context: Context<'_>, head: &Head, seen: Seen) -> Job {
    let keep_alive = head.keep_alive && ScriptRun::keeps_alive(script);
    let mut record = Record::new(
        head.request_id.clone(),
        head.path.clone(),
        seen.accepted,
        seen.read,
        64,
    );
    record.set_script(script.name());
    record.set_status(script.status());
    record.set_prompt_tokens(context.usage.prompt);
    record.set_slot(seen.read);
    Job {
        source: Source::Script(Box::new(ScriptRun::new(script, context))),
        record,
        ordinal: 0,
        slot: Slot::Free,
        head: HeadState::Sent,
        chunked: false,
        whole_head: None,
        keep_alive,
        way: 0,
    }
}

/// A job that is an error in the engine's shape.
fn refuse(options: &Options, head: &Head, seen: Seen, status: u16, why: &str) -> Job {
    let body = reply::error_body(options.engine, status, why, None);
    refuse_with(options, head, seen, status, &body)
}

/// A job that is an error with this JSON.
pub(super) fn refuse_with(options: &Options, head: &Head, seen: Seen, status: u16, body: &str) -> Job {
    let mut record = Record::new(
        head.request_id.clone(),
        head.path.clone(),
        seen.accepted,
        seen.read,
        1,
    );
    record.set_status(status);
    Job {
        source: Source::Ready(reply::json(options, status, body, head.keep_alive)),
        record,
        ordinal: 0,
        slot: Slot::Free,
        head: HeadState::Sent,
        chunked: false,
        whole_head: None,
        keep_alive: head.keep_alive,
        way: 0,
    }
}

/// An answer's id, as the engine makes them.
fn identity(engine: Manners, api: Api, hash: u64) -> String {
    let prefix = if api == Api::Completions {
        "cmpl"
    } else {
        "chatcmpl"
    };
    match engine {
        Manners::Plain | Manners::Vllm => format!("{prefix}-{hash:016x}"),
        Manners::Sglang => format!("{hash:016x}{:016x}", mix(hash)),
        Manners::LlamaCpp => {
            const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
            let mut id = "chatcmpl-".to_owned();
            let mut state = hash;
            for _ in 0..32 {
                state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                id.push(char::from(DIGITS[(state % 62) as usize]));
            }
            id
        }
    }
}

/// The error for a prompt that does not fit.
fn too_long(engine: Manners, prompt: u32, context: u32) -> String {
    match engine {
        Manners::LlamaCpp => format!(
            r#"{{"error":{{"code":400,"message":"request ({prompt} tokens) exceeds the available context size ({context} tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{context}}}}}"#
        ),
        Manners::Sglang => reply::error_body(
            engine,
            400,
            &format!(
                "The input ({prompt} tokens) is longer than the model's context length ({context} tokens)."
            ),
            None,
        ),
        Manners::Vllm | Manners::Plain => reply::error_body(
            engine,
            400,
            &format!(
                "This model's maximum context length is {context} tokens. However, your prompt contains {prompt} input tokens."
            ),
            Some("input_tokens"),
        ),
    }
}
