//! Speculative decoding in one definition: tokens per verify step, bonus token included; accepted / proposed draft
//! tokens, bonus and root in neither.
//!
//! Our names: `spec_drafts_total` verify steps, `spec_draft_tokens_total` drafts proposed, `spec_accepted_tokens_total`
//! drafts accepted, `spec_verify_total` verify steps of finished requests, `spec_accept_*` gauges.

use shakedown_model::{Acceptance, AcceptanceSource, Engine, EngineMetrics, InForce};

/// How far a mean may exceed what a step can yield before the counters cannot mean what we think.
const SLACK: f64 = 0.02;

/// The acceptance over a run, from the engine's metrics before and after it and its settings in force.
///
/// Counters differenced over the run come first. Without a sample before, or where the engine has only gauges, the
/// figure covers another time than the run: its source is then [`AcceptanceSource::EngineGauge`]. `None` where the
/// engine tells nothing, or did not speculate.
pub fn acceptance(
    engine: &Engine,
    before: Option<&EngineMetrics>,
    after: Option<&EngineMetrics>,
    in_force: Option<&InForce>,
) -> Option<Acceptance> {
    let after = after?;
    let draft = Draft::of(in_force);
    let counters = Counters {
        title: engine.kind.title(),
        before,
        after,
    };
    match counters.acceptance(&draft) {
        Told::Yes(acceptance) => Some(acceptance),
        Told::No => None,
        Told::Nothing => gauges(engine.kind.title(), after, &draft),
    }
}

/// What is known of the drafts.
#[derive(Debug, Clone, Copy, Default)]
struct Draft {
    /// Branches at each step; more than one is a tree.
    topk: Option<f64>,
    /// Tokens that a step verifies, the root included: SGLang's `num_draft_tokens`.
    with_root: Option<f64>,
}

impl Draft {
    fn of(in_force: Option<&InForce>) -> Self {
        let number = |name: &str| in_force?.get(name)?.value.parse::<f64>().ok();
        Self {
            topk: number("speculative_eagle_topk"),
            with_root: number("speculative_num_draft_tokens").filter(|tokens| *tokens >= 1.0),
        }
    }

    /// Accepted / proposed of a mean length: only for a chain, where a step proposes `with_root - 1` tokens.
    ///
    /// In a tree the proposed tokens are nodes of which at most one path can be accepted: no rate.
    fn rate_of_length(&self, length: f64) -> Option<f64> {
        let proposed = self
            .with_root
            .map(|tokens| tokens - 1.0)
            .filter(|tokens| *tokens > 0.0)?;
        (self.topk == Some(1.0)).then(|| ((length - 1.0) / proposed).clamp(0.0, 1.0))
    }

    /// Whether a step can yield so many tokens.
    fn can_yield(&self, length: f64) -> bool {
        self.with_root
            .is_none_or(|tokens| length <= tokens * (1.0 + SLACK))
    }
}

/// What the counters say.
enum Told {
    /// A figure.
    Yes(Acceptance),
    /// There are counters, and nothing was speculated, or the server began anew.
    No,
    /// There are no counters.
    Nothing,
}

struct Counters<'a> {
    title: &'static str,
    before: Option<&'a EngineMetrics>,
    after: &'a EngineMetrics,
}

