//! Ctrl-C as something to look at between two steps, so that every way out cleans up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn listen() -> Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self(interrupted))
    }

    /// An error once somebody wants this to end.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.has_come(), "interrupted");
        Ok(())
    }

    pub(crate) fn wait(&self) {
        while !self.has_come() {
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
