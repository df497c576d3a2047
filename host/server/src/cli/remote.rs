//! The host that `send`, `events`, `deploy` and `strategy` talk to, and which of its stores.

use std::{fmt::Write, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use ureq::{Agent, Body, http::Response};

/// Where a host listens, and is looked for, unless told otherwise.
pub(super) const DEFAULT_ADDRESS: &str = "127.0.0.1:8417";

#[derive(Args)]
pub(super) struct RemoteArgs {
    /// The host to talk to [default: http://127.0.0.1:8417]
    #[arg(long, global = true, env = "WEIR_URL", value_name = "URL")]
    url: Option<String>,
    /// The store, if the host serves several [default: the host's default store]
    #[arg(long, global = true, env = "WEIR_STORE", value_name = "NAME")]
    store: Option<String>,
}

/// Bytes of an answer: more than a handler may give.
pub(super) const ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// The problem details (RFC 9457) that a host answers with.
#[derive(Deserialize)]
pub(super) struct Problem {
    #[serde(default)]
    pub(super) status: u16,
    pub(super) title: String,
    pub(super) detail: String,
    /// The handler's code, if the handler has refused the command.
    pub(super) code: Option<String>,
    pub(super) outcome: Option<String>,
}

impl RemoteArgs {
    /// The address of a route. One below `/v1` is a store's, and is that of the store that was chosen.
    pub(super) fn address(&self, path: &str) -> String {
        let base = match &self.url {
            None => format!("http://{DEFAULT_ADDRESS}"),
            Some(url) if url.contains("://") => url.clone(),
            Some(address) => format!("http://{address}"),
        };
        let base = base.trim_end_matches('/');
        let store = self.store.as_ref().filter(|name| !name.is_empty());
        match (store, path.strip_prefix("/v1/")) {
            (Some(name), Some(route)) => format!("{base}/v1/stores/{}/{route}", encoded(name)),
            _ => format!("{base}{path}"),
        }
    }

    /// Makes sense of a request's result: an answer, a problem to show, or no host there.
    pub(super) fn answer(
        &self,
        result: Result<Response<Body>, ureq::Error>,
    ) -> anyhow::Result<Result<Response<Body>, Problem>> {
        let mut response = result.with_context(|| {
            format!(
                "no answer from a host at {}; is one running (weir dev)? else name it with --url",
                self.address("")
            )
        })?;
        if response.status().is_success() {
            return Ok(Ok(response));
        }
        let status = response.status();
        let text = response.body_mut().read_to_string().unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(problem) => Ok(Err(problem)),
            Err(_) => bail!("{} answered {status}, which is no answer of a weir host", self.address("")),
        }
    }
}

/// A client; `follow` waits for ever.
pub(super) fn agent(follow: bool) -> Agent {
    let timeout = (!follow).then_some(Duration::from_secs(120));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(5)))
        .timeout_global(timeout)
        .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// Percent-encodes what stands in a path or a query.
pub(super) fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
