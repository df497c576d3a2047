//! Text that an argument gives: itself, `@FILE`, or `-` for the standard input.

use std::io::Read;

use anyhow::Context;

pub(super) fn text(argument: &str) -> anyhow::Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("can't read {path}")),
        None if argument == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("can't read the standard input")?;
            Ok(text)
        }
        None => Ok(argument.to_owned()),
    }
}
