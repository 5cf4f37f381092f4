//! One line while a measurement goes on.

use shakedown_model::verb::Progress;

use crate::Style;
use crate::number::{counted, duration, figure};
use crate::text::{clip, columns};

/// How far a measurement is, in one line of at most `style.width` columns: what matters less is left out first.
pub fn progress_line(progress: &Progress, style: &Style) -> String {
    let mut parts = vec![trial(progress), done(progress), rate(progress)];
    parts.extend(progress.ttft_ms.map(|ttft| format!("TTFT {} ms", figure(ttft))));
    if progress.failed > 0 {
        // Before the others: nobody should wait for the end to see it.
        parts.insert(1, format!("{} failed", progress.failed));
    }
    parts.push(format!("{} in flight", progress.in_flight));
    let mut line = String::new();
    for part in parts {
        let between = if line.is_empty() { "" } else { "  " };
        if line.is_empty() || columns(&line) + columns(between) + columns(&part) <= style.width {
            line.push_str(between);
            line.push_str(&part);
        } else {
            break;
        }
    }
    clip(&line, style.width, style)
}

fn trial(progress: &Progress) -> String {
    match (progress.trial, progress.trials) {
        (0, _) => "warm-up".to_owned(),
        (1, 0 | 1) => "measuring".to_owned(),
        (trial, trials) => format!("trial {trial} of {trials}"),
    }
}

fn done(progress: &Progress) -> String {
    match (progress.total, progress.total_s) {
        (Some(total), _) => format!("{} of {}", progress.done, counted(total, "request")),
        (None, Some(total_s)) => {
            format!(
                "{:.0} of {} s, {}",
                progress.elapsed_s,
                total_s.ceil(),
                counted(progress.done, "request")
            )
        }
        (None, None) => format!(
            "{} in {}",
            counted(progress.done, "request"),
            duration(progress.elapsed_s)
        ),
    }
}

/// Tokens where their counts are known; else chunks, and said to be those.
fn rate(progress: &Progress) -> String {
    match progress.tokens_s {
        Some(tokens) => format!("{} tok/s", figure(tokens)),
        None => format!("{} chunks/s", figure(progress.chunks_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress {
            trial: 2,
            trials: 5,
            done: 37,
            total: Some(200),
            total_s: None,
            elapsed_s: 12.34,
            in_flight: 16,
            chunks_s: 411.0,
            tokens_s: Some(1234.4),
            ttft_ms: Some(50.12),
            failed: 0,
        }
    }

    fn line(progress: &Progress, width: usize) -> String {
        progress_line(
            progress,
            &Style {
                width,
                ..Style::PLAIN
            },
        )
    }

    #[test]
    fn what_matters_less_goes_first() {
        let mut progress = progress();
        assert_eq!(
            line(&progress, 80),
            "trial 2 of 5  37 of 200 requests  1234 tok/s  TTFT 50.1 ms  16 in flight"
        );
        assert_eq!(
            line(&progress, 60),
            "trial 2 of 5  37 of 200 requests  1234 tok/s  TTFT 50.1 ms"
        );
        assert_eq!(line(&progress, 40), "trial 2 of 5  37 of 200 requests");
        assert_eq!(line(&progress, 8), "trial...");
        progress.failed = 3;
        assert_eq!(line(&progress, 40), "trial 2 of 5  3 failed");
        for width in 0..100 {
            assert!(columns(&line(&progress, width)) <= width);
        }
    }

    #[test]
    fn warm_up_time_and_unknown_counts() {
        let timed = Progress {
            trial: 1,
            trials: 1,
            total: None,
            total_s: Some(30.0),
            tokens_s: None,
            ttft_ms: None,
            ..progress()
        };
        assert_eq!(
            line(&timed, 80),
            "measuring  12 of 30 s, 37 requests  411 chunks/s  16 in flight"
        );
        let warm = Progress {
            trial: 0,
            total: None,
            total_s: None,
            done: 1,
            ..timed
        };
        assert_eq!(
            line(&warm, 80),
            "warm-up  1 request in 12.34 s  411 chunks/s  16 in flight"
        );
    }
}
