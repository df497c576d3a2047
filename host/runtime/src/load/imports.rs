//! What a component may import, and the linker that satisfies it.

use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{Component, Linker, LinkerInstance};

use super::{LoadError, error};
use crate::instance::State;
use crate::pure_wasi::{self, Define};

/// A linker with what `component` imports, under the very names it uses, if it may import all of it.
pub(super) fn linker(component: &Component) -> Result<Linker<State>, LoadError> {
    let engine = component.engine();
    let mut linker = Linker::new(engine);
    // A stub takes the place of the trap that is there first.
    linker.allow_shadowing(true);
    let mut forbidden = Vec::new();
    for (name, import) in component.component_type().imports(engine) {
        match (import.ty, pure_wasi::interface(name)) {
            (ComponentItem::ComponentInstance(wanted), Some(define)) => linker
                .instance(name)
                .and_then(|mut to| link(&mut to, name, &wanted, define, component))
                .map_err(|error| LoadError::ImportShape(error::causes(&error)))?,
            // The contract's own types, for one: names only, there is nothing to call.
            (ComponentItem::ComponentInstance(wanted), None) if only_types(&wanted, component) => {}
            _ => forbidden.push(name.to_owned()),
        }
    }
    if forbidden.is_empty() { Ok(linker) } else { Err(LoadError::ForbiddenImports(forbidden)) }
}

/// Resources first, then a trap for every function that is wanted, then the stubs of those that there are.
fn link(
    to: &mut LinkerInstance<'_, State>,
    import: &str,
    wanted: &ComponentInstance,
    define: Define,
    component: &Component,
) -> wasmtime::Result<()> {
    for (name, item) in wanted.exports(component.engine()) {
        match item.ty {
            ComponentItem::Resource(_) => {
                if let Some(resource) = pure_wasi::resource(name) {
                    // Nothing stands behind a handle, so there is nothing to drop.
                    to.resource(name, resource, |_, _| Ok(()))?;
                }
            }
            ComponentItem::ComponentFunc(_) => {
                let (import, function) = (import.to_owned(), name.to_owned());
                to.func_new(name, move |_, _, _, _| Err(pure_wasi::trap(&import, &function)))?;
            }
            _ => {}
        }
    }
    define(to)
}

fn only_types(wanted: &ComponentInstance, component: &Component) -> bool {
    wanted.exports(component.engine()).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
}
