//! Whether a component exports the handler interface, in a version that this host accepts.

use wasmtime::component::Component;

use super::LoadError;
use crate::bindings::{HANDLER, HANDLER_VERSION};

/// Exports beyond the contract are no harm: some toolchains add their own.
pub(super) fn check(component: &Component) -> Result<(), LoadError> {
    // Finds any compatible version, as instantiation will.
    if component.get_export_index(None, &*format!("{HANDLER}@{HANDLER_VERSION}")).is_some() {
        return Ok(());
    }
    let ty = component.component_type();
    let exported: Vec<String> = ty.exports(component.engine()).map(|(name, _)| name.to_owned()).collect();
    let other_version = |name: &&String| {
        name.strip_prefix(HANDLER).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    };
    Err(match exported.iter().find(other_version) {
        Some(found) => LoadError::OtherVersion { found: found.clone() },
        None => LoadError::NotExported { exported },
    })
}
