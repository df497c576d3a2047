//! Watches handlers' files.

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// How often to look. A file that is being written is left alone until two looks have found it the same.
const INTERVAL: Duration = Duration::from_millis(250);

/// A watch over a few files.
///
/// It looks at them now and then rather than ask the system for notifications: those end when a build removes and makes
/// the folder again, and not every file system gives any. What happens to other files, and mere reading, is not seen.
pub(super) struct FileWatch {
    files: BTreeMap<PathBuf, Seen>,
}

/// What a file was like: its number, size, and the time of its last change. `None` while there is no file.
type Stamp = Option<(u64, u64, i64, i64)>;

struct Seen {
    /// What it was like when it was reported last.
    reported: Stamp,
    /// What it was like at the last look.
    last: Stamp,
}

impl FileWatch {
    /// Watches `files`, as they are now.
    pub(super) fn over(files: &[PathBuf]) -> Self {
        let seen = |file: &PathBuf| {
            let stamp = stamp(file);
            (file.clone(), Seen { reported: stamp, last: stamp })
        };
        Self { files: files.iter().map(seen).collect() }
    }

    /// Waits until files have changed and come to rest, each for itself.
    pub(super) async fn changed(&mut self) -> Vec<PathBuf> {
        loop {
            let changed = self.look();
            if !changed.is_empty() {
                return changed;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn look(&mut self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for (file, seen) in &mut self.files {
            let now = stamp(file);
            let at_rest = now == seen.last;
            seen.last = now;
            if at_rest && now.is_some() && now != seen.reported {
                seen.reported = now;
                changed.push(file.clone());
            }
        }
        changed
    }
}

fn stamp(file: &Path) -> Stamp {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_reported_once_when_it_has_come_to_rest_and_reading_it_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("handler.wasm"), folder.path().join("other.wasm"));
        std::fs::write(&file, "one").unwrap();
        std::fs::write(&other, "one").unwrap();
        let mut watch = FileWatch::over(&[file.clone(), other.clone()]);
        std::fs::read(&file).unwrap();
        assert!(watch.look().is_empty());

        std::fs::write(&file, "two, and longer").unwrap();
        std::fs::write(&other, "a").unwrap();
        assert!(watch.look().is_empty(), "they may still be being written");
        // The other one goes on, and keeps nobody else waiting.
        std::fs::write(&other, "ab").unwrap();
        assert_eq!(watch.look(), [file]);
        assert_eq!(watch.look(), [other]);
        assert!(watch.look().is_empty());
    }

    #[test]
    fn a_folder_that_is_removed_and_made_again_is_still_watched() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("release");
        let file = folder.join("handler.wasm");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "one").unwrap();
        let mut watch = FileWatch::over(std::slice::from_ref(&file));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(watch.look().is_empty() && watch.look().is_empty(), "no file is no new version");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "three").unwrap();
        assert!(watch.look().is_empty());
        assert_eq!(watch.look(), [file]);
    }
}
