use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::Engine;

use crate::compiled::Compiled;
use crate::engine;
use crate::limits::Limits;

/// What a [`Runtime`] is made with.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    /// Where compiled code is kept between runs. It has to be this process's own and no one else's to write;
    /// a directory that is missing is made. `None`: everything is compiled anew.
    pub cache_dir: Option<PathBuf>,
    /// What each instance may use.
    pub limits: Limits,
    /// How many instances there can be at a time. One more fails rather than waits ([`crate::FailureKind::Instantiate`]),
    /// so let no more attempts than this begin.
    pub max_instances: u32,
}

impl Default for RuntimeConfig {
    /// No cache, the default limits, 64 instances.
    fn default() -> Self {
        RuntimeConfig { cache_dir: None, limits: Limits::default(), max_instances: 64 }
    }
}

/// Compiles and checks handlers. One for a process; its clones are the same one.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    pooled: bool,
    compiled: Compiled,
    limits: Limits,
}

/// A runtime that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Wasmtime does not run on this machine, or not with these limits.
    #[error("the WebAssembly engine cannot be set up: {0}")]
    Engine(String),
    /// The thread that keeps deadlines could not be started.
    #[error("the thread that keeps the handlers' deadlines cannot be started")]
    Ticker(#[source] std::io::Error),
}

impl Runtime {
    /// Sets up the engine and starts the thread that keeps deadlines; it ends with the last handler.
    ///
    /// # Errors
    ///
    /// An unusable cache directory or a lack of address space is not one: it is logged, and costs time only.
    pub fn new(config: RuntimeConfig) -> Result<Self, RuntimeError> {
        let engine::Built { engine, pooled } = engine::build(&config.limits, config.max_instances)
            .map_err(|error| RuntimeError::Engine(format!("{error:#}")))?;
        engine::keep_ticking(&engine).map_err(RuntimeError::Ticker)?;
        let compiled = Compiled::in_directory(config.cache_dir.as_deref());
        Ok(Runtime { shared: Arc::new(Shared { engine, pooled, compiled, limits: config.limits }) })
    }

    /// Whether instances come from a pool. If not, there was too little address space for one.
    pub fn pooled(&self) -> bool {
        self.shared.pooled
    }

    /// What each instance may use.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.shared.compiled
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("pooled", &self.pooled()).field("limits", self.limits()).finish()
    }
}
