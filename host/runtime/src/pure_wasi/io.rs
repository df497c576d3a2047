//! `wasi:io`: input that is at its end, output that is kept up to a bound, pollables that are always ready.

use std::collections::VecDeque;

use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource};

use crate::instance::State;

/// `error`. No stream ever gives one.
pub(super) enum IoError {}

/// `pollable`, always ready.
pub(super) enum Pollable {}

/// `input-stream`. The only one is standard input.
pub(super) enum InputStream {}

/// `output-stream`. There are two, and both go to the same [`Output`].
pub(super) enum OutputStream {}

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "the interface has it; no stream here ever fails")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

/// What a guest wrote to its standard output and error: the end of it, which is where a panic is.
pub(crate) struct Output {
    kept: VecDeque<u8>,
    most: usize,
    dropped: bool,
}

impl Output {
    pub(super) fn keeping(most: usize) -> Self {
        Output { kept: VecDeque::new(), most, dropped: false }
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.dropped = false;
    }

    fn write(&mut self, bytes: &[u8]) {
        let surplus = (self.kept.len() + bytes.len()).saturating_sub(self.most);
        self.dropped |= surplus > 0;
        self.kept.drain(..surplus.min(self.kept.len()));
        self.kept.extend(&bytes[bytes.len().saturating_sub(self.most)..]);
    }

    /// As text; what is not UTF-8 is replaced, what is missing at the beginning is marked.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        if self.dropped { format!("[…]{text}") } else { text.into_owned() }
    }
}

/// How much `check-write` permits. The guest asks again after each write, so it is no bound.
const WRITE_AT_ONCE: u64 = 64 << 10;

pub(super) fn error(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("[method]error.to-debug-string", |_, (_error,): (Resource<IoError>,)| {
        Ok((String::from("error"),))
    })
}

pub(super) fn poll(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("[method]pollable.ready", |_, (_this,): (Resource<Pollable>,)| Ok((true,)))?;
    to.func_wrap("[method]pollable.block", |_, (_this,): (Resource<Pollable>,)| Ok(()))?;
    to.func_wrap("poll", |_, (pollables,): (Vec<Resource<Pollable>>,)| {
        Ok(((0..pollables.len() as u32).collect::<Vec<u32>>(),))
    })
}

pub(super) fn streams(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    input_stream(to)?;
    output_stream(to)
}

fn input_stream(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    type This = Resource<InputStream>;
    for read in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        to.func_wrap(read, |_, _: (This, u64)| Ok((Err::<Vec<u8>, _>(StreamError::Closed),)))?;
    }
    for skip in ["[method]input-stream.skip", "[method]input-stream.blocking-skip"] {
        to.func_wrap(skip, |_, _: (This, u64)| Ok((Err::<u64, _>(StreamError::Closed),)))?;
    }
    to.func_wrap("[method]input-stream.subscribe", |_, _: (This,)| Ok((Resource::<Pollable>::new_own(0),)))
}

fn output_stream(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    type This = Resource<OutputStream>;
    type Done = (Result<(), StreamError>,);
    to.func_wrap("[method]output-stream.check-write", |_, _: (This,)| {
        Ok((Ok::<_, StreamError>(WRITE_AT_ONCE),))
    })?;
    for write in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        to.func_wrap(write, |mut cx, (_this, bytes): (This, Vec<u8>)| -> wasmtime::Result<Done> {
            cx.data_mut().world.output.write(&bytes);
            Ok((Ok(()),))
        })?;
    }
    for flush in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        to.func_wrap(flush, |_, _: (This,)| -> wasmtime::Result<Done> { Ok((Ok(()),)) })?;
    }
    // Zeroes say nothing to anyone; they are not kept.
    for write in
        ["[method]output-stream.write-zeroes", "[method]output-stream.blocking-write-zeroes-and-flush"]
    {
        to.func_wrap(write, |_, _: (This, u64)| -> wasmtime::Result<Done> { Ok((Ok(()),)) })?;
    }
    for splice in ["[method]output-stream.splice", "[method]output-stream.blocking-splice"] {
        to.func_wrap(splice, |_, _: (This, Resource<InputStream>, u64)| {
            Ok((Err::<u64, _>(StreamError::Closed),))
        })?;
    }
    to.func_wrap("[method]output-stream.subscribe", |_, _: (This,)| Ok((Resource::<Pollable>::new_own(0),)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept() {
        let mut output = Output::keeping(5);
        output.write(b"abc");
        assert_eq!(output.text(), "abc");
        output.write(b"def");
        assert_eq!(output.text(), "[…]bcdef");
        output.write(b"0123456789");
        assert_eq!(output.text(), "[…]56789");
    }
}
