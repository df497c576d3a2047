//! The part of WASI 0.2 that a handler may import, as functions of the command alone; while a model is built, of nothing,
//! because it may serve another command next.
//!
//! Toolchains import WASI whether or not the program uses it: Rust for its standard streams, to panic and to
//! exit; Python for its environment and its open directories. So these interfaces are there, and empty:
//!
//! | interface | what a handler finds |
//! | --- | --- |
//! | `wasi:cli` | no arguments, no variables, no directory, no terminal; input at its end; output that is kept for the handler's author |
//! | `wasi:clocks` | clocks that stand still at the command's `received-at`, or at 0 while a model is built; timers that are ready at once |
//! | `wasi:random` | a stream of numbers that begins anew in every call and is a function of the call and of the command's id, if the call has a command |
//! | `wasi:filesystem` | no directory, so nothing that any other function could be called on |
//! | `wasi:io` | what the others need |
//!
//! Architecture invariant: no function here waits. An epoch interrupts a guest, never a host function.
//!
//! Architecture invariant: nothing here reads a clock, a random source, a file or the environment.

mod cli;
mod clocks;
mod filesystem;
mod io;
mod random;

use wasmtime::component::{LinkerInstance, ResourceType};

use crate::bindings::Command;
use crate::failure::Call;
use crate::instance::{State, refusal};
use crate::limits::Limits;
use io::Output;
use random::Random;

/// What WASI tells one instance.
pub(crate) struct World {
    /// The command's `received-at`, in milliseconds since 1970.
    received_at: u64,
    /// The time of every clock in the present call.
    now: u64,
    random: Random,
    pub(crate) output: Output,
}

impl World {
    /// The world in which a command is decided.
    pub(crate) fn of_command(command: &Command, limits: &Limits) -> Self {
        World {
            received_at: command.received_at,
            now: 0,
            random: Random::seeded(command.id.as_bytes()),
            output: Output::keeping(limits.stderr_bytes),
        }
    }

    /// The world in which a handler describes itself.
    pub(crate) fn without_command(limits: &Limits) -> Self {
        World {
            received_at: 0,
            now: 0,
            random: Random::seeded(b""),
            output: Output::keeping(limits.stderr_bytes),
        }
    }

    /// Called before every call into the guest. Random numbers begin anew, so that a decision does not hang on
    /// how many calls its history came in, or on what the instance did before.
    pub(crate) fn enter(&mut self, call: Call) {
        let of_command = matches!(call, Call::Boundary | Call::Decide);
        self.now = if of_command { self.received_at } else { 0 };
        self.random.restart(call, of_command);
    }

    /// From now on another command is decided.
    pub(crate) fn turn_to(&mut self, command: &Command) {
        self.received_at = command.received_at;
        self.random = Random::seeded(command.id.as_bytes());
        self.output.clear();
    }
}

/// Puts the functions of one interface into a linker.
pub(crate) type Define = fn(&mut LinkerInstance<'_, State>) -> wasmtime::Result<()>;

/// What defines the interface that an import names, if a handler may have it: `wasi:cli/stdout@0.2.6`.
pub(crate) fn interface(import: &str) -> Option<Define> {
    let (name, version) = import.split_once('@')?;
    let patch = version.strip_prefix("0.2.")?;
    if patch.is_empty() || !patch.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(match name {
        "wasi:cli/environment" => cli::environment,
        "wasi:cli/exit" => cli::exit,
        "wasi:cli/stdin" => cli::stdin,
        "wasi:cli/stdout" => cli::stdout,
        "wasi:cli/stderr" => cli::stderr,
        "wasi:cli/terminal-stdin" => cli::terminal_stdin,
        "wasi:cli/terminal-stdout" => cli::terminal_stdout,
        "wasi:cli/terminal-stderr" => cli::terminal_stderr,
        "wasi:clocks/monotonic-clock" => clocks::monotonic_clock,
        "wasi:clocks/wall-clock" => clocks::wall_clock,
        "wasi:filesystem/preopens" => filesystem::preopens,
        "wasi:io/error" => io::error,
        "wasi:io/poll" => io::poll,
        "wasi:io/streams" => io::streams,
        "wasi:random/insecure" => random::insecure,
        "wasi:random/insecure-seed" => random::insecure_seed,
        "wasi:random/random" => random::random,
        // Only their types and resources are used; no instance of those can exist.
        "wasi:cli/terminal-input" | "wasi:cli/terminal-output" | "wasi:filesystem/types" => |_| Ok(()),
        _ => return None,
    })
}

/// The type of a resource of one of these interfaces. Their names are unique among them, and an interface that
/// uses another's resource carries it under the same name.
pub(crate) fn resource(name: &str) -> Option<ResourceType> {
    Some(match name {
        "descriptor" => ResourceType::host::<filesystem::Descriptor>(),
        "directory-entry-stream" => ResourceType::host::<filesystem::DirectoryEntryStream>(),
        "error" => ResourceType::host::<io::IoError>(),
        "input-stream" => ResourceType::host::<io::InputStream>(),
        "output-stream" => ResourceType::host::<io::OutputStream>(),
        "pollable" => ResourceType::host::<io::Pollable>(),
        "terminal-input" => ResourceType::host::<cli::TerminalInput>(),
        "terminal-output" => ResourceType::host::<cli::TerminalOutput>(),
        _ => return None,
    })
}

/// Ends the call of a guest that uses a function which nothing above defines.
pub(crate) fn trap(import: &str, function: &str) -> wasmtime::Error {
    refusal(format!("it called `{function}` of `{import}`, which handlers do not have"))
}
