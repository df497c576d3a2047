//! The further stores that a host serves beside the default one.

use anyhow::{Context, bail};
use clap::Args;
use weir_store::{SchemaName, StoreConfig};

#[derive(Args, Clone)]
pub(super) struct FurtherStoresArgs {
    /// A further store: the name of its schema, and the database if it is another; may be repeated. In the
    /// variable they are separated by commas (a comma within a URL is %2C)
    // Text, not a type of its own: clap shows a value that it can't parse, and a URL may have a password in it.
    #[arg(
        long = "store",
        env = "WEIR_STORES",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "NAME[=URL]"
    )]
    stores: Vec<String>,
}

impl FurtherStoresArgs {
    /// The default store and then the further ones, which are in its database unless they name another, and are
    /// talked to like it.
    pub(super) fn with_default(&self, default: &StoreConfig) -> anyhow::Result<Vec<StoreConfig>> {
        let mut configs = vec![default.clone()];
        // A variable that is set to nothing, and a comma at the end, name none.
        for store in self.stores.iter().map(|store| store.trim()).filter(|store| !store.is_empty()) {
            let (name, url) = match store.split_once('=') {
                Some((name, url)) => (name, Some(url)),
                None => (store, None),
            };
            if name.contains([':', '/', '@']) {
                bail!("a further store (--store, WEIR_STORES) has a URL and no name: it looks like NAME=URL");
            }
            let schema: SchemaName =
                name.parse().map_err(anyhow::Error::msg).context("a further store (--store, WEIR_STORES)")?;
            if url == Some("") {
                bail!("the store \"{name}\" has an empty URL: leave the = out if it is in the same database");
            }
            if schema == default.schema {
                bail!("the store \"{name}\" is named twice: it is the default one (--schema) already");
            }
            if configs.iter().any(|config| config.schema == schema) {
                bail!("the store \"{name}\" is named twice: each needs a name, a schema's, of its own");
            }
            let url = url.map_or_else(|| default.url.clone(), str::to_owned);
            configs.push(StoreConfig { url, schema, ..default.clone() });
        }
        Ok(configs)
    }
}
