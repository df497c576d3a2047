//! `weir migrate`.

use clap::Args;

use super::DatabaseArgs;

#[derive(Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) async fn run(args: MigrateArgs) -> anyhow::Result<()> {
    let config = args.database.store.config(args.database.database_url);
    let version = weir_store::migrate(&config).await?;
    println!("the store in schema \"{}\" is up to date ({version} migrations)", config.schema.as_str());
    Ok(())
}