impl Counters<'_> {
    /// How much a counter grew: over the run, or since the server's start where there is no sample before.
    /// `Err` where it shrank, for then the server began anew.
    fn growth(&self, name: &str) -> Option<Result<f64, ()>> {
        let after = *self.after.values.get(name)?;
        let before = match self.before {
            Some(before) => *before.values.get(name).unwrap_or(&0.0),
            None => 0.0,
        };
        Some(if after >= before {
            Ok(after - before)
        } else {
            Err(())
        })
    }

    fn acceptance(&self, draft: &Draft) -> Told {
        if let Some(accepted) = self.growth("spec_accepted_tokens_total") {
            return self.of_drafts(accepted);
        }
        if let Some(verified) = self.growth("spec_verify_total") {
            return self.of_verify_steps(verified, draft);
        }
        Told::Nothing
    }

    /// vLLM, llama.cpp and those that name theirs alike: steps, proposed and accepted are counted, bonus in none.
    fn of_drafts(&self, accepted: Result<f64, ()>) -> Told {
        let grown = |name: &str| match self.growth(name) {
            Some(Ok(count)) if count > 0.0 => Some(count),
            _ => None,
        };
        let Ok(accepted) = accepted else { return Told::No };
        let (steps, proposed) = (grown("spec_drafts_total"), grown("spec_draft_tokens_total"));
        if steps.is_none() && proposed.is_none() {
            return Told::No;
        }
        let length = steps.map(|steps| 1.0 + accepted / steps);
        let rate = proposed.map(|proposed| accepted / proposed);
        let mut said = Vec::new();
        if let Some(steps) = steps {
            said.push(format!("length = 1 + {accepted} accepted / {steps} verify steps"));
        }
        if let Some(proposed) = proposed {
            said.push(format!("rate = {accepted} accepted / {proposed} proposed"));
        }
        Told::Yes(self.figure(length, rate, &said.join(", ")))
    }

    /// SGLang from 0.5.16: verify steps of finished requests beside their tokens. The first token of a request is the
    /// prefill's and no verify step's.
    fn of_verify_steps(&self, verified: Result<f64, ()>, draft: &Draft) -> Told {
        let (Ok(steps), Some(Ok(tokens))) = (verified, self.growth("generation_tokens_total")) else {
            return Told::No;
        };
        if steps <= 0.0 {
            return Told::No;
        }
        let first = match self.growth("requests_total") {
            Some(Ok(requests)) if requests <= tokens => requests,
            _ => 0.0,
        };
        let length = (tokens - first) / steps;
        if !draft.can_yield(length) {
            return Told::Nothing;
        }
        let derivation = format!("length = ({tokens} tokens - {first} first tokens) / {steps} verify steps");
        Told::Yes(self.figure(Some(length), draft.rate_of_length(length), &derivation))
    }

    fn figure(&self, length: Option<f64>, rate: Option<f64>, derivation: &str) -> Acceptance {
        let (source, over) = match self.before {
            Some(_) => (AcceptanceSource::EngineCounters, "over the run"),
            None => (AcceptanceSource::EngineGauge, "since the server's start"),
        };
        Acceptance {
            kind: None,
            length,
            rate,
            source,
            derivation: format!("{} counters {over}: {derivation}", self.title),
        }
    }
}

/// SGLang's gauges: the mean of the last log interval, bonus included; 0 where there is none yet.
fn gauges(title: &str, after: &EngineMetrics, draft: &Draft) -> Option<Acceptance> {
    let value = |name: &str| after.values.get(name).copied().filter(|value| *value > 0.0);
    let acceptance = |length: f64, rate: Option<f64>, derivation: String| Acceptance {
        kind: None,
        length: Some(length),
        rate,
        source: AcceptanceSource::EngineGauge,
        derivation,
    };
    if let Some(length) = value("spec_accept_length") {
        return Some(acceptance(
            length,
            draft.rate_of_length(length),
            format!("{title} gauge of the last log interval: accept length {length}, bonus included"),
        ));
    }
    // (accepted + bonus) / (steps x tokens with root), so its product with the latter is the length.
    if let (Some(rate), Some(tokens)) = (value("spec_accept_rate_with_root"), draft.with_root) {
        let length = rate * tokens;
        return Some(acceptance(
            length,
            draft.rate_of_length(length),
            format!(
                "{title} gauge of the last log interval: accept rate {rate} x {tokens} draft tokens, root and bonus counted"
            ),
        ));
    }
    // accepted / (steps x (tokens with root - 1)).
    if let (Some(rate), Some(tokens)) = (value("spec_accept_rate"), draft.with_root) {
        let length = 1.0 + rate * (tokens - 1.0);
        return Some(acceptance(
            length,
            draft.rate_of_length(length),
            format!(
                "{title} gauge of the last log interval: 1 + accept rate {rate} x {} drafts",
                tokens - 1.0
            ),
        ));
    }
    value("spec_accept_length_since_start").map(|length| {
        acceptance(
            length,
            draft.rate_of_length(length),
            format!("{title} report: mean accept length {length} since its start, bonus included"),
        )
    })
}

