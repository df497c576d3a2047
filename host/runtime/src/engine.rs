//! The one place that configures wasmtime.

use std::thread;
use std::time::Duration;

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{CORE_INSTANCES, Limits, MEMORIES, TABLE_ELEMENTS, TABLES};

/// How often the epoch moves on, and so how finely a deadline is kept.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// An engine, and whether its instances come from a pool.
pub(crate) struct Built {
    pub(crate) engine: Engine,
    pub(crate) pooled: bool,
}

/// An engine with a pool for `instances` instances at a time or, where there is no address space for one,
/// without.
///
/// A pool makes an instance in microseconds but reserves several GiB of address space for each; `ulimit -v`,
/// some containers and some kernels do not grant that. Weir then works all the same, a little slower.
pub(crate) fn build(limits: &Limits, instances: u32) -> wasmtime::Result<Built> {
    let built = match Engine::new(&pooled(limits, instances)) {
        Ok(engine) => Built { engine, pooled: true },
        Err(error) => {
            let reason = format!("{error:#}");
            tracing::warn!(instances, reason, "no pool of handler instances; making each on demand");
            Built { engine: Engine::new(&on_demand(limits))?, pooled: false }
        }
    };
    Ok(built)
}

/// What makes a handler pure, bounded and quick, however its memory is allocated.
fn common() -> Config {
    let mut config = Config::new();
    // Deadlines. Fuel would be deterministic, but costs three times as much and means something else in
    // every language.
    config.epoch_interruption(true);
    // The same bits on every machine: no NaN payloads, no relaxed SIMD. (Threads are not built in.)
    config.cranelift_nan_canonicalization(true);
    config.wasm_relaxed_simd(false);
    config.relaxed_simd_deterministic(true);
    config.wasm_memory64(false);
    // Pure handlers wait for nothing, so they need no concurrency; it is the youngest part of wasmtime.
    config.concurrency_support(false);
    // Only a foreign unwinder reads it (wasmtime walks guest frames by itself), and registering it makes
    // dropping a handler take seconds.
    config.native_unwind_info(false);
    // A trap is told in one sentence, without frames.
    config.wasm_backtrace_max_frames(None);
    config
}

fn pooled(limits: &Limits, instances: u32) -> Config {
    let instances = instances.max(1);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances);
    // One instance of a component is up to 40 core instances and several tables and memories (Python built
    // by componentize-py has 38 and about ten). Core instances are only counted; memories and tables
    // reserve address space, so they are shared out as if an average component had two and four. What
    // is added gives a single large component room in a small pool.
    pool.max_core_instances_per_component(CORE_INSTANCES as u32);
    pool.total_core_instances(instances.saturating_mul(40).saturating_add(CORE_INSTANCES as u32));
    pool.max_memories_per_component(MEMORIES as u32);
    pool.total_memories(instances.saturating_mul(2).saturating_add(MEMORIES as u32));
    pool.max_tables_per_component(TABLES as u32);
    pool.total_tables(instances.saturating_mul(4).saturating_add(TABLES as u32));
    pool.max_tables_per_module(TABLES as u32);
    pool.max_memories_per_module(MEMORIES as u32);
    pool.table_elements(TABLE_ELEMENTS);
    pool.max_component_instance_size(4 << 20);
    pool.max_core_instance_size(4 << 20);
    pool.max_memory_size(limits.memory_bytes);
    pool.total_gc_heaps(instances);
    // Resetting a page is cheaper than giving it back and faulting it in again, as long as the kernel can
    // say which pages were touched.
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes);
        pool.linear_memory_keep_resident(1 << 20);
        pool.table_keep_resident(64 << 10);
    }
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Memories that reserve no more than they may grow to, with their bounds checked in code.
fn on_demand(limits: &Limits) -> Config {
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config.memory_reservation(limits.memory_bytes as u64);
    config.memory_reservation_for_growth(0);
    config.memory_guard_size(64 << 10);
    config.memory_may_move(true);
    config
}

/// Moves the engine's epoch on at every [`TICK`], until nothing uses the engine any more.
///
/// Architecture invariant: nothing else moves the epoch. It is shared by all instances, so moving it to stop
/// one would stop them all.
pub(crate) fn keep_ticking(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new().name("weir-epoch".into()).spawn(move || {
        loop {
            thread::sleep(TICK);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    })?;
    Ok(())
}

/// How many ticks cover `limit`. One more than fit in it, because the first may come at once.
pub(crate) fn ticks(limit: Duration) -> u64 {
    let whole = limit.as_nanos().div_ceil(TICK.as_nanos());
    u64::try_from(whole).unwrap_or(u64::MAX / 2).min(u64::MAX / 2) + 1
}
