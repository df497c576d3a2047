//! `weir migrate`.

use anyhow::Context;
use clap::Args;
use weir_store::StoreConfig;

use super::DatabaseArgs;

#[derive(Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) async fn run(args: MigrateArgs) -> anyhow::Result<()> {
    for config in args.database.store.configs(args.database.database_url)? {
        let version = migrate(&config).await?;
        println!("the store in schema \"{}\" is up to date ({version} migrations)", config.schema.as_str());
    }
    Ok(())
}

/// Brings a store up to date, and returns how many migrations it has then.
pub(super) async fn migrate(config: &StoreConfig) -> anyhow::Result<usize> {
    let migrated = weir_store::migrate(config).await;
    migrated.with_context(|| format!("store \"{}\"", config.schema.as_str()))
}
