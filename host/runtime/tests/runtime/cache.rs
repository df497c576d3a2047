//! Compiled code on disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use weir_runtime::{Handler, Runtime, RuntimeConfig};

use crate::guests::{accepted, component, decide, limits};

/// A runtime as after a restart.
fn load(cache_dir: &Path) -> Handler {
    let cache_dir = Some(cache_dir.to_owned());
    let runtime = Runtime::new(RuntimeConfig { cache_dir, limits: limits(), max_instances: 2 }).unwrap();
    let handler = runtime.load(&component("misbehaving")).unwrap();
    accepted(decide(&handler, "accept", "{}").unwrap());
    handler
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn only_file(directory: &Path) -> PathBuf {
    let mut files = files(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn compiled_code_is_kept_private_and_used_again() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new/cache");
    let handler = load(&directory);
    let file = only_file(&directory);
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with(&handler.version().to_string()));
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    let first = fs::metadata(&file).unwrap();
    assert_eq!(first.mode() & 0o777, 0o600);

    load(&directory);
    // A file that was written again would be another inode, since it is renamed into place.
    assert_eq!(fs::metadata(only_file(&directory)).unwrap().ino(), first.ino());
}

#[test]
fn a_file_that_is_not_what_was_written_is_compiled_anew() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    load(directory.path());
    let file = only_file(directory.path());
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [flipped.as_slice(), &good[..good.len() / 2], &good[..10], b""] {
        fs::write(&file, bad).unwrap();
        load(directory.path());
        assert_eq!(fs::read(&file).unwrap().len(), good.len(), "it was not written again");
    }
}

#[test]
fn a_file_that_others_may_write_is_not_loaded() {
    let directory = tempfile::tempdir().unwrap();
    load(directory.path());
    let file = only_file(directory.path());
    let before = fs::metadata(&file).unwrap().ino();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    load(directory.path());
    let after = fs::metadata(only_file(directory.path())).unwrap();
    assert_ne!(after.ino(), before);
    assert_eq!(after.mode() & 0o777, 0o600);
}

#[test]
fn a_directory_that_others_may_write_to_is_not_used() {
    for mode in [0o770, 0o707, 0o777] {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        load(directory.path());
        assert!(files(directory.path()).is_empty(), "{mode:o}");
    }
}

#[test]
fn a_symbolic_link_is_not_used() {
    let parent = tempfile::tempdir().unwrap();
    let (real, link) = (parent.path().join("real"), parent.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    load(&link);
    assert!(files(&real).is_empty());
}

#[test]
fn a_cache_that_cannot_be_made_is_done_without() {
    let file = tempfile::NamedTempFile::new().unwrap();
    load(&file.path().join("below-a-file"));
}
