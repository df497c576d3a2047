//! From bytes to a handler: every check that can be made before a command arrives.

mod container;
mod description;
mod error;
mod exports;
mod imports;

use wasmtime::component::Component;

use crate::bindings::{CommandHandlerPre, Description};
use crate::failure::Call;
use crate::handler::Handler;
use crate::instance::{Identity, Instance, State};
use crate::pure_wasi::World;
use crate::runtime::Runtime;
use crate::version::Version;
pub use error::LoadError;

impl Runtime {
    /// Checks and compiles a component and lets it describe itself. It takes time: up to seconds for a large
    /// component whose compiled code is not kept.
    ///
    /// # Errors
    ///
    /// The first of these that the component fails: it is a component; it compiles; it exports the handler
    /// interface; it imports nothing a handler may not have; its functions have the types of the contract;
    /// its description is one.
    pub fn load(&self, component: &[u8]) -> Result<Handler, LoadError> {
        container::check(component, self.limits())?;
        let version = Version::of(component);
        let component = self
            .compiled()
            .component(self.engine(), &version, component)
            .map_err(|error| LoadError::Malformed(error::causes(&error)))?;
        exports::check(&component)?;
        let component = self.link(&component)?;
        let description = self.describe(version, &component)?;
        description::check(&description).map_err(LoadError::Nonsense)?;
        Ok(Handler::new(version, description, component, self.limits().clone()))
    }

    /// Joins the imports to their stubs and finds the exported functions.
    fn link(&self, component: &Component) -> Result<CommandHandlerPre<State>, LoadError> {
        let linker = imports::linker(component)?;
        let instance = linker
            .instantiate_pre(component)
            .map_err(|error| LoadError::ImportShape(error::import_mismatch(&error)))?;
        CommandHandlerPre::new(instance).map_err(|error| LoadError::ExportShape(error::causes(&error)))
    }

    /// Makes an instance, compares the types of its functions with the contract's, and lets it describe itself.
    fn describe(
        &self,
        version: Version,
        component: &CommandHandlerPre<State>,
    ) -> Result<Description, LoadError> {
        let identity = Identity { name: None, version };
        let world = World::without_command(self.limits());
        let mut instance = Instance::new(self.engine(), identity, self.limits(), world);
        let bindings = instance.call(Call::Start, |store| {
            let exports = component.instance_pre().instantiate(&mut *store)?;
            Ok(exports::bind(store, &exports))
        })?;
        let bindings = bindings.map_err(LoadError::ExportShape)?;
        let description =
            instance.call(Call::Describe, |store| bindings.weir_handler_handler().call_describe(store))?;
        Ok(description)
    }
}
