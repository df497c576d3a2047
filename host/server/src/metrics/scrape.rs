//! The text that Prometheus asks for, with what is only looked up when it does.

use std::{fmt, time::Duration};

use futures_util::future::join_all;
use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeMetric,
        text::{encode_eof, encode_registry},
    },
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use weir_store::{Connections, StoreStatus};

use crate::host::Host;

/// How long a store may take to say how it is doing. Prometheus gives up after ten seconds by default, and must hear of
/// the rest although a database hangs.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Everything that the hosts of this process count and measure, as OpenMetrics text.
pub(crate) async fn text(hosts: &[Host]) -> Result<String, fmt::Error> {
    let looks = join_all(hosts.iter().map(Look::at)).await;
    let mut text = String::new();
    if let Some(host) = hosts.first() {
        encode_registry(&mut text, &host.metrics.all.registry)?;
    }
    // A registry of its own for each scrape: two at once don't mix, and what can't be had is left out.
    let mut looked_up = Registry::with_prefix("weir");
    looked_up.register_collector(Box::new(Looks(looks)));
    encode_registry(&mut text, &looked_up)?;
    encode_eof(&mut text)?;
    Ok(text)
}

/// One host and its store at the moment of the scrape.
#[derive(Debug)]
struct Look {
    store: String,
    commands: u64,
    leads: bool,
    flushes: u64,
    flushed: u64,
    ready: usize,
    unready: usize,
    connections: [Connections; 3],
    /// `None` if it can't be had in time.
    status: Option<StoreStatus>,
}

impl Look {
    async fn at(host: &Host) -> Self {
        let status = host.store.status(PATIENCE).await;
        let handlers = host.handlers.all();
        let ready = handlers.iter().filter(|handler| handler.unready.is_none()).count();
        Self {
            store: host.store.name().to_owned(),
            commands: host.commands.len() as u64,
            leads: host.flusher.stats.leads(),
            flushes: host.flusher.stats.flushes(),
            flushed: host.flusher.stats.events(),
            ready,
            unready: handlers.len() - ready,
            connections: host.store.connections(),
            status: status.ok(),
        }
    }
}

#[derive(Debug)]
struct Looks(Vec<Look>);

/// Further labels of a series, and its value.
type Series<const LABELS: usize, V> = ([(&'static str, &'static str); LABELS], V);

impl Collector for Looks {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let e = &mut encoder;
        let bytes = Unit::Bytes;
        self.of_host(e)?;

        let up = |look: &Look| vec![([], f64::from(u8::from(look.status.is_some())))];
        self.gauge(
            e,
            "store_up",
            "Whether the store answered in time; if not, what only it knows is missing",
            None,
            up,
        )?;
        // These are the store's and not this host's: every host says the same.
        let of_store = |value: fn(&StoreStatus) -> f64| {
            move |look: &Look| look.status.iter().map(|status| ([], value(status))).collect()
        };
        self.gauge(e, "head_position", "The highest position of the log", None, of_store(|s| s.head as f64))?;
        let staged = of_store(|s| s.staged.rows as f64);
        self.gauge(
            e,
            "staged_events",
            "Events that are not numbered yet, counted up to 10,000",
            None,
            staged,
        )?;
        let lag = of_store(|s| s.flush_lag.as_secs_f64());
        self.gauge(e, "flush_lag", "Age of the oldest event that is not numbered yet", SECONDS, lag)?;
        let held_back =
            of_store(|s| s.held_back.as_ref().map_or(0.0, |held_back| held_back.running.as_secs_f64()));
        let help = "Age of the oldest running transaction that has written, which holds back readers under `boundary`";
        self.gauge(e, "held_back", help, SECONDS, held_back)?;
        self.gauge(
            e,
            "outcomes_kept",
            "Outcomes kept for repeated requests",
            None,
            of_store(|s| s.outcomes.rows as f64),
        )?;
        self.gauge(e, "table", "Size of a table with its indexes", Some(&bytes), |look| {
            let sizes = look.status.iter().flat_map(|status| {
                let b = status.bytes;
                [
                    ("events", b.events),
                    ("event_keys", b.event_keys),
                    ("staging", b.staging),
                    ("staged_keys", b.staged_keys),
                    ("outcomes", b.outcomes),
                ]
            });
            sizes.map(|(table, bytes)| ([("table", table)], bytes as f64)).collect()
        })
    }
}

const SECONDS: Option<&Unit> = Some(&Unit::Seconds);

impl Looks {
    fn of_host(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let under_way = |look: &Look| vec![([], look.commands as f64)];
        self.gauge(e, "commands_under_way", "Commands that have no answer yet", None, under_way)?;
        let leads = |look: &Look| vec![([], f64::from(u8::from(look.leads)))];
        self.gauge(e, "flusher_leads", "Whether this host's flusher is the one at work", None, leads)?;
        let flushes = |look: &Look| look.flushes;
        self.counter(e, "flushes", "Flushes by this host that numbered something", flushes)?;
        self.counter(e, "flushed_events", "Events that this host has numbered", |look| look.flushed)?;
        self.gauge(e, "handlers", "Active handlers", None, |look| {
            vec![([("state", "ready")], look.ready as f64), ([("state", "unready")], look.unready as f64)]
        })?;
        self.gauge(e, "connections", "Connections to the database", None, |look| {
            let series = |c: &Connections| {
                [
                    ([("pool", c.pool), ("state", "used")], f64::from(c.used)),
                    ([("pool", c.pool), ("state", "idle")], f64::from(c.idle)),
                ]
            };
            look.connections.iter().flat_map(series).collect()
        })
    }

    /// Encodes a gauge with what each host has for it; nothing at all, if none has anything.
    fn gauge<const LABELS: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        series: impl Fn(&Look) -> Vec<Series<LABELS, f64>>,
    ) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|look| (look, series(look))).collect();
        if all.iter().all(|(_, series)| series.is_empty()) {
            return Ok(());
        }
        let mut encoder = encoder.encode_descriptor(name, &format!("{help}."), unit, MetricType::Gauge)?;
        for (look, series) in all {
            for (labels, value) in series {
                let mut set = vec![("store", look.store.as_str())];
                set.extend(labels);
                ConstGauge::new(value).encode(encoder.encode_family(&set)?)?;
            }
        }
        Ok(())
    }

    fn counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&Look) -> u64,
    ) -> fmt::Result {
        let mut encoder = encoder.encode_descriptor(name, &format!("{help}."), None, MetricType::Counter)?;
        for look in &self.0 {
            let labels = [("store", look.store.as_str())];
            ConstCounter::new(value(look)).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
