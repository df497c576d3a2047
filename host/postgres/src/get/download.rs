//! Downloads relocatable server binaries, built and published by the project `theseus-rs` for the targets
//! Rust supports, into the user's cache.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use ureq::Agent;

use crate::account::caller_is_root;
use crate::binaries::{Binaries, newest_first};

/// The release to fetch. One with `psql` beside the server.
const VERSION: &str = "17.6.0";

const RELEASES: &str = "https://github.com/theseus-rs/postgresql-binaries/releases/download";

/// More than any release has; an answer that is longer is not an archive of ours.
const LARGEST: u64 = 256 << 20;

/// Fetches, checks and unpacks the release. The error is one line.
pub(super) fn download(say: &mut dyn FnMut(&str)) -> Result<Binaries, String> {
    let target = target().ok_or("there is no download for this kind of machine")?;
    let cache = cache().ok_or("neither XDG_CACHE_HOME nor HOME says where to keep a download")?;
    let name = format!("postgresql-{VERSION}-{target}");
    let url = format!("{RELEASES}/{VERSION}/{name}.tar.gz");
    say(&format!("No PostgreSQL server here: downloading {url}"));

    // The checksum guards against a broken transfer; who answers for the release is GitHub, over TLS.
    let agent = agent();
    let checksum = fetch(&agent, &format!("{url}.sha256"), 4096)?;
    let archive = fetch(&agent, &url, LARGEST)?;
    let expected = String::from_utf8_lossy(&checksum);
    let expected = expected.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let actual: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    if actual != expected {
        return Err(format!("{url} has the SHA-256 {actual}, its release says {expected}"));
    }
    let copy = unpack(&archive, &name, &cache)
        .map_err(|error| format!("cannot unpack {name}.tar.gz into {}: {error}", cache.display()))?;
    say(&format!("Keeping PostgreSQL {VERSION} in {}", copy.display()));
    Binaries::inspect(&copy.join("bin"))
        .map_err(|unfit| format!("the download in {} does not work here: {unfit}", copy.display()))
}

/// The `bin` folders of earlier downloads, the highest version first.
pub(super) fn earlier_copies() -> Vec<PathBuf> {
    let Some(cache) = cache() else { return Vec::new() };
    newest_first(&cache, "").into_iter().map(|copy| copy.join("bin")).collect()
}

/// Unpacks beside the final place and renames, so that a folder with a version's name is always whole.
fn unpack(archive: &[u8], name: &str, cache: &std::path::Path) -> io::Result<PathBuf> {
    fs::create_dir_all(cache)?;
    let unpacking = tempfile::tempdir_in(cache)?;
    tar::Archive::new(GzDecoder::new(archive)).unpack(unpacking.path())?;
    let copy = cache.join(VERSION);
    match fs::rename(unpacking.path().join(name), &copy) {
        // Someone else was faster, and the copy is the same.
        Err(_) if copy.join("bin").is_dir() => Ok(copy),
        renamed => renamed.map(|()| copy),
    }
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .timeout_resolve(Some(Duration::from_secs(10)))
        .timeout_connect(Some(Duration::from_secs(10)))
        .timeout_recv_response(Some(Duration::from_secs(20)))
        .timeout_recv_body(Some(Duration::from_secs(600)));
    config.build().into()
}

fn fetch(agent: &Agent, url: &str, limit: u64) -> Result<Vec<u8>, String> {
    let said = |error: ureq::Error| format!("GET {url}: {error}");
    let mut response = agent.get(url).call().map_err(said)?;
    response.body_mut().with_config().limit(limit).read_to_vec().map_err(said)
}

/// Where downloads are kept. Root's own cache is closed to the account that will run the programs.
fn cache() -> Option<PathBuf> {
    if caller_is_root() {
        return Some(PathBuf::from("/var/cache/weir/postgresql"));
    }
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(caches.join("weir/postgresql"))
}

/// The target triple of the release's archives.
fn target() -> Option<&'static str> {
    let musl = cfg!(target_env = "musl");
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") if musl => Some("x86_64-unknown-linux-musl"),
        ("linux", "x86_64") => Some("x86_64-unknown-linux-gnu"),
        ("linux", "aarch64") if musl => Some("aarch64-unknown-linux-musl"),
        ("linux", "aarch64") => Some("aarch64-unknown-linux-gnu"),
        ("macos", "x86_64") => Some("x86_64-apple-darwin"),
        ("macos", "aarch64") => Some("aarch64-apple-darwin"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_unpacked_under_its_version() {
        let name = format!("postgresql-{VERSION}-any");
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o755);
        tar.append_data(&mut header, format!("{name}/bin/postgres"), &b"hi"[..]).unwrap();
        let archive = tar.into_inner().unwrap().finish().unwrap();

        let cache = tempfile::tempdir().unwrap();
        for _again in 0..2 {
            let copy = unpack(&archive, &name, cache.path()).unwrap();
            assert_eq!(fs::read(copy.join("bin/postgres")).unwrap(), b"hi");
        }
        assert_eq!(newest_first(cache.path(), ""), [cache.path().join(VERSION)]);
        assert_eq!(cache.path().read_dir().unwrap().count(), 1, "nothing half unpacked stays behind");
    }
}
