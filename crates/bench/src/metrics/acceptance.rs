//! Speculative decoding as the replies show it, in one definition: tokens per verify step, bonus token included.

use shakedown_model::{Acceptance, AcceptanceSource, PromptKind, RequestRecord};

/// Acceptance over all answered requests, then by kind of prompt where there are several.
pub(super) fn of(answered: &[&RequestRecord]) -> Vec<Acceptance> {
    let Some(all) = over(answered, None) else {
        return Vec::new();
    };
    let mut kinds: Vec<PromptKind> = answered.iter().map(|record| record.prompt.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut figures = vec![all];
    if kinds.len() > 1 {
        for kind in kinds {
            let of_kind: Vec<&RequestRecord> = answered
                .iter()
                .copied()
                .filter(|record| record.prompt.kind == kind)
                .collect();
            figures.extend(over(&of_kind, Some(kind)));
        }
    }
    figures
}

fn over(answered: &[&RequestRecord], kind: Option<PromptKind>) -> Option<Acceptance> {
    per_request(answered, kind).or_else(|| per_chunk(answered, kind))
}

/// From figures in the replies.
fn per_request(answered: &[&RequestRecord], kind: Option<PromptKind>) -> Option<Acceptance> {
    let (mut drafted, mut accepted, mut steps, mut told_steps) = (0, 0, 0, true);
    let mut any = false;
    for record in answered {
        let tokens = &record.tokens;
        let (Some(of_this), Some(proposed)) =
            (tokens.accepted, tokens.drafted.filter(|drafted| *drafted > 0))
        else {
            continue;
        };
        any = true;
        drafted += proposed;
        accepted += of_this;
        match (tokens.verify_steps, tokens.output) {
            (Some(told), _) => steps += told,
            // Every step yields one token of the target besides the accepted ones; the first token of an answer
            // comes from the prompt and is no step.
            (None, Some(output)) => {
                told_steps = false;
                steps += output.saturating_sub(1).saturating_sub(of_this);
            }
            (None, None) => return None,
        }
    }
    if !any {
        return None;
    }
    let how = if told_steps {
        "verify steps as the server tells them"
    } else {
        "verify steps = tokens − 1 − accepted"
    };
    Some(Acceptance {
        kind,
        length: (steps > 0).then(|| (accepted + steps) as f64 / steps as f64),
        rate: Some(accepted as f64 / drafted as f64),
        source: AcceptanceSource::PerRequest,
        derivation: format!(
            "replies: {accepted} of {drafted} drafted tokens accepted in {steps} steps; length = (accepted + steps) / steps, {how}"
        ),
    })
}

/// From tokens per chunk, where some chunk has more than one. The first chunk comes from the prompt and is no
/// verify step.
fn per_chunk(answered: &[&RequestRecord], kind: Option<PromptKind>) -> Option<Acceptance> {
    let (mut tokens, mut chunks, mut any) = (0u64, 0u64, false);
    for record in answered {
        let sizes = record.chunk_tokens.iter().flatten();
        let sizes =
            sizes.flat_map(|[tokens, chunks]| std::iter::repeat_n(u64::from(*tokens), *chunks as usize));
        for size in sizes.skip(1).filter(|size| *size > 0) {
            tokens += size;
            chunks += 1;
            any |= size > 1;
        }
    }
    any.then(|| Acceptance {
        kind,
        length: Some(tokens as f64 / chunks as f64),
        rate: None,
        source: AcceptanceSource::TokensPerChunk,
        derivation: format!(
            "stream: {tokens} tokens in {chunks} chunks after the first, a chunk taken for a verify step"
        ),
    })
}
