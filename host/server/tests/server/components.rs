//! The handlers' components, and others made of them.

use std::path::Path;

use uuid::Uuid;

/// The example that the README shows.
pub(crate) fn course_enrolment() -> Vec<u8> {
    built("guest-examples/target/wasm32-wasip2/release/course_enrolment.wasm")
}

/// Fails in every way a handler can; the command's name says how.
pub(crate) fn misbehaving() -> Vec<u8> {
    built("host/runtime/tests/guests/target/wasm32-wasip2/release/misbehaving.wasm")
}

/// Imports `wasi:sockets`.
pub(crate) fn sockets() -> Vec<u8> {
    built("host/runtime/tests/guests/target/wasm32-wasip2/release/sockets.wasm")
}

/// The same handler in another version: a custom section at its end says `what`, to nobody.
pub(crate) fn version(component: &[u8], what: &str) -> Vec<u8> {
    let mut section = vec![u8::try_from("note".len()).unwrap()];
    section.extend_from_slice(b"note");
    section.extend_from_slice(what.as_bytes());
    let size = u8::try_from(section.len()).unwrap();
    assert!(size < 0x80, "the size would take two bytes");
    [component, &[0, size], &section].concat()
}

/// A handler called `rival-guest` with the commands of `misbehaving`: the name is as long as the other's.
pub(crate) fn rival() -> Vec<u8> {
    let (name, other) = (b"misbehaving", b"rival-guest");
    let mut component = misbehaving();
    let places: Vec<usize> = component
        .windows(name.len())
        .enumerate()
        .filter(|(_, bytes)| bytes == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the name is not in the component");
    for at in places {
        component[at..at + name.len()].copy_from_slice(other);
    }
    component
}

/// The first twelve digits of a version, as messages have them.
pub(crate) fn short(version: &str) -> &str {
    &version[..12]
}

/// A name that no other test uses.
pub(crate) fn unique(what: &str) -> String {
    format!("{what}-{}", Uuid::new_v4().simple())
}

fn built(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{} ({error}): run `cargo xtask guests` first", path.display()))
}
