//! A reader of the log who is to survive whatever happens.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::host::Host;
use crate::patience::Lines;
use crate::program::weir;

/// `weir events --follow`, from the beginning.
pub(crate) struct Reader {
    child: Child,
    lines: Lines,
}

impl Reader {
    pub(crate) fn of(host: &Host) -> Self {
        let mut command = weir(&["events", "--follow", "--json", "--url", &host.url]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { lines: Lines::of(child.stdout.take().unwrap()), child }
    }

    /// Waits for the next event, which has to be this one.
    pub(crate) fn expect(&mut self, position: u64, note: &str) {
        let event: Value = serde_json::from_str(&self.lines.next().unwrap()).unwrap();
        assert_eq!((&event["position"], &event["data"]["note"]), (&position.into(), &note.into()));
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
