//! What a fresh instance costs: `cargo run --release -p weir-runtime --example fresh -- HANDLER.wasm COMMAND DATA`.
//!
//! Prints the median time of each step of a command, in microseconds, for one component without a history.

use std::error::Error;
use std::time::{Duration, Instant};

use weir_runtime::{Command, Runtime, RuntimeConfig};

const ROUNDS: usize = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, data] = arguments.as_slice() else {
        return Err("give HANDLER.wasm COMMAND DATA".into());
    };
    let runtime = Runtime::new(RuntimeConfig::default())?;
    let begun = Instant::now();
    let handler = runtime.load(&std::fs::read(path)?)?;
    println!("load    {:>9.1} ms, pooled: {}", begun.elapsed().as_secs_f64() * 1e3, runtime.pooled());
    let command = Command {
        id: "1".into(),
        name: name.clone(),
        data: data.clone(),
        received_at: 1_700_000_000_000,
        principal: None,
    };
    let mut steps: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        let mut at = [Instant::now(); 5];
        let mut deciding = handler.begin(&command)?;
        at[1] = Instant::now();
        let _ = deciding.boundary()?;
        at[2] = Instant::now();
        deciding.decide(&[])?;
        at[3] = Instant::now();
        drop(deciding);
        at[4] = Instant::now();
        for (step, pair) in steps.iter_mut().zip(at.windows(2).chain([&[at[0], at[4]][..]])) {
            step.push(pair[1] - pair[0]);
        }
    }
    for (name, times) in ["begin", "boundary", "decide", "drop", "all"].iter().zip(&mut steps) {
        times.sort_unstable();
        println!("{name:<8}{:>9.1} µs", times[ROUNDS / 2].as_secs_f64() * 1e6);
    }
    Ok(())
}
