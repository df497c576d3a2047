//! The database of one run: made for it, asked with psql, and dropped afterwards.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use weir_postgres::Server;

use super::evidence::{Epoch, Strategy};
use crate::progress::step;

/// What psql puts between columns.
const SEPARATOR: char = '|';

pub(super) struct Database<'a> {
    server: &'a Server,
    name: String,
    keep: bool,
}

/// How far the store has come with what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) staged: u64,
    pub(super) events: u64,
    /// Backends of hosts that are in the middle of something.
    pub(super) busy: u64,
}

impl<'a> Database<'a> {
    /// With `keep` it stays, for a look at what went wrong.
    pub(super) fn create(server: &'a Server, name: &str, keep: bool) -> Result<Self> {
        server.create_database_if_missing(name)?;
        Ok(Self { server, name: name.to_owned(), keep })
    }

    /// For hosts.
    pub(super) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// In which parts the log falls. Two that begin at the same position have no event between them.
    pub(super) fn epochs(&self) -> Result<Vec<Epoch>> {
        let rows = self.ask("SELECT after_position, strategy FROM epochs ORDER BY number")?;
        let epoch = |row: &String| {
            let (after, strategy) = row.split_once(SEPARATOR)?;
            Some(Epoch { after: after.parse().ok()?, strategy: Strategy::named(strategy)? })
        };
        rows.iter().map(|row| epoch(row).with_context(|| format!("not an epoch: {row}"))).collect()
    }

    pub(super) fn progress(&self) -> Result<Progress> {
        let rows = self.ask(
            "SELECT (SELECT count(*) FROM staging), (SELECT count(*) FROM events), count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'weir' AND state <> 'idle' \
               AND query LIKE '%append(%'",
        )?;
        let row = rows.first().map(String::as_str).unwrap_or_default();
        let numbers: Result<Vec<u64>, _> = row.split(SEPARATOR).map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[staged, events, busy]) => Ok(Progress { staged, events, busy }),
            _ => anyhow::bail!("not three numbers: {row}"),
        }
    }

    /// Who flushes, if anybody does.
    pub(super) fn leader(&self) -> Result<Option<String>> {
        Ok(self.ask("SELECT holder FROM flusher_lease")?.pop())
    }

    /// Ends a connection of some host, one that is in the middle of something if there is one; false, if there was none.
    pub(super) fn terminate_a_backend(&self) -> Result<bool> {
        let ended = self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'weir' \
             ORDER BY state = 'active' DESC, random() LIMIT 1",
        )?;
        Ok(ended.first().is_some_and(|ended| ended == "t"))
    }

    /// The process of a backend that has written and not committed yet, or at least is at work, if there is one.
    pub(super) fn writing_backend(&self) -> Result<Option<i32>> {
        let found = self.ask(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'weir' \
               AND state = 'active' ORDER BY backend_xid IS NOT NULL DESC, random() LIMIT 1",
        )?;
        Ok(found.first().and_then(|pid| pid.parse().ok()))
    }

    /// The lines that a statement answers with.
    pub(super) fn ask(&self, statement: &str) -> Result<Vec<String>> {
        let mut psql = self.psql();
        let output = psql.args(["--command", statement]).stdin(Stdio::null()).output();
        let output = output.context("running psql")?;
        ensure!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }

    /// Runs a script that is too long for an argument.
    pub(super) fn run(&self, script: &str) -> Result<()> {
        let mut psql = self.psql();
        let piped = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = piped.spawn().context("running psql")?;
        running.stdin.take().context("psql takes no input")?.write_all(script.as_bytes())?;
        let output = running.wait_with_output()?;
        ensure!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn psql(&self) -> Command {
        let mut psql = self.server.psql(&self.name);
        psql.args(["--no-align", "--tuples-only", "--field-separator", &SEPARATOR.to_string()]);
        psql.env("PGOPTIONS", "-c search_path=weir");
        psql
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if self.keep {
            step(&format!("The database {} is left for a look: {}", self.name, self.url()));
            return;
        }
        let drop = format!("DROP DATABASE \"{}\" WITH (FORCE)", self.name);
        let mut psql = self.server.psql("postgres");
        let dropped = psql.args(["--command", &drop]).stdin(Stdio::null()).output();
        if !dropped.is_ok_and(|output| output.status.success()) {
            step(&format!("The database {} could not be dropped", self.name));
        }
    }
}
