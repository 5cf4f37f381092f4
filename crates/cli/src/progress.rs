//! Draws a verb's events on a terminal; without one, says only what matters.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use shakedown_model::verb::{Event, Sink};
use shakedown_report::Style;

use crate::output::Output;

/// Without a terminal a long run still shows a sign of life this often.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Tells a person how far a verb is.
pub(crate) struct Talk<'a> {
    output: &'a Output,
    style: Style,
    bar: Option<ProgressBar>,
    last_plain: Mutex<Instant>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(output: &'a Output) -> Self {
        let bar = output.draws_progress().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        Self {
            output,
            style: output.talk_style,
            bar,
            last_plain: Mutex::new(Instant::now()),
        }
    }

    /// Clears what was drawn.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.output.say(text)),
            None => self.output.say(text),
        }
    }
}

impl Sink for Talk<'_> {
    fn event(&self, event: Event) {
        match event {
            Event::Note { text } => self.line(&text),
            Event::Finding { finding } => {
                self.line(shakedown_report::finding_text(&finding, &self.style).trim_end());
            }
            Event::Stage { name } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(name);
                    bar.tick();
                }
            }
            Event::Progress(progress) => {
                let text = shakedown_report::progress_line(&progress, &self.style);
                if let Some(bar) = &self.bar {
                    bar.set_message(text);
                    bar.tick();
                } else if let Ok(mut last) = self.last_plain.lock()
                    && last.elapsed() >= PLAIN_EVERY
                {
                    *last = Instant::now();
                    self.output.say(&text);
                }
            }
        }
    }
}
