use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::instance::refusal;

/// How much a handler may use. A handler that asks for more fails its own command, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one instance, in bytes; the sum, if it has several memories.
    pub memory_bytes: usize,
    /// Wall-clock time of one call into the guest: of `boundary`, of `decide`, of each chunk of `apply`.
    pub call_deadline: Duration,
    /// What one call may hand to the host, in bytes as the host holds them (a string is a little more than
    /// its text).
    pub answer_bytes: usize,
    /// How much of the guest's standard output and error is kept: as much as this of its end.
    pub stderr_bytes: usize,
    /// The largest component that is loaded, in bytes.
    pub component_bytes: usize,
}

impl Default for Limits {
    /// Enough for every toolchain that was tried, the interpreters among them.
    fn default() -> Self {
        Limits {
            memory_bytes: 64 << 20,
            call_deadline: Duration::from_secs(1),
            answer_bytes: 16 << 20,
            stderr_bytes: 16 << 10,
            component_bytes: 64 << 20,
        }
    }
}

/// Elements of one table. Tables hold a program's function pointers; the largest interpreter that was tried
/// has 7,688.
pub(crate) const TABLE_ELEMENTS: usize = 20_000;

/// Tables, memories and core instances of one instance of a component. A component made by an interpreter's
/// toolchain is dozens of modules linked together.
pub(crate) const TABLES: usize = 32;
/// See [`TABLES`].
pub(crate) const MEMORIES: usize = 8;
/// See [`TABLES`].
pub(crate) const CORE_INSTANCES: usize = 100;

/// Watches over one instance's memory, and remembers what it was asked for when it says no.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: usize,
    granted: usize,
    denied: Option<usize>,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Limiter { limit: limits.memory_bytes, granted: 0, denied: None }
    }

    /// Bytes that the instance has.
    pub(crate) fn granted(&self) -> usize {
        self.granted
    }

    /// How many bytes in total the request that was denied came to.
    pub(crate) fn denied(&self) -> Option<usize> {
        self.denied
    }
}

/// An error rather than a "no", both times: a guest that is told "no" dies of it a little later, with a message
/// about something else.
impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.granted.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            self.denied = Some(total);
            return Err(wasmtime::Error::msg("the memory limit is reached"));
        }
        self.granted = total;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            return Err(refusal(format!(
                "it asked for a table of {desired} elements, more than {TABLE_ELEMENTS}"
            )));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
