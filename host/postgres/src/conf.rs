//! The settings a server runs with.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Settings of every server. Connections and locks: a host keeps a pool per role, tests run side by side,
/// and one batch of commands takes a lock for each of its boundary keys.
const ALWAYS: [(&str, &str); 8] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("max_connections", "200"),
    ("max_locks_per_transaction", "256"),
    ("shared_buffers", "256MB"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
];

/// What a server gives up whose data nobody will miss.
const NOT_DURABLE: [(&str, &str); 3] =
    [("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];

/// Writes the settings file. The later of two lines counts, so `extra` has the last word.
pub(crate) fn write(path: &Path, port: u16, durable: bool, extra: &[(String, String)]) -> io::Result<()> {
    let port = port.to_string();
    let ours =
        ALWAYS.into_iter().chain(NOT_DURABLE.into_iter().filter(|_| !durable)).chain([("port", &*port)]);
    let theirs = extra.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut text = String::from("# Written by Weir at every start; changes made here do not last.\n");
    for (name, value) in ours.chain(theirs) {
        text.push_str(&format!("{name} = '{}'\n", value.replace('\\', r"\\").replace('\'', "''")));
    }
    fs::write(path, text)
}

/// The port to listen on: that of the last start while it is free, so that addresses people noted keep
/// working; any free one otherwise.
pub(crate) fn pick_port(conf: &Path) -> io::Result<u16> {
    let last = fs::read_to_string(conf).ok().and_then(|text| port_in(&text));
    if let Some(port) = last
        && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    {
        return Ok(port);
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn port_in(conf: &str) -> Option<u16> {
    let value = conf.lines().rev().find_map(|line| line.strip_prefix("port = '"))?;
    value.trim_end_matches('\'').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_settings_come_last_and_are_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weir.conf");
        write(&path, 5544, false, &[("log_line_prefix".to_owned(), r"it's \ %m".to_owned())]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("fsync = 'off'\n"), "{text}");
        assert!(text.ends_with("log_line_prefix = 'it''s \\\\ %m'\n"), "{text}");
        assert_eq!(port_in(&text), Some(5544));
    }

    #[test]
    fn a_port_that_somebody_took_is_left_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weir.conf");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        write(&path, port, true, &[]).unwrap();
        assert_ne!(pick_port(&path).unwrap(), port);
        drop(taken);
        assert_eq!(pick_port(&path).unwrap(), port);
    }
}
