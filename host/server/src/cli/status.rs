//! `weir status`.

use std::{fmt::Display, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use time::format_description::well_known::Rfc3339;

use super::{
    remote::{RemoteArgs, agent},
    settings::written,
};
use crate::status::{OfHost, OfStore, Status};

/// Of the epochs so many are shown, the last ones.
const EPOCHS: usize = 5;

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// Print it as the host says it, JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let result = agent(false).get(args.remote.address("/v1/status")).call();
    let mut response = match args.remote.answer(result)? {
        Ok(response) => response,
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    };
    let text = response.body_mut().read_to_string().context("can't read the answer")?;
    let status: Status = serde_json::from_str(&text).context("can't understand the answer")?;
    if args.json {
        println!("{text}");
    } else {
        show_host(&status.host, &args.remote.address(""));
        if let Some(store) = &status.store {
            println!();
            show_store(store, &status.host);
        }
    }
    match status.store_problem {
        None => Ok(ExitCode::SUCCESS),
        Some(problem) => bail!("the store can't be asked: {problem}"),
    }
}

fn show_host(host: &OfHost, address: &str) {
    row("host", format!("weir {} at {address}, up for {}", host.version, spoken(host.uptime_seconds)));
    row(
        "commands",
        format!("{} under way, {} reading on", host.commands_under_way, counted(host.followers, "stream")),
    );
    if host.handlers.is_empty() {
        row("handlers", "none");
    }
    for (n, handler) in host.handlers.iter().enumerate() {
        let version = handler.version.get(..12).unwrap_or(&handler.version);
        let state = match &handler.reason {
            None => "ready".to_owned(),
            Some(reason) => format!("not ready: {reason}"),
        };
        row(if n == 0 { "handlers" } else { "" }, format!("{} {version}, {state}", handler.handler));
    }
    let flusher = &host.flusher;
    let done = format!(
        "{} numbered in {}",
        counted(flusher.flushed_events, "event"),
        counted(flusher.flushes, "flush")
    );
    row("flusher", format!("{}; {done}", if flusher.leads { "at work" } else { "stands by" }));
}

fn show_store(store: &OfStore, host: &OfHost) {
    row("store", format!("{}, strategy {}", store.name, store.settings.strategy));
    row("log", format!("ends at position {}", store.head));
    let staged = &store.staged;
    row(
        "staged",
        match staged.events {
            0 => "nothing".to_owned(),
            events => format!(
                "{}{}, the oldest for {}",
                if staged.exact { "" } else { "at most about " },
                counted(events, "event"),
                spoken(staged.lag_seconds)
            ),
        },
    );
    row(
        "flushed by",
        match &store.flusher_lease {
            None => "nobody".to_owned(),
            Some(lease) => {
                let whose = if lease.holder == host.flusher.id { ", this host's" } else { "" };
                let until = lease.until.format(&Rfc3339).unwrap_or_default();
                let expired = if lease.expired { " (has run out)" } else { "" };
                format!("{}{whose}, until {until}{expired}", lease.holder)
            }
        },
    );
    row("oldest writer", oldest_writer(store));
    row("outcomes", {
        let about = if store.outcomes.exact { "" } else { "about " };
        let kept_for = written(store.settings.outcomes_kept_seconds);
        format!("{about}{} kept, for {kept_for} each", store.outcomes.kept)
    });
    row(
        "conditions",
        match store.settings.unscoped_conditions {
            true => "without a type or a tag are allowed, and wait for all other appends",
            false => "without a type or a tag are refused",
        },
    );
    let earlier = store.epochs.len().saturating_sub(EPOCHS);
    for (n, epoch) in store.epochs.iter().skip(earlier).enumerate() {
        let began = epoch.began_at.format(&Rfc3339).unwrap_or_default();
        let (number, after, strategy) = (epoch.number, epoch.after_position, &epoch.strategy);
        row(
            if n == 0 { "epochs" } else { "" },
            format!("{number} behind position {after}, {strategy}, since {began}"),
        );
    }
    if earlier > 0 {
        row("", format!("and {earlier} before these"));
    }
    let b = &store.bytes;
    let tables = [
        ("events", b.events),
        ("event_keys", b.event_keys),
        ("staging", b.staging),
        ("staged_keys", b.staged_keys),
        ("outcomes", b.outcomes),
    ];
    let sizes: Vec<_> = tables.iter().map(|(table, bytes)| format!("{table} {}", size(*bytes))).collect();
    row("tables", sizes.join(", "));
}

/// The transaction that holds up those who follow the log, or would under `boundary`.
fn oldest_writer(store: &OfStore) -> String {
    let found = match &store.held_back {
        None => "none".to_owned(),
        Some(by) => {
            let process = by.pid.map_or_else(|| "no process".to_owned(), |pid| format!("process {pid}"));
            let application = if by.application.is_empty() { "no name" } else { &by.application };
            let holds = if store.settings.strategy == "boundary" { "holds the log back; " } else { "" };
            format!("{holds}runs for {}: {process} ({application}), {}", spoken(by.seconds), by.state)
        }
    };
    if store.sees_all_transactions {
        found
    } else {
        format!("{found} (of this role's; to see others' too: GRANT pg_read_all_stats)")
    }
}

fn row(name: &str, value: impl Display) {
    println!("{name:<15}{value}");
}

fn counted(count: impl Display, thing: &str) -> String {
    let count = count.to_string();
    let plural = match thing {
        _ if count == "1" => "",
        "flush" => "es",
        _ => "s",
    };
    format!("{count} {thing}{plural}")
}

fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return format!("{size:.0} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}
