//! The store against a real Postgres. Each test has a schema of its own; see `fixture`.

// A test may stop at the first surprise.
#![allow(clippy::unwrap_used, reason = "clippy.toml exempts test functions, but not what they share")]

#[macro_use]
#[path = "store/fixture.rs"]
mod fixture;

#[path = "store/appends.rs"]
mod appends;
#[path = "store/batches.rs"]
mod batches;
#[path = "store/flushes.rs"]
mod flushes;
#[path = "store/ids.rs"]
mod ids;
#[path = "store/locks.rs"]
mod locks;
#[path = "store/log.rs"]
mod log;
#[path = "store/moves.rs"]
mod moves;
#[path = "store/pages.rs"]
mod pages;
#[path = "store/plans.rs"]
mod plans;
#[path = "store/properties.rs"]
mod properties;
#[path = "store/races.rs"]
mod races;
#[path = "store/reads.rs"]
mod reads;
#[path = "store/set_up.rs"]
mod set_up;
#[path = "store/status.rs"]
mod status;
#[path = "store/strategies.rs"]
mod strategies;
#[path = "store/unscoped.rs"]
mod unscoped;
#[path = "store/versions.rs"]
mod versions;
