//! `weir export`.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use super::remote::{RemoteArgs, agent};

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The file to write [default: the standard output]. It appears when it is complete
    file: Option<PathBuf>,
    /// Write over a file that exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = args.file.as_ref().filter(|file| file.exists() && !args.force) {
        bail!("{} exists already; --force writes over it", file.display());
    }
    let response = match args.remote.answer(agent(true).get(&args.remote.address("/v1/events")).call())? {
        Ok(response) => response,
        Err(problem) => bail!("{}: {}", problem.title, problem.detail),
    };
    let events = BufReader::with_capacity(1 << 20, response.into_body().into_reader());
    let Some(file) = &args.file else {
        // Whoever reads our output may close it early: that is no error.
        let _ = copy(events, &mut std::io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    };
    let name = file.file_name().with_context(|| format!("{} names no file", file.display()))?;
    let partial = file.with_file_name(format!("{}.partial", name.to_string_lossy()));
    let mut out = File::create(&partial).with_context(|| format!("can't write {}", partial.display()))?;
    let count = copy(events, &mut BufWriter::new(&mut out))?
        .with_context(|| format!("can't write {}; what there is of it was left there", partial.display()))?;
    out.sync_all()?;
    std::fs::rename(&partial, file).with_context(|| format!("can't write {}", file.display()))?;
    println!("exported {count} events to {}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// How many lines were copied. The outer error is that of the host.
fn copy(mut events: impl Read, out: &mut impl Write) -> anyhow::Result<std::io::Result<u64>> {
    let (mut count, mut piece) = (0, vec![0; 1 << 16]);
    loop {
        let length =
            events.read(&mut piece).context("the host stopped sending: the export is not complete")?;
        if length == 0 {
            return Ok(out.flush().map(|()| count));
        }
        count += piece[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
        if let Err(error) = out.write_all(&piece[..length]) {
            return Ok(Err(error));
        }
    }
}
