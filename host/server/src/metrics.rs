//! What this process counts and measures, in the words of Prometheus.
//!
//! All series have a label `store`, so that a process that serves several counts each for itself. What is counted as it
//! happens is in the registry; what is asked for when somebody looks is in [`scrape`].

mod scrape;

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};
use weir_store::Outcome;

use crate::{
    answer::{Answer, Verdict},
    command::Failure,
};

pub(crate) use scrape::text;

/// From well below a round trip to the database to past the time after which no attempt begins.
const COMMAND_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0];
/// From a fresh instance that does next to nothing to past the usual deadline of a call.
const HANDLER_SECONDS: [f64; 9] = [0.000_025, 0.000_1, 0.000_4, 0.001_6, 0.006_4, 0.025, 0.1, 0.4, 1.6];

/// The series of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    commands: Family<OutcomeLabels, Counter>,
    attempts: Family<StoreLabels, Counter>,
    conflicts: Family<StoreLabels, Counter>,
    command_seconds: Family<StoreLabels, Histogram, fn() -> Histogram>,
    appends: Family<OutcomeLabels, Counter>,
    handler_seconds: Family<HandlerLabels, Histogram, fn() -> Histogram>,
    followers: Family<StoreLabels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    store: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    store: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandlerLabels {
    store: String,
    handler: String,
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandOutcome {
    Accepted,
    Rejected,
    Conflict,
    Failed,
    Overloaded,
}

impl CommandOutcome {
    const ALL: [Self; 5] = [Self::Accepted, Self::Rejected, Self::Conflict, Self::Failed, Self::Overloaded];

    fn of(result: &Result<Answer, Failure>) -> Self {
        match result {
            Ok(Answer { verdict: Verdict::Accepted(_), .. }) => Self::Accepted,
            Ok(Answer { verdict: Verdict::Rejected { .. }, .. }) => Self::Rejected,
            Err(Failure::Conflict(_)) => Self::Conflict,
            Err(Failure::Overloaded(_)) => Self::Overloaded,
            Err(Failure::NotFound(_) | Failure::IdReused(_) | Failure::Handler(_) | Failure::Store(_)) => {
                Self::Failed
            }
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Overloaded => "overloaded",
        }
    }
}

/// What became of an append that no handler decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppendOutcome {
    Appended,
    Repeated,
    Conflict,
    Failed,
    Overloaded,
}

impl AppendOutcome {
    const ALL: [Self; 5] = [Self::Appended, Self::Repeated, Self::Conflict, Self::Failed, Self::Overloaded];

    pub(crate) fn of(result: &Result<Outcome, weir_store::Error>) -> Self {
        match result {
            Ok(Outcome::Appended) => Self::Appended,
            Ok(Outcome::Repeated) => Self::Repeated,
            Ok(Outcome::Conflict | Outcome::Undermined) => Self::Conflict,
            Err(_) => Self::Failed,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Appended => "appended",
            Self::Repeated => "repeated",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Overloaded => "overloaded",
        }
    }
}

impl Metrics {
    pub(crate) fn new() -> Arc<Self> {
        let mut metrics = Self {
            registry: Registry::with_prefix("weir"),
            commands: Family::default(),
            attempts: Family::default(),
            conflicts: Family::default(),
            command_seconds: Family::new_with_constructor(|| Histogram::new(COMMAND_SECONDS)),
            appends: Family::default(),
            handler_seconds: Family::new_with_constructor(|| Histogram::new(HANDLER_SECONDS)),
            followers: Family::default(),
        };
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        let registry = &mut metrics.registry;
        registry.register("build", "The program", build);
        registry.register("commands", "Commands, by what became of them", metrics.commands.clone());
        registry.register("command_attempts", "Attempts at commands", metrics.attempts.clone());
        registry.register(
            "command_conflicts",
            "Attempts that ended because the events which the decision depends on had changed",
            metrics.conflicts.clone(),
        );
        registry.register_with_unit(
            "command_duration",
            "Time from a command's acceptance to its answer, except of those that were turned away at once",
            Unit::Seconds,
            metrics.command_seconds.clone(),
        );
        registry.register(
            "appends",
            "Appends without a handler, by what became of them",
            metrics.appends.clone(),
        );
        registry.register_with_unit(
            "handler_run",
            "Time in a handler's code: twice for each attempt at a command, for its boundary and its decision",
            Unit::Seconds,
            metrics.handler_seconds.clone(),
        );
        registry.register("followers", "Open streams of the log", metrics.followers.clone());
        Arc::new(metrics)
    }

    /// The series of one store, all at zero: a rate over a series that is not there yet misses its first step.
    pub(crate) fn of_store(self: &Arc<Self>, store: &str) -> StoreMetrics {
        let metrics = StoreMetrics { labels: StoreLabels { store: store.to_owned() }, all: self.clone() };
        for outcome in CommandOutcome::ALL {
            metrics.commands(outcome);
        }
        for outcome in AppendOutcome::ALL {
            metrics.appends(outcome);
        }
        for family in [&self.attempts, &self.conflicts] {
            family.get_or_create_owned(&metrics.labels);
        }
        self.command_seconds.get_or_create_owned(&metrics.labels);
        self.followers.get_or_create_owned(&metrics.labels);
        metrics
    }
}

/// The series of one store. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct StoreMetrics {
    labels: StoreLabels,
    all: Arc<Metrics>,
}

impl StoreMetrics {
    /// A command has come to its end.
    pub(crate) fn ended(&self, result: &Result<Answer, Failure>, took: Duration) {
        let outcome = CommandOutcome::of(result);
        self.commands(outcome).inc();
        if outcome != CommandOutcome::Overloaded {
            self.all.command_seconds.get_or_create(&self.labels).observe(took.as_secs_f64());
        }
    }

    /// Attempts at commands.
    pub(crate) fn attempts(&self) -> Counter {
        self.all.attempts.get_or_create_owned(&self.labels)
    }

    /// Attempts that met a conflict.
    pub(crate) fn conflicts(&self) -> Counter {
        self.all.conflicts.get_or_create_owned(&self.labels)
    }

    /// Appends without a handler.
    pub(crate) fn appends(&self, outcome: AppendOutcome) -> Counter {
        self.all.appends.get_or_create_owned(&self.outcome(outcome.as_str()))
    }

    /// Time in a handler's code.
    pub(crate) fn handler_run(&self, handler: &str) -> Histogram {
        let labels = HandlerLabels { store: self.labels.store.clone(), handler: handler.to_owned() };
        self.all.handler_seconds.get_or_create_owned(&labels)
    }

    /// One more stream is open, until what is returned is dropped.
    pub(crate) fn follower(&self) -> OpenStream {
        let gauge = self.all.followers.get_or_create_owned(&self.labels);
        gauge.inc();
        OpenStream(gauge)
    }

    /// How many streams are open.
    pub(crate) fn followers(&self) -> i64 {
        self.all.followers.get_or_create(&self.labels).get()
    }

    fn commands(&self, outcome: CommandOutcome) -> Counter {
        self.all.commands.get_or_create_owned(&self.outcome(outcome.as_str()))
    }

    fn outcome(&self, outcome: &'static str) -> OutcomeLabels {
        OutcomeLabels { store: self.labels.store.clone(), outcome }
    }
}

/// Counted as an open stream while it lives.
pub(crate) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
