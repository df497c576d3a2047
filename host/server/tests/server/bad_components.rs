//! Files that are no handlers: refused with the reason, while the handlers that are there go on.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::answer::assert_says;
use crate::components::{misbehaving, sockets, unique};
use crate::host::shared;
use crate::program::{Run, compiled};

/// Deploys what can't be deployed, over HTTP and from a file.
fn refused(component: &[u8], parts: &[&str]) {
    let host = shared();
    let before = host.get("/v1/handlers").ok();
    assert_says(&host.deploy(component).problem(422, "component-refused"), parts);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("handler.wasm").display().to_string();
    fs::write(&file, component).unwrap();
    let line = Run::of(&["deploy", &file, "--url", &host.url]).complained();
    assert!(line.starts_with(&file), "{line}");
    assert_says(&line, parts);

    assert_eq!(host.get("/v1/handlers").ok(), before);
    host.send("accept", &json!({ "note": unique("after") })).accepted();
}

#[test]
fn an_empty_file_is_refused() {
    refused(b"", &["the file is empty"]);
}

#[test]
fn a_text_file_is_refused_with_its_first_line() {
    refused(b"\nfn main() {\n}\n", &["this is a text file", "it begins: fn main() {"]);
}

#[test]
fn a_file_of_another_kind_is_refused() {
    refused(b"\x89PNG\r\n\x1a\n\0\0\0", &["this is not WebAssembly"]);
}

#[test]
fn a_core_module_is_refused_with_what_makes_a_component_of_it() {
    refused(b"\0asm\x01\0\0\0", &["this is a core WebAssembly module", "--target wasm32-wasip2"]);
}

#[test]
fn a_component_that_is_cut_short_is_refused() {
    let component = misbehaving();
    refused(&component[..component.len() / 2], &["the component is malformed"]);
}

#[test]
fn a_component_that_is_no_handler_is_refused_with_what_is_missing() {
    let parts = ["does not export `weir:handler/handler@", "it exports nothing"];
    refused(b"\0asm\x0d\0\x01\0", &parts);
}

#[test]
fn a_component_that_imports_what_is_not_allowed_is_refused_with_its_imports() {
    refused(&sockets(), &["wasi:sockets/", "which no handler may have", "Remove what uses it"]);
}

#[test]
fn a_precompiled_artefact_is_refused() {
    // What the host keeps for itself is one, behind a checksum of 32 bytes.
    let _host = shared();
    let is_compiled = |path: &Path| path.extension().is_some_and(|extension| extension == "compiled");
    let kept = fs::read_dir(compiled()).unwrap().map(|entry| entry.unwrap().path());
    let artefact = fs::read(kept.into_iter().find(|path| is_compiled(path)).unwrap()).unwrap();
    assert_eq!(&artefact[32..36], b"\x7fELF");
    refused(&artefact[32..], &["compiled by wasmtime ahead of time", "deploy the component itself"]);
}

#[test]
fn a_component_without_measure_is_told_the_limit() {
    let host = shared();
    let detail = host.deploy(&vec![0; (64 << 20) + 1]).problem(413, "body-too-large");
    assert_says(&detail, &["67108864 bytes"]);
}
