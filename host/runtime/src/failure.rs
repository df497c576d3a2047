use std::fmt;
use std::time::Duration;

use crate::version::Version;

/// A call into a guest that came to nothing. The handler is at fault, in all kinds but
/// [`FailureKind::Instantiate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The handler's name, where it is known: not while it is asked for it.
    pub handler: Option<String>,
    /// The handler's version.
    pub version: Version,
    /// What was asked of the guest.
    pub call: Call,
    /// What happened instead of an answer.
    pub kind: FailureKind,
    /// What the guest had written to its standard output and error, or the end of it.
    pub stderr: String,
}

/// What the host asks of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// Making an instance, before any call.
    Start,
    /// `describe`.
    Describe,
    /// `boundary`.
    Boundary,
    /// `decision-model.apply`, or the making of the model.
    Apply,
    /// `decision-model.decide`.
    Decide,
}

/// What happened instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    /// It trapped, for the reason given: a panic, a stack overflow, an exit.
    Trap(String),
    /// It ran longer than this.
    Deadline(Duration),
    /// It wanted more memory than there is for it.
    Memory {
        /// Bytes it would have had in total.
        asked: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// It answered, but not in a way that can be used.
    Answer(Answer),
    /// The host could not make an instance. Not the guest's doing, and it may work later.
    Instantiate(String),
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is larger than this many bytes.
    TooLarge(usize),
    /// It breaks the contract: the reason, which reads on after "it answered nonsense:".
    Nonsense(String),
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Call::Start => "start",
            Call::Describe => "describe",
            Call::Boundary => "boundary",
            Call::Apply => "apply",
            Call::Decide => "decide",
        })
    }
}

/// A clause with "it" for the handler: `it trapped: …`.
impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Trap(reason) => write!(f, "it trapped: {reason}"),
            FailureKind::Deadline(limit) => write!(f, "it ran longer than {limit:?}"),
            FailureKind::Memory { asked, limit } => {
                write!(f, "it asked for {} of memory, its limit is {}", Bytes(*asked), Bytes(*limit))
            }
            FailureKind::Answer(Answer::TooLarge(limit)) => {
                write!(f, "its answer is larger than {}", Bytes(*limit))
            }
            FailureKind::Answer(Answer::Nonsense(reason)) => write!(f, "it answered nonsense: {reason}"),
            FailureKind::Instantiate(reason) => write!(f, "the host could not make an instance: {reason}"),
        }
    }
}

/// One sentence: which handler, which version, which call, why; then its standard error, if it wrote any.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.handler {
            Some(name) => write!(f, "handler {name:?} (version {})", self.version.short())?,
            None => write!(f, "the handler (version {})", self.version.short())?,
        }
        match self.call {
            Call::Start => write!(f, " failed to start: {}", self.kind)?,
            call => write!(f, " failed in {call}: {}", self.kind)?,
        }
        match self.stderr.trim() {
            "" => Ok(()),
            stderr => write!(f, "; its stderr: {stderr}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A number of bytes, in mebibytes where that says it better.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: usize = 1 << 20;
        match self.0 {
            bytes if bytes < MIB => write!(f, "{bytes} bytes"),
            bytes if bytes % MIB == 0 => write!(f, "{} MiB", bytes / MIB),
            bytes => write!(f, "{:.1} MiB", bytes as f64 / MIB as f64),
        }
    }
}
