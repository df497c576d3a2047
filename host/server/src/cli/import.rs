//! `weir import`.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;

use super::remote::{RemoteArgs, agent};

/// Events of one request, and their bytes: what the host takes in one transaction.
const LINES: usize = 5000;
const BYTES: usize = 8 * 1024 * 1024;

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// What `weir export` has written, or - for the standard input
    file: String,
    /// Go on with an import that was cut off: leave out as many events as the store has already
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
struct Imported {
    head: u64,
}

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let lines: Box<dyn BufRead> = match args.file.as_str() {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(File::open(path).with_context(|| format!("can't read {path}"))?)),
    };
    let mut head = head(args)?;
    if head > 0 && !args.resume {
        bail!(
            "the store has {head} events already: import into an empty one (weir migrate --schema NAME makes one), or go on \
             with an import that was cut off by --resume"
        );
    }
    let (mut left_out, mut number) = (head, 0);
    let (mut batch, mut from) = (String::new(), 0);
    let mut in_batch = 0;
    let progress = std::io::stderr().is_terminal();
    for line in lines.lines() {
        let line = line.with_context(|| format!("can't read {}", args.file))?;
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        if left_out > 0 {
            left_out -= 1;
            continue;
        }
        if in_batch == LINES || (in_batch > 0 && batch.len() + line.len() > BYTES) {
            head = send(args, head, &batch, from)?;
            if progress {
                eprint!("\r{head} events");
            }
            batch.clear();
            in_batch = 0;
        }
        if in_batch == 0 {
            from = number;
        }
        batch += &line;
        batch.push('\n');
        in_batch += 1;
    }
    if left_out > 0 {
        bail!("the store has more events than {}: this is not the import that was cut off", args.file);
    }
    if in_batch > 0 {
        head = send(args, head, &batch, from)?;
    }
    if progress {
        eprintln!();
    }
    println!("imported: the log has {head} events");
    Ok(ExitCode::SUCCESS)
}

/// Where the log ends.
fn head(args: &ImportArgs) -> anyhow::Result<u64> {
    let wanted = serde_json::json!({ "limit": 0 });
    let result = agent(false).post(&args.remote.address("/v1/read")).send_json(wanted);
    match args.remote.answer(result)? {
        Ok(mut response) => {
            let end: Imported = response.body_mut().read_json().context("can't understand the answer")?;
            Ok(end.head)
        }
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    }
}

fn send(args: &ImportArgs, head: u64, batch: &str, from: usize) -> anyhow::Result<u64> {
    let address = args.remote.address(&format!("/v1/import?expected_head={head}"));
    let result = agent(false).post(&address).content_type("application/x-ndjson").send(batch);
    let said = format!(
        "the events up to position {head} are imported; what went wrong is at line {from} of {} or after it (its lines \
         are counted from there)",
        args.file
    );
    match args
        .remote
        .answer(result)
        .context("go on with --resume when the host is back")
        .context(said.clone())?
    {
        Ok(mut response) => {
            let imported: Imported =
                response.body_mut().read_json().context("can't understand the answer")?;
            Ok(imported.head)
        }
        Err(problem) => bail!("{said}: {}: {}", problem.title, problem.detail),
    }
}
