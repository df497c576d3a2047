//! Watches handlers' files.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// A file that is being written is left alone until nothing has happened for so long.
const SETTLED: Duration = Duration::from_millis(200);

/// A watch over a few files.
///
/// It watches their folders: a build replaces a file rather than writes into it, and a watch on the file would
/// die with the first one. What happens to other files there, and mere reading, goes unreported.
pub(super) struct FileWatch {
    changes: mpsc::UnboundedReceiver<PathBuf>,
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Watches `files`, given as canonical paths.
    pub(super) fn over(files: &[PathBuf]) -> anyhow::Result<Self> {
        let watched: HashSet<PathBuf> = files.iter().cloned().collect();
        let (changed, changes) = mpsc::unbounded_channel();
        let report = move |result: notify::Result<notify::Event>| match result {
            Ok(event) if event.kind.is_create() || event.kind.is_modify() => {
                for path in event.paths.into_iter().filter(|path| watched.contains(path)) {
                    let _ = changed.send(path);
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "can't watch the handlers' files"),
        };
        let mut watcher = notify::recommended_watcher(report).context("can't watch files")?;
        let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders {
            watcher
                .watch(folder, RecursiveMode::NonRecursive)
                .with_context(|| format!("can't watch {}", folder.display()))?;
        }
        Ok(Self { changes, _watcher: watcher })
    }

    /// Waits until files have changed and come to rest.
    pub(super) async fn changed(&mut self) -> BTreeSet<PathBuf> {
        let mut changed: BTreeSet<PathBuf> = self.changes.recv().await.into_iter().collect();
        while let Ok(Some(path)) = tokio::time::timeout(SETTLED, self.changes.recv()).await {
            changed.insert(path);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replaced_file_is_reported_once_and_reading_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let file = folder.join("handler.wasm");
        std::fs::write(&file, "one").unwrap();
        let mut watch = FileWatch::over(std::slice::from_ref(&file)).unwrap();

        // Reading and neighbours come first: had they been reported, they would be in the first answer.
        let neighbour = folder.join("new.wasm");
        std::fs::read(&file).unwrap();
        std::fs::write(&neighbour, "two").unwrap();
        std::fs::rename(&neighbour, &file).unwrap();
        assert_eq!(watch.changed().await, BTreeSet::from([file.clone()]));

        std::fs::read(&file).unwrap();
        let more = tokio::time::timeout(SETTLED * 2, watch.changed()).await;
        assert!(more.is_err(), "reading counts as a change: {more:?}");
    }
}
