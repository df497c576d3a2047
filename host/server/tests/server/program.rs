//! `weir` as a shell runs it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::patience::{PATIENCE, in_time};

/// The program, free of what the environment says of stores and hosts. Handlers are compiled once for all tests.
pub(crate) fn weir(arguments: &[&str]) -> Command {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("WEIR_") && name != "WEIR_POSTGRES_BIN"
            || name == "DATABASE_URL"
            || name == "RUST_LOG"
        {
            weir.env_remove(&*name);
        }
    }
    weir.args(arguments).env("WEIR_CACHE", compiled()).env("RUST_BACKTRACE", "1").stdin(Stdio::null());
    weir
}

/// Where the compiled handlers are kept.
pub(crate) fn compiled() -> String {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled").display().to_string()
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(arguments: &[&str]) -> Self {
        Self::of_command(&mut weir(arguments), "")
    }

    /// Runs a command to its end with `input` as its standard input. It is killed if that does not come.
    pub(crate) fn of_command(command: &mut Command, input: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may have ended without reading it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let texts = [text(child.stdout.take().unwrap()), text(child.stderr.take().unwrap())];
        let code = ended(&mut child).code();
        let [stdout, stderr] = texts.map(|text| text.recv_timeout(PATIENCE).unwrap());
        Self { code, stdout, stderr }
    }

    /// What it printed, if it ended well.
    pub(crate) fn succeeded(self) -> String {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// What it complained of: one line for people, whatever RUST_BACKTRACE says.
    pub(crate) fn complained(self) -> String {
        assert_eq!((self.code, &*self.stdout), (Some(1), ""), "{self:?}");
        let line = self.stderr.strip_prefix("weir: ").and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("{self:?}"));
        assert!(!line.contains('\n'), "more than one line: {line}");
        line.to_owned()
    }
}

/// Waits for a process to end, and kills one that does not.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    in_time(|| child.try_wait().unwrap()).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("the process did not end within {PATIENCE:?}")
    })
}

fn text(mut source: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = source.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}