#[cfg(test)]
mod tests {
    use shakedown_model::{EngineKind, Setting};

    use super::*;

    fn engine(kind: EngineKind) -> Engine {
        Engine {
            kind,
            version: None,
            recognised_by: String::new(),
            practice: false,
        }
    }

    fn metrics(values: &[(&str, f64)]) -> EngineMetrics {
        EngineMetrics {
            at_us: 0,
            values: values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
        }
    }

    fn draft(topk: &str, tokens: &str) -> InForce {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            source: String::new(),
        };
        InForce {
            settings: vec![
                setting("speculative_eagle_topk", topk),
                setting("speculative_num_draft_tokens", tokens),
            ],
            asked: Vec::new(),
        }
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn vllm_and_llama_cpp_count_steps_proposed_and_accepted() {
        // 100 steps of 3 drafts, 180 of the 300 accepted: 2.8 tokens a step, 60% accepted.
        let before = metrics(&[
            ("spec_drafts_total", 50.0),
            ("spec_draft_tokens_total", 150.0),
            ("spec_accepted_tokens_total", 20.0),
        ]);
        let after = metrics(&[
            ("spec_drafts_total", 150.0),
            ("spec_draft_tokens_total", 450.0),
            ("spec_accepted_tokens_total", 200.0),
        ]);
        for kind in [
            EngineKind::Vllm,
            EngineKind::LlamaCpp,
            EngineKind::LmDeploy,
            EngineKind::MistralRs,
        ] {
            let found = acceptance(&engine(kind), Some(&before), Some(&after), None).unwrap();
            close(found.length, 2.8);
            close(found.rate, 0.6);
            assert_eq!(found.source, AcceptanceSource::EngineCounters);
        }
        // Nothing before: since the start, and said so. 1 + 200/150, 200/450.
        let found = acceptance(&engine(EngineKind::Vllm), None, Some(&after), None).unwrap();
        close(found.length, 1.0 + 200.0 / 150.0);
        close(found.rate, 200.0 / 450.0);
        assert_eq!(found.source, AcceptanceSource::EngineGauge);
        assert!(
            found.derivation.contains("since the server's start"),
            "{}",
            found.derivation
        );
    }

    #[test]
    fn steps_in_which_nothing_was_accepted_have_length_one() {
        let after = metrics(&[
            ("spec_drafts_total", 10.0),
            ("spec_draft_tokens_total", 30.0),
            ("spec_accepted_tokens_total", 0.0),
        ]);
        let found = acceptance(&engine(EngineKind::Vllm), Some(&metrics(&[])), Some(&after), None).unwrap();
        close(found.length, 1.0);
        close(found.rate, 0.0);
    }

    #[test]
    fn no_speculation_in_the_run_is_no_figure_even_beside_old_gauges() {
        let sample = metrics(&[
            ("spec_drafts_total", 10.0),
            ("spec_draft_tokens_total", 30.0),
            ("spec_accepted_tokens_total", 5.0),
            ("spec_accept_length", 3.0),
        ]);
        assert_eq!(
            acceptance(&engine(EngineKind::Vllm), Some(&sample), Some(&sample), None),
            None
        );
        assert_eq!(acceptance(&engine(EngineKind::Vllm), None, None, None), None);
        assert_eq!(
            acceptance(&engine(EngineKind::Vllm), None, Some(&metrics(&[])), None),
            None
        );
    }

    #[test]
    fn a_server_that_began_anew_is_no_figure() {
        let before = metrics(&[("spec_drafts_total", 10.0), ("spec_accepted_tokens_total", 20.0)]);
        let after = metrics(&[("spec_drafts_total", 12.0), ("spec_accepted_tokens_total", 3.0)]);
        assert_eq!(
            acceptance(&engine(EngineKind::Vllm), Some(&before), Some(&after), None),
            None
        );
    }

    #[test]
    fn tensorrt_llm_counts_no_steps() {
        let after = metrics(&[
            ("spec_draft_tokens_total", 300.0),
            ("spec_accepted_tokens_total", 180.0),
        ]);
        let found = acceptance(
            &engine(EngineKind::TensorRtLlm),
            Some(&metrics(&[])),
            Some(&after),
            None,
        )
        .unwrap();
        assert_eq!(found.length, None);
        close(found.rate, 0.6);
    }

