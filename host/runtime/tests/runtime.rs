//! The runtime against real components: `tests/guests` has their sources, `cargo xtask guests` builds them.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in what they share")]

#[path = "runtime/guests.rs"]
mod guests;

#[path = "runtime/cache.rs"]
mod cache;
#[path = "runtime/concurrency.rs"]
mod concurrency;
#[path = "runtime/deciding.rs"]
mod deciding;
#[path = "runtime/determinism.rs"]
mod determinism;
#[path = "runtime/failures.rs"]
mod failures;
#[path = "runtime/loading.rs"]
mod loading;
#[path = "runtime/on_demand.rs"]
mod on_demand;
