//! Sets a store up, or brings it up to date.

use sqlx::{
    Connection, PgConnection,
    migrate::{MigrateError as SqlxMigrateError, Migrator},
};

use crate::{StoreConfig, connect::SchemaName, error::classify};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// Why a store could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// See [`crate::Error`].
    #[error(transparent)]
    Store(#[from] crate::Error),
    /// Someone with a newer program was here before.
    #[error(
        "the store in schema \"{schema}\" is of a newer version (it has migration {version}, this program ends with \
         {newest}): use a newer weir, or another database or schema"
    )]
    Newer {
        /// Where.
        schema: String,
        /// The first migration that this program does not know.
        version: i64,
        /// The last one that it does.
        newest: i64,
    },
    /// A migration was changed after it was applied, or failed half-way.
    #[error("the store in schema \"{schema}\" can't be migrated: {reason}")]
    Failed {
        /// Where.
        schema: String,
        /// As the migrator puts it.
        reason: String,
    },
}

/// Creates the schema if it is missing and applies the migrations that it lacks. Several may try at once: one
/// does it, the others wait. Returns how many migrations the store has now.
///
/// # Errors
/// If the database can't be reached or refuses, or the store is of a newer version.
pub async fn migrate(config: &StoreConfig) -> Result<usize, MigrateError> {
    let mut connection = connect(config).await?;
    let schema = config.schema.as_str();
    // The name needs no quotes: SchemaName sees to that. IF NOT EXISTS alone can still lose a race.
    let create = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
    if let Err(error) = sqlx::raw_sql(sqlx::AssertSqlSafe(create)).execute(&mut connection).await {
        let raced = matches!(&error, sqlx::Error::Database(e) if e.is_unique_violation());
        if !raced {
            return Err(classify(error).into());
        }
    }
    let result = MIGRATOR.run(&mut connection).await;
    let _ = connection.close().await;
    result.map_err(|error| explain(error, &config.schema))?;
    Ok(MIGRATOR.iter().count())
}

/// Checks that the store has exactly the migrations that this program knows.
///
/// # Errors
/// [`crate::Error::NotMigrated`] if it lacks some, [`MigrateError::Newer`] if it has more.
pub async fn check_migrated(config: &StoreConfig) -> Result<(), MigrateError> {
    let mut connection = connect(config).await?;
    let applied: Result<Vec<i64>, _> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version")
            .fetch_all(&mut connection)
            .await;
    let _ = connection.close().await;
    let applied = applied.map_err(classify)?;
    if let Some(version) = applied.iter().copied().find(|version| !MIGRATOR.version_exists(*version)) {
        return Err(explain(SqlxMigrateError::VersionMissing(version), &config.schema));
    }
    if applied.len() < MIGRATOR.iter().count() {
        return Err(crate::Error::NotMigrated.into());
    }
    Ok(())
}

async fn connect(config: &StoreConfig) -> Result<PgConnection, crate::Error> {
    // Migrations may take longer than a command may.
    let options = config.options()?.options([("statement_timeout", "0"), ("lock_timeout", "60000")]);
    match tokio::time::timeout(config.deadline, PgConnection::connect_with(&options)).await {
        Ok(connection) => connection.map_err(classify),
        Err(_) => Err(crate::Error::Unavailable(format!("no answer within {:?}", config.deadline))),
    }
}

fn explain(error: SqlxMigrateError, schema: &SchemaName) -> MigrateError {
    let schema = schema.as_str().to_owned();
    match error {
        SqlxMigrateError::VersionMissing(version) => {
            let newest = MIGRATOR.iter().map(|m| m.version).max().unwrap_or_default();
            MigrateError::Newer { schema, version, newest }
        }
        SqlxMigrateError::Execute(error) => MigrateError::Store(classify(error)),
        other => MigrateError::Failed { schema, reason: other.to_string() },
    }
}
