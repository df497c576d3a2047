//! Everything a program can read that differs from one run to the next, if the host lets it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

/// The wall clock in milliseconds, two instants, a sleep, both kinds of random numbers, the environment.
pub(crate) fn reading() -> Value {
    let before = Instant::now();
    std::thread::sleep(Duration::from_secs(3600));
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("random bytes");
    json!({
        "now": since_epoch.as_millis() as u64,
        "instant": format!("{before:?}"),
        "slept": before.elapsed().as_nanos() as u64,
        "random": random,
        "hash": RandomState::new().hash_one("x").to_string(),
        "arguments": std::env::args().collect::<Vec<_>>(),
        "variables": std::env::vars().collect::<Vec<_>>(),
        "here": std::env::current_dir().map_err(|e| e.kind().to_string()).is_ok(),
        "file": std::fs::read("/etc/passwd").map_err(|e| e.kind().to_string()).is_ok(),
    })
}
