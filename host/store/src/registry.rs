//! The registry of handlers. To the store a component is bytes with a digest; what is in it is the runtime's
//! business.

use crate::{Error, Store};

/// A handler's version to be deployed. The caller has loaded and described it.
#[derive(Debug, Clone, Copy)]
pub struct HandlerVersion<'a> {
    /// The handler's name.
    pub handler: &'a str,
    /// The component's bytes.
    pub component: &'a [u8],
    /// The commands it handles.
    pub commands: &'a [String],
    /// The types of the events it writes.
    pub event_types: &'a [String],
}

/// How a deployment ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deployed {
    /// The version is active now; its id.
    Activated(i32),
    /// It was active already; its id.
    Unchanged(i32),
    /// Another handler has one of its commands. Nothing changed.
    CommandOwned {
        /// The command.
        command: String,
        /// The handler that has it.
        owner: String,
    },
}

/// A version that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveVersion {
    /// Names the version within this store.
    pub id: i32,
    /// The handler's name.
    pub handler: String,
    /// SHA-256 of the component.
    pub digest: Vec<u8>,
    /// The commands it handles.
    pub commands: Vec<String>,
}

impl ActiveVersion {
    /// The first twelve hexadecimal digits of the digest: enough for people to tell versions apart.
    pub fn short_digest(&self) -> String {
        self.digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Store {
    /// Adds a version to the registry, if it is new there, and makes it the active one of its handler.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn deploy(&self, version: HandlerVersion<'_>) -> Result<Deployed, Error> {
        let deploy = sqlx::query!(
            "SELECT status, version_id, command, owner FROM deploy($1, $2, $3, $4)",
            version.handler,
            version.component,
            version.commands,
            version.event_types
        )
        .fetch_one(self.control());
        let row = self.bounded(deploy).await?;
        match (row.status.as_deref(), row.version_id, row.command, row.owner) {
            (Some("activated"), Some(id), ..) => Ok(Deployed::Activated(id)),
            (Some("unchanged"), Some(id), ..) => Ok(Deployed::Unchanged(id)),
            (Some("owned"), _, Some(command), Some(owner)) => Ok(Deployed::CommandOwned { command, owner }),
            (status, ..) => Err(Error::Unexpected(format!("deploy() answered {status:?}"))),
        }
    }

    /// The active version of each handler.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn active_versions(&self) -> Result<Vec<ActiveVersion>, Error> {
        let list = sqlx::query_as!(
            ActiveVersion,
            "SELECT v.id, v.handler, v.digest, v.commands
                   FROM handlers h JOIN handler_versions v ON v.id = h.active_version ORDER BY h.name"
        )
        .fetch_all(self.control());
        self.bounded(list).await
    }

    /// The bytes of a version.
    ///
    /// # Errors
    /// Whatever the database says, also if there is no such version.
    pub async fn component(&self, id: i32) -> Result<Vec<u8>, Error> {
        let read = sqlx::query_scalar!(
            r#"SELECT component AS "component!" FROM handler_versions WHERE id = $1"#,
            id
        )
        .fetch_one(self.control());
        self.bounded(read).await
    }
}
