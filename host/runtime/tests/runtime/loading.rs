//! What is loaded and what is not, and what an author is told.

use weir_runtime::{Call, FailureKind, Limits, LoadError, Runtime, RuntimeConfig};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

use crate::guests::{component, limits, runtime, runtime_with};

const CONTRACT: [&str; 2] =
    [include_str!("../../../../wit/types.wit"), include_str!("../../../../wit/handler.wit")];

/// A component of `world` in `wit`, all of whose functions trap.
fn dummy(world: &str, wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

/// A component of the contract, after it was changed.
fn dummy_handler(change: impl Fn(String) -> String) -> Vec<u8> {
    let [types, handler] = CONTRACT;
    let handler = handler.split_once('\n').unwrap().1;
    let contract = format!("{types}{handler}");
    let changed = change(contract.clone());
    dummy("command-handler", &changed)
}

/// The contract with an import in its world, and with other packages.
fn importing(import: &str, packages: &str) -> LoadError {
    refused(&dummy_handler(|wit| {
        wit.replace("export handler;", &format!("import {import}; export handler;")) + packages
    }))
}

fn refused(bytes: &[u8]) -> LoadError {
    runtime().load(bytes).expect_err("it was loaded")
}

#[test]
fn an_empty_file() {
    assert_eq!(refused(b""), LoadError::Empty);
}

#[test]
fn a_component_that_is_too_large() {
    let small = runtime_with(Limits { component_bytes: 100_000, ..limits() });
    let error = small.load(&component("misbehaving")).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { limit: 100_000, .. }), "{error}");
    assert!(error.to_string().ends_with("more than the 100000 bytes that are allowed"), "{error}");
}

#[test]
fn a_text_file() {
    let error = refused("\n// Ein Händler\nexport const handler = {}".as_bytes());
    assert_eq!(error, LoadError::Text("// Ein Händler".into()));
}

#[test]
fn some_other_file() {
    assert_eq!(refused(b"\x89PNG\r\n\x1a\n\0\0"), LoadError::NotWasm);
}

#[test]
fn a_core_module() {
    let error = refused(b"\0asm\x01\0\0\0");
    assert_eq!(error, LoadError::CoreModule);
    assert!(error.to_string().contains("wasm-tools component new"), "{error}");
}

#[test]
fn precompiled_code() {
    let cache_dir = tempfile::tempdir().unwrap();
    let config =
        RuntimeConfig { cache_dir: Some(cache_dir.path().into()), limits: limits(), max_instances: 1 };
    Runtime::new(config).unwrap().load(&component("misbehaving")).unwrap();
    let kept = std::fs::read_dir(cache_dir.path()).unwrap().next().unwrap().unwrap().path();
    // Without the checksum in front, this is what wasmtime wrote.
    let artefact = std::fs::read(kept).unwrap().split_off(32);
    assert_eq!(refused(&artefact), LoadError::Precompiled);
}

#[test]
fn a_malformed_component() {
    let whole = component("misbehaving");
    let error = refused(&whole[..whole.len() / 2]);
    assert!(matches!(error, LoadError::Malformed(_)), "{error}");
}

#[test]
fn a_component_that_exports_something_else() {
    let error = refused(&dummy(
        "other",
        "package acme:other@1.0.0; interface it { f: func(); } world other { export it; }",
    ));
    assert_eq!(error, LoadError::NotExported { exported: vec!["acme:other/it@1.0.0".into()] });
    assert!(error.to_string().contains("does not export `weir:handler/handler@0.1.0`"), "{error}");
    assert!(error.to_string().ends_with("it exports `acme:other/it@1.0.0`"), "{error}");
    let nothing = refused(b"\0asm\x0d\0\x01\0");
    assert!(nothing.to_string().ends_with("it exports nothing"), "{nothing}");
}

#[test]
fn a_handler_of_another_version() {
    let error = refused(&dummy_handler(|wit| wit.replace("weir:handler@0.1.0", "weir:handler@0.2.0")));
    assert_eq!(error, LoadError::OtherVersion { found: "weir:handler/handler@0.2.0".into() });
    let text = error.to_string();
    assert!(text.contains("exports `weir:handler/handler@0.2.0`"), "{text}");
    assert!(text.contains("accepts `weir:handler/handler@0.1.0`"), "{text}");
}

