//! Loads command handlers, which are WebAssembly components, and lets them decide.
//!
//! A [`Runtime`] compiles a component, checks that it is a handler and asks it to describe itself; what comes
//! out is a [`Handler`]. [`Handler::begin`] makes a fresh instance for one attempt at one command: a
//! [`Deciding`], which is asked for the command's boundary, shown the events that match it and asked to decide.
//!
//! # What this crate does not do
//!
//! Architecture invariant: nothing here waits. There is no executor, no database, no network; every call
//! computes and returns within [`Limits::call_deadline`] (several times that where history is fed in chunks).
//! Call it from threads that may be busy for so long.
//!
//! Architecture invariant: a handler cannot reach the world. Of WASI it gets stubs that are functions of the
//! command alone (`pure_wasi`), and a component that asks for more is refused by [`Runtime::load`].
//!
//! Architecture invariant: no wasmtime type is public, except through the contract's own types.

mod bindings;
mod compiled;
mod decide;
mod engine;
mod failure;
mod handler;
mod instance;
mod limits;
mod load;
mod pure_wasi;
mod runtime;
mod version;

pub use bindings::{Command, Decision, Event, QueryItem, Rejection, SequencedEvent};
pub use decide::Deciding;
pub use failure::{Answer, Call, Failure, FailureKind};
pub use handler::Handler;
pub use limits::Limits;
pub use load::LoadError;
pub use runtime::{Runtime, RuntimeConfig, RuntimeError};
pub use version::{NotAVersion, Version};