    #[test]
    fn sglang_counters_leave_out_the_first_token() {
        // Two requests: 1 + 100 and 1 + 60 tokens in 50 verify steps: 3.2 tokens a step; chain of 3 drafts: 2.2/3.
        let before = metrics(&[
            ("spec_verify_total", 7.0),
            ("generation_tokens_total", 9.0),
            ("requests_total", 1.0),
        ]);
        let after = metrics(&[
            ("spec_verify_total", 57.0),
            ("generation_tokens_total", 171.0),
            ("requests_total", 3.0),
            // The gauge of the last interval differs and is not used.
            ("spec_accept_length", 1.1),
        ]);
        let found = acceptance(
            &engine(EngineKind::Sglang),
            Some(&before),
            Some(&after),
            Some(&draft("1", "4")),
        )
        .unwrap();
        close(found.length, 3.2);
        close(found.rate, 2.2 / 3.0);
        assert_eq!(found.source, AcceptanceSource::EngineCounters);
        // A step cannot yield more than it verifies: the counter would not mean what we think, so the gauge stands.
        let found = acceptance(
            &engine(EngineKind::Sglang),
            Some(&before),
            Some(&after),
            Some(&draft("1", "2")),
        )
        .unwrap();
        close(found.length, 1.1);
        assert_eq!(found.source, AcceptanceSource::EngineGauge);
    }

    #[test]
    fn sglang_gauges_of_both_definitions_agree() {
        // Chain of 3 drafts (4 tokens with the root), 1.5 accepted a step: length 2.5, rate 0.5. By 0.5.9 the rate is
        // 2.5/4 = 0.625; by 0.5.12 it is 1.5/3 = 0.5.
        let of = |values: &[(&str, f64)], draft: &InForce| {
            acceptance(
                &engine(EngineKind::Sglang),
                None,
                Some(&metrics(values)),
                Some(draft),
            )
            .unwrap()
        };
        let chain = draft("1", "4");
        for values in [
            &[("spec_accept_length", 2.5), ("spec_accept_rate_with_root", 0.625)][..],
            &[("spec_accept_length", 2.5), ("spec_accept_rate", 0.5)],
            &[("spec_accept_rate_with_root", 0.625)],
            &[("spec_accept_rate", 0.5)],
            &[("spec_accept_length_since_start", 2.5)],
        ] {
            let found = of(values, &chain);
            close(found.length, 2.5);
            close(found.rate, 0.5);
            assert_eq!(found.source, AcceptanceSource::EngineGauge);
        }
        // 25% with 4 draft tokens by 0.5.9 is nothing accepted.
        let found = of(&[("spec_accept_rate_with_root", 0.25)], &chain);
        close(found.length, 1.0);
        close(found.rate, 0.0);
    }

    #[test]
    fn a_tree_has_a_length_and_no_rate() {
        let values = [("spec_accept_length", 3.5), ("spec_accept_rate", 0.357)];
        for draft in [Some(draft("4", "8")), None] {
            let found = acceptance(
                &engine(EngineKind::Sglang),
                None,
                Some(&metrics(&values)),
                draft.as_ref(),
            )
            .unwrap();
            close(found.length, 3.5);
            assert_eq!(found.rate, None);
        }
        // By 0.5.9's definition the length comes out of the rate for trees too: 0.4375 x 8.
        let found = acceptance(
            &engine(EngineKind::Sglang),
            None,
            Some(&metrics(&[("spec_accept_rate_with_root", 0.4375)])),
            Some(&draft("4", "8")),
        )
        .unwrap();
        close(found.length, 3.5);
        assert_eq!(found.rate, None);
    }

    #[test]
    fn gauges_at_zero_say_nothing() {
        let values = [("spec_accept_length", 0.0), ("spec_accept_rate", 0.0)];
        assert_eq!(
            acceptance(&engine(EngineKind::Sglang), None, Some(&metrics(&values)), None),
            None
        );
    }
}
