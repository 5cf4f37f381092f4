//! Whole answers, and what engines add at the end of one.

use std::io::Write as _;

use shakedown_model::Api;

use super::{Finish, Shape, Tail, Usage, ids, put};
use crate::options::Manners;

impl Shape {
    /// An event of SGLang's `/generate`: the whole text so far.
    pub(crate) fn generate(
        &self,
        out: &mut Vec<u8>,
        text: &[u8],
        output_ids: &[u32],
        usage: Usage,
        finish: Option<(Finish, u32)>,
        tail: Option<&Tail>,
    ) {
        out.extend_from_slice(br#"{"text":""#);
        out.extend_from_slice(text);
        out.extend_from_slice(br#"","output_ids":"#);
        ids(out, output_ids);
        put!(out, r#","meta_info":{{"id":"{}","finish_reason":"#, self.id);
        match finish {
            None => out.extend_from_slice(b"null"),
            Some((Finish::Length, limit)) => {
                put!(out, r#"{{"type":"length","length":{limit}}}"#);
            }
            Some((reason, _)) => {
                put!(out, r#"{{"type":"{}","matched":2}}"#, reason.as_str());
            }
        }
        put!(
            out,
            r#","prompt_tokens":{},"weight_version":"default","completion_tokens":{},"cached_tokens":{}"#,
            usage.prompt,
            usage.completion,
            usage.cached.unwrap_or(0)
        );
        if let Some(tail) = tail {
            if let Some(done) = tail.speculated.as_ref().filter(|done| done.steps > 0) {
                put!(
                    out,
                    r#","spec_accept_rate":{},"spec_accept_length":{},"spec_accept_token_num":{},"spec_draft_token_num":{},"spec_verify_ct":{}"#,
                    f64::from(done.accepted) / f64::from(done.drafted.max(1)),
                    f64::from(usage.completion) / f64::from(done.steps),
                    done.accepted,
                    done.drafted,
                    done.steps
                );
            }
            put!(out, r#","e2e_latency":{:.6}"#, tail.e2e_s);
        }
        out.extend_from_slice(b"}}");
    }

    /// A whole answer of a chat or a completion.
    pub(crate) fn whole(
        &self,
        out: &mut Vec<u8>,
        text: &[u8],
        output_ids: &[u32],
        finish: Finish,
        usage: Usage,
        tail: &Tail,
    ) {
        let word = finish.as_str();
        let (id, created, model) = (&self.id, self.created, &self.model);
        let chat = self.api == Api::Chat;
        let object = if chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        if self.manners == Manners::LlamaCpp {
            put!(out, r#"{{"choices":[{{"finish_reason":"{word}","index":0,"#);
        } else {
            put!(
                out,
                r#"{{"id":"{id}","object":"{object}","created":{created},"model":"{model}","choices":[{{"index":0,"#
            );
        }
        if chat {
            out.extend_from_slice(br#""message":{"role":"assistant","content":""#);
            out.extend_from_slice(text);
            out.extend_from_slice(match self.manners {
                Manners::Plain => br#"","refusal":null}"#.as_slice(),
                Manners::Sglang => br#"","reasoning_content":null,"tool_calls":null}"#,
                Manners::Vllm => {
                    br#"","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}"#
                }
                Manners::LlamaCpp => br#""}"#,
            });
        } else {
            out.extend_from_slice(br#""text":""#);
            out.extend_from_slice(text);
            out.push(b'"');
        }
        match self.manners {
            Manners::Plain => {
                put!(out, r#","logprobs":null,"finish_reason":"{word}"}}],"#);
            }
            Manners::Sglang => {
                put!(
                    out,
                    r#","logprobs":null,"finish_reason":"{word}","matched_stop":null}}],"#
                );
            }
            Manners::Vllm => {
                put!(
                    out,
                    r#","logprobs":null,"finish_reason":"{word}","stop_reason":null,"token_ids":"#
                );
                if self.token_ids {
                    ids(out, output_ids);
                } else {
                    out.extend_from_slice(b"null");
                }
                out.extend_from_slice(
                    br#","routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-practice","#,
                );
            }
            Manners::LlamaCpp => {
                put!(
                    out,
                    r#"}}],"created":{created},"model":"{model}","system_fingerprint":"b0-practice","object":"{object}","#
                );
            }
        }
        self.usage_member(out, usage);
        match self.manners {
            Manners::Plain => out.extend_from_slice(br#","system_fingerprint":"practice"}"#),
            Manners::Sglang => out.extend_from_slice(br#","metadata":{"weight_version":"default"}}"#),
            Manners::Vllm => {
                out.extend_from_slice(br#","prompt_logprobs":null,"prompt_token_ids":"#);
                if self.token_ids {
                    ids(out, &self.prompt_ids);
                } else {
                    out.extend_from_slice(b"null");
                }
                out.extend_from_slice(br#","prompt_text":null,"kv_transfer_params":null"#);
                vllm_metrics(out, tail);
                out.push(b'}');
            }
            Manners::LlamaCpp => {
                put!(out, r#","id":"{id}""#);
                timings(out, tail);
                out.push(b'}');
            }
        }
    }
}

pub(super) fn timings(out: &mut Vec<u8>, tail: &Tail) {
    let t = &tail.timings;
    // This build's rates count one token less than they produced: (n − 1) / ms.
    let per = |ms: f64, n: u32| if n == 0 { 0.0 } else { ms / f64::from(n) };
    let rate = |ms: f64, n: u32| if ms > 0.0 { f64::from(n) * 1e3 / ms } else { 0.0 };
    put!(
        out,
        r#","timings":{{"cache_n":{},"prompt_n":{},"prompt_ms":{:.3},"prompt_per_token_ms":{},"prompt_per_second":{},"predicted_n":{},"predicted_ms":{:.3},"predicted_per_token_ms":{},"predicted_per_second":{}"#,
        t.cache_n,
        t.prompt_n,
        t.prompt_ms,
        per(t.prompt_ms, t.prompt_n),
        rate(t.prompt_ms, t.prompt_n),
        t.predicted_n,
        t.predicted_ms,
        per(t.predicted_ms, t.predicted_n.saturating_sub(1)),
        rate(t.predicted_ms, t.predicted_n.saturating_sub(1))
    );
    if let Some(done) = tail.speculated.as_ref().filter(|done| done.steps > 0) {
        put!(
            out,
            r#","draft_n":{},"draft_n_accepted":{}"#,
            done.drafted,
            done.accepted
        );
    }
    out.push(b'}');
}

pub(super) fn vllm_metrics(out: &mut Vec<u8>, tail: &Tail) {
    let Some(done) = tail.speculated.as_ref().filter(|done| done.steps > 0) else {
        out.extend_from_slice(br#","metrics":null"#);
        return;
    };
    put!(
        out,
        r#","metrics":{{"speculative_decoding":{{"mean_acceptance_length":{},"draft_acceptance_rate":{},"num_spec_steps":{},"num_accepted_draft_tokens":{},"num_draft_tokens":{},"num_spec_tokens":{},"acceptance_histogram":"#,
        1.0 + f64::from(done.accepted) / f64::from(done.steps),
        f64::from(done.accepted) / f64::from(done.drafted.max(1)),
        done.steps,
        done.accepted,
        done.drafted,
        done.histogram.len() - 1
    );
    ids(out, &done.histogram);
    out.extend_from_slice(b"}}");
}