#[test]
fn a_handler_of_a_patch_of_the_version_gets_as_far_as_describe() {
    let error = refused(&dummy_handler(|wit| wit.replace("weir:handler@0.1.0", "weir:handler@0.1.7")));
    assert!(matches!(error, LoadError::Describe(_)), "{error}");
}

/// The text of the refusal, after a change to the contract.
fn shape(from: &str, to: &str) -> String {
    let bytes = dummy_handler(|wit| {
        assert!(wit.contains(from), "the contract has no `{from}` any more");
        wit.replace(from, to)
    });
    let error = refused(&bytes);
    assert!(matches!(error, LoadError::ExportShape(_)), "{error}");
    error.to_string()
}

#[test]
fn a_handler_of_another_shape() {
    let text = shape("describe: func() -> description;", "explain: func() -> description;");
    assert!(text.contains("describe"), "{text}");

    let text = shape("-> result<list<query-item>, rejection>;", "-> list<query-item>;");
    assert!(text.contains("boundary") && text.contains("expected `result` found `list`"), "{text}");

    let text = shape("commands: list<string>,", "command-names: list<string>,");
    assert!(text.contains("describe") && text.contains("named commands, found command-names"), "{text}");

    let text = shape("decide: func(cmd: command, widened: list<query-item>)", "decide: func(cmd: command)");
    assert!(text.contains("decide"), "{text}");
}

#[test]
fn a_handler_that_uses_the_network() {
    let error = refused(&component("sockets"));
    let LoadError::ForbiddenImports(imports) = &error else { panic!("{error}") };
    assert!(imports.iter().all(|name| name.starts_with("wasi:sockets/")), "{imports:?}");
    assert!(error.to_string().contains("`wasi:sockets/tcp@0.2."), "{error}");
    assert!(error.to_string().contains("which no handler may have: handlers are pure"), "{error}");
}

#[test]
fn imports_that_no_handler_may_have() {
    let root = importing("log: func(text: string)", "");
    assert_eq!(root, LoadError::ForbiddenImports(vec!["log".into()]));
    for (package, interface) in [
        ("acme:audit", "log@1.0.0"),
        ("wasi:http", "outgoing-handler@0.2.6"),
        ("wasi:cli", "environment@0.3.0"),
        ("wasi:cli", "run@0.2.6"),
    ] {
        let (name, version) = interface.split_once('@').unwrap();
        let import = format!("{package}/{interface}");
        let definition = format!("package {package}@{version} {{ interface {name} {{ f: func(); }} }}");
        assert_eq!(importing(&import, &definition), LoadError::ForbiddenImports(vec![import]));
    }
}

#[test]
fn an_import_of_another_shape() {
    let error = importing(
        "wasi:random/random@0.2.6",
        "package wasi:random@0.2.6 { interface random { get-random-u64: func() -> string; } }",
    );
    assert!(matches!(error, LoadError::ImportShape(_)), "{error}");
    assert!(error.to_string().contains("get-random-u64"), "{error}");
}

#[test]
fn allowed_imports_of_any_patch_get_as_far_as_describe() {
    let error = importing(
        "wasi:random/random@0.2.99",
        "package wasi:random@0.2.99 { interface random { get-random-u64: func() -> u64; unheard-of: func(); } }",
    );
    assert!(matches!(error, LoadError::Describe(_)), "{error}");
}

#[test]
fn a_description_that_fails() {
    let error = refused(&dummy_handler(|wit| wit));
    let LoadError::Describe(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.call, &failure.handler), (Call::Describe, &None));
    assert!(matches!(failure.kind, FailureKind::Trap(_)), "{failure}");
    let start = format!("the handler (version {}) failed in describe: it trapped: ", failure.version.short());
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn a_description_that_cannot_be() {
    let mut bytes = component("misbehaving");
    let name = b"misbehaving";
    while let Some(at) = bytes.windows(name.len()).position(|window| window == name) {
        bytes[at..at + name.len()].make_ascii_uppercase();
    }
    let LoadError::Nonsense(reason) = refused(&bytes) else { panic!("it was loaded") };
    assert!(reason.starts_with("its name is \"MISBEHAVING\", and a name is 1 to 100 of"), "{reason}");
}
