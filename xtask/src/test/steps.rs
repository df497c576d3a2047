//! Runs steps one after the other and keeps the score.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub(super) struct Steps {
    keep_going: bool,
    interrupted: Arc<AtomicBool>,
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    passed: bool,
    took: Duration,
}

impl Steps {
    pub(super) fn new(keep_going: bool, interrupted: Arc<AtomicBool>) -> Steps {
        Steps { keep_going, interrupted, done: Vec::new() }
    }

    /// Runs a step. When it fails, this is an error, or with `keep_going` no value.
    pub(super) fn step<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        eprintln!("\n=== {name}");
        let started = Instant::now();
        let result = run();
        self.done.push(Step { name, passed: result.is_ok(), took: started.elapsed() });
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.keep_going => {
                eprintln!("{name}: {error:#}");
                Ok(None)
            }
            Err(error) => Err(error.context(name)),
        }
    }

    pub(super) fn print_summary(&self) {
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or(0);
        eprintln!();
        for Step { name, passed, took } in &self.done {
            let result = if *passed { "passed" } else { "FAILED" };
            eprintln!("{name:width$}  {result}  {:7.1} s", took.as_secs_f64());
        }
    }

    /// An error when a step failed.
    pub(super) fn verdict(&self) -> Result<()> {
        let failed: Vec<&str> = self.done.iter().filter(|step| !step.passed).map(|step| step.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}
