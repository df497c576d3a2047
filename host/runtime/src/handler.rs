use std::fmt;
use std::sync::Arc;

use crate::bindings::{Command, CommandHandlerPre, Description};
use crate::decide::Deciding;
use crate::failure::{Answer, Call, Failure, FailureKind};
use crate::instance::{Identity, Instance, State};
use crate::limits::Limits;
use crate::pure_wasi::World;
use crate::version::Version;

/// A handler that was checked and is ready to decide. Clones share the compiled code, which goes with the last
/// of them.
#[derive(Clone)]
pub struct Handler {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    version: Version,
    description: Description,
    component: CommandHandlerPre<State>,
    limits: Limits,
}

impl Handler {
    /// `description` was checked.
    pub(crate) fn new(
        version: Version,
        description: Description,
        component: CommandHandlerPre<State>,
        limits: Limits,
    ) -> Self {
        let name = description.name.as_str().into();
        Handler { shared: Arc::new(Shared { name, version, description, component, limits }) }
    }

    /// The handler's name, as it describes itself.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Which version of it this is.
    pub fn version(&self) -> &Version {
        &self.shared.version
    }

    /// The names of the commands it handles: at least one, all different.
    pub fn commands(&self) -> &[String] {
        &self.shared.description.commands
    }

    /// The types of the events it writes.
    pub fn event_types(&self) -> &[String] {
        &self.shared.description.event_types
    }

    /// The failure of a handler whose answer to `call` breaks the contract in a way that shows only when its instance is
    /// gone.
    pub fn nonsense(&self, call: Call, reason: impl Into<String>) -> Failure {
        Failure {
            handler: Some(self.name().to_owned()),
            version: self.shared.version,
            call,
            kind: FailureKind::Answer(Answer::Nonsense(reason.into())),
            stderr: String::new(),
        }
    }

    /// Makes a fresh instance for one attempt at `command`.
    ///
    /// # Errors
    ///
    /// The guest's start function failed, or there are as many instances as there can be.
    pub fn begin(&self, command: &Command) -> Result<Deciding, Failure> {
        let Shared { name, version, component, limits, .. } = &*self.shared;
        let identity = Identity { name: Some(name.clone()), version: *version };
        let world = World::of_command(command, limits);
        let mut instance = Instance::new(component.engine(), identity, limits, world);
        let bindings = instance.call(Call::Start, |store| component.instantiate(store))?;
        Ok(Deciding::new(self.clone(), command.clone(), instance, bindings))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("name", &self.name()).field("version", self.version()).finish()
    }
}
