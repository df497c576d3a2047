//! Waiting for facts, with an end to it.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that works, on a machine that is busy besides.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer.
pub(crate) fn eventually<T>(what: &str, answer: impl FnMut() -> Option<T>) -> T {
    in_time(answer).unwrap_or_else(|| panic!("{what}: not within {PATIENCE:?}"))
}

/// Asks until there is an answer, or the patience is at its end.
pub(crate) fn in_time<T>(mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(answer) = answer() {
            return Some(answer);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// The lines of something that may never end. Empty ones are left out: a stream's signs of life.
pub(crate) struct Lines(Receiver<std::io::Result<String>>);

impl Lines {
    pub(crate) fn of(source: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(source).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }
}

impl Iterator for Lines {
    type Item = String;

    /// The next line; none at a clean end.
    fn next(&mut self) -> Option<String> {
        loop {
            match self.0.recv_timeout(PATIENCE) {
                Ok(Ok(line)) if line.is_empty() => {}
                Ok(line) => return Some(line.unwrap()),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no line within {PATIENCE:?}"),
            }
        }
    }
}
