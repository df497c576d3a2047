//! `wasi:cli`: no environment; output that is kept.

use wasmtime::component::{LinkerInstance, Resource};

use super::io::{InputStream, OutputStream};
use crate::instance::{State, refusal};

/// `terminal-input`. There is none.
pub(super) enum TerminalInput {}

/// `terminal-output`. There is none.
pub(super) enum TerminalOutput {}

pub(super) fn environment(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-environment", |_, (): ()| Ok((Vec::<(String, String)>::new(),)))?;
    to.func_wrap("get-arguments", |_, (): ()| Ok((Vec::<String>::new(),)))?;
    to.func_wrap("initial-cwd", |_, (): ()| Ok((None::<String>,)))
}

pub(super) fn exit(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("exit", |_, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
        let status = if status.is_ok() { "success" } else { "failure" };
        Err(refusal(format!("it exited, with {status}; a handler answers instead")))
    })?;
    to.func_wrap("exit-with-code", |_, (code,): (u8,)| -> wasmtime::Result<()> {
        Err(refusal(format!("it exited, with code {code}; a handler answers instead")))
    })
}

pub(super) fn stdin(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-stdin", |_, (): ()| Ok((Resource::<InputStream>::new_own(0),)))
}

/// Kept with standard error, so that a handler's author finds what `print` wrote.
pub(super) fn stdout(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-stdout", |_, (): ()| Ok((Resource::<OutputStream>::new_own(0),)))
}

pub(super) fn stderr(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-stderr", |_, (): ()| Ok((Resource::<OutputStream>::new_own(0),)))
}

pub(super) fn terminal_stdin(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-terminal-stdin", |_, (): ()| Ok((None::<Resource<TerminalInput>>,)))
}

pub(super) fn terminal_stdout(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-terminal-stdout", |_, (): ()| Ok((None::<Resource<TerminalOutput>>,)))
}

pub(super) fn terminal_stderr(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("get-terminal-stderr", |_, (): ()| Ok((None::<Resource<TerminalOutput>>,)))
}
