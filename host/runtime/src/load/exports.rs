//! Whether a component exports the handler interface, in a version that this host accepts and with the functions
//! of the contract.

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower, ResourceAny,
};

use super::{LoadError, error};
use crate::bindings::{
    Command, CommandHandler, Decision, Description, HANDLER, HANDLER_VERSION, QueryItem, Rejection,
    SequencedEvent,
};
use crate::instance::State;

/// Exports beyond the contract are no harm: some toolchains add their own.
pub(super) fn check(component: &Component) -> Result<(), LoadError> {
    // Finds any compatible version, as instantiation will.
    if component.get_export_index(None, &*interface_name()).is_some() {
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

/// The contract's functions in an instance, or which of them has other types than the contract's and where.
///
/// The generated bindings make the same comparison without naming the function.
pub(super) fn bind(store: &mut Store<State>, instance: &Instance) -> Result<CommandHandler, String> {
    let Some(interface) = instance.get_export_index(&mut *store, None, &interface_name()) else {
        return Err("it is gone".into());
    };
    let mut functions = Functions { store, instance, interface };
    functions.compare::<(), (Description,)>("describe")?;
    functions.compare::<(Command,), (Result<Vec<QueryItem>, Rejection>,)>("boundary")?;
    functions.compare::<(), (ResourceAny,)>("[constructor]decision-model")?;
    functions.compare::<(ResourceAny, Vec<SequencedEvent>), ()>("[method]decision-model.apply")?;
    functions
        .compare::<(ResourceAny, Command, Vec<QueryItem>), (Decision,)>("[method]decision-model.decide")?;
    CommandHandler::new(store, instance).map_err(|error| error::causes(&error))
}

struct Functions<'a> {
    store: &'a mut Store<State>,
    instance: &'a Instance,
    interface: ComponentExportIndex,
}

impl Functions<'_> {
    fn compare<Params, Results>(&mut self, name: &str) -> Result<(), String>
    where
        Params: ComponentNamedList + Lower,
        Results: ComponentNamedList + Lift,
    {
        let Functions { store, instance, interface } = self;
        let Some(function) = instance.get_export_index(&mut **store, Some(interface), name) else {
            return Err(format!("there is no function `{name}`"));
        };
        match instance.get_typed_func::<Params, Results>(&mut **store, function) {
            Ok(_) => Ok(()),
            Err(mismatch) => Err(format!("in `{name}`, {}", mismatch_chain(&mismatch))),
        }
    }
}

/// Without the outermost cause, which says only that there is one.
fn mismatch_chain(mismatch: &wasmtime::Error) -> String {
    let causes: Vec<String> = mismatch.chain().skip(1).map(ToString::to_string).collect();
    causes.join(": ")
}

fn interface_name() -> String {
    format!("{HANDLER}@{HANDLER_VERSION}")
}
