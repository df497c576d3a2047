//! `weir deploy`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;

use super::remote::{ANSWER_BYTES, RemoteArgs, agent};

#[derive(Args)]
pub(crate) struct DeployArgs {
    /// The handler's component, a .wasm file
    file: PathBuf,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
struct Deployed {
    handler: String,
    version: String,
    status: String,
    commands: Vec<String>,
}

pub(crate) fn run(args: &DeployArgs) -> anyhow::Result<ExitCode> {
    let component =
        std::fs::read(&args.file).with_context(|| format!("can't read {}", args.file.display()))?;
    let result = agent(false)
        .post(args.remote.address("/v1/handlers"))
        .content_type("application/wasm")
        .send(&component[..]);
    match args.remote.answer(result)? {
        Ok(mut response) => {
            let Deployed { handler, version, status, commands } = response
                .body_mut()
                .with_config()
                .limit(ANSWER_BYTES)
                .read_json()
                .context("can't understand the answer")?;
            let version = version.get(..12).unwrap_or(&version);
            match status.as_str() {
                "unchanged" => println!("{handler} {version} was active already, nothing changed"),
                _ => println!("{handler} {version} is active and handles {}", commands.join(", ")),
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => bail!("{}: {}: {}", args.file.display(), problem.title, problem.detail),
    }
}
