//! `wasi:clocks`: both clocks stand still at the command's `received-at`; no timer waits.

use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource};

use super::World;
use super::io::Pollable;
use crate::instance::State;

#[derive(ComponentType, Lift, Lower, Clone, Copy)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

impl World {
    fn wall_clock(&self) -> Datetime {
        Datetime { seconds: self.now / 1_000, nanoseconds: (self.now % 1_000) as u32 * 1_000_000 }
    }

    /// Nanoseconds. Never 0, which Go's runtime takes for a broken clock.
    fn monotonic_clock(&self) -> u64 {
        self.now.saturating_mul(1_000_000).max(1)
    }
}

const MILLISECOND: Datetime = Datetime { seconds: 0, nanoseconds: 1_000_000 };

pub(super) fn wall_clock(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("now", |cx, (): ()| Ok((cx.data().world.wall_clock(),)))?;
    to.func_wrap("resolution", |_, (): ()| Ok((MILLISECOND,)))
}

pub(super) fn monotonic_clock(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("now", |cx, (): ()| Ok((cx.data().world.monotonic_clock(),)))?;
    to.func_wrap("resolution", |_, (): ()| Ok((u64::from(MILLISECOND.nanoseconds),)))?;
    for subscribe in ["subscribe-instant", "subscribe-duration"] {
        to.func_wrap(subscribe, |_, (_when,): (u64,)| Ok((Resource::<Pollable>::new_own(0),)))?;
    }
    Ok(())
}
