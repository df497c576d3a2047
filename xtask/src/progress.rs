//! What a chore says while it works, on standard error: standard output is for the result.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a log file, which has no use for a bar, gets a line.
const LINE_EVERY: Duration = Duration::from_secs(2);

pub(crate) fn step(text: &str) {
    eprintln!("• {text}");
}

/// The progress of the rush: a bar on a terminal, a line now and then elsewhere.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: usize,
    line_at: Instant,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        let style = ProgressStyle::with_template(
            "  {bar:40.cyan/dim} {human_pos} of {human_len} commands, {elapsed}",
        );
        let bar = ProgressBar::new(total as u64).with_style(style.expect("the template is well-formed"));
        Self { bar, total, line_at: Instant::now() }
    }

    pub(crate) fn show(&mut self, answered: usize) {
        self.bar.set_position(answered as u64);
        if self.bar.is_hidden() && self.line_at.elapsed() >= LINE_EVERY {
            eprintln!("  {answered} of {} commands answered", self.total);
            self.line_at = Instant::now();
        }
    }

    /// A step in the middle of the rush.
    pub(crate) fn step(&self, text: &str) {
        self.bar.suspend(|| step(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
