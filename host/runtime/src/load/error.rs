use crate::bindings::{HANDLER, HANDLER_VERSION};
use crate::failure::{Bytes, Failure};

/// Why a file is not a handler, in words for whoever built it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// More bytes than [`crate::Limits::component_bytes`].
    #[error("the component has {}, more than the {} that are allowed", Bytes(*.size), Bytes(*.limit))]
    TooLarge {
        /// What it has.
        size: usize,
        /// What it may have.
        limit: usize,
    },
    /// A text, with its first line: the source instead of the product.
    #[error("this is a text file, not a WebAssembly component; it begins: {0}")]
    Text(String),
    /// Some other kind of file.
    #[error("this is not WebAssembly: a component begins with the bytes `00 61 73 6d`")]
    NotWasm,
    /// A core module.
    #[error(
        "this is a core WebAssembly module, not a component; build with `--target wasm32-wasip2`, or make a \
         component of it with `wasm-tools component new module.wasm -o component.wasm`"
    )]
    CoreModule,
    /// Native code that wasmtime once compiled.
    #[error(
        "this was compiled by wasmtime ahead of time, and such files are never loaded, because their code \
         could do anything; deploy the component itself"
    )]
    Precompiled,
    /// It does not validate or compile, for the reason given.
    #[error("the component is malformed, or uses what handlers cannot use: {0}")]
    Malformed(String),
    /// It exports the handler interface in a version that this host does not know.
    #[error(
        "the component exports `{found}`, but this host accepts `{HANDLER}@{HANDLER_VERSION}`; rebuild it \
         against that version"
    )]
    OtherVersion {
        /// The export it has.
        found: String,
    },
    /// It does not export the handler interface. With the names of what it exports.
    #[error(
        "the component does not export `{HANDLER}@{HANDLER_VERSION}`, so it is no command handler; it exports {}",
        list(.exported)
    )]
    NotExported {
        /// What it exports instead.
        exported: Vec<String>,
    },
    /// It exports the interface with another function or type than the contract has.
    #[error(
        "the component's `{HANDLER}` is not the one of the contract: {0}; rebuild it against the contract's WIT"
    )]
    ExportShape(String),
    /// It imports what a handler may not have.
    #[error(
        "the component imports {}, which no handler may have: handlers are pure, they compute and do nothing \
         else. Remove what uses it; if only the toolchain does, build without it (`componentize-py componentize \
         -s`, `componentize-qjs --stub-wasi`)",
        list(.0)
    )]
    ForbiddenImports(Vec<String>),
    /// It imports an allowed interface with another function or type than WASI has.
    #[error("the component imports a WASI interface that is not the one of WASI 0.2: {0}")]
    ImportShape(String),
    /// `describe` failed.
    #[error(transparent)]
    Describe(#[from] Failure),
    /// `describe` described no handler that can be used, for the reason given.
    #[error("the handler describes itself in a way that cannot be: {0}")]
    Nonsense(String),
}

fn list(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// All causes of an error of wasmtime's, outermost first, in one line.
pub(super) fn causes(error: &wasmtime::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The causes of an import that does not match, without what wasmtime says of its linker.
pub(super) fn import_mismatch(error: &wasmtime::Error) -> String {
    causes(error).replace(", but a matching implementation was not found in the linker", "")
}
