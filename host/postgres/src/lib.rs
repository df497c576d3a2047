//! A private PostgreSQL server: the programs it needs are found on the machine or fetched, and it runs
//! beside the project that asked for it.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_postgres::{Binaries, Server, Settings};
//!
//! let mut say = |line: &str| eprintln!("{line}");
//! let binaries = Binaries::find_or_get(&mut say)?;
//! let settings = Settings { dir: ".weir/postgres".into(), durable: true, extra: Vec::new() };
//! let server = Server::start(&binaries, &settings, &mut say)?;
//! println!("{}", server.url("postgres"));
//! server.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything here blocks. Call it from a thread that may wait.

#[cfg(not(unix))]
compile_error!("weir-postgres runs on Linux and macOS; on Windows use WSL, or a server of your own");

mod account;
mod binaries;
mod get;

mod cluster;
mod conf;
mod place;
mod postmaster;
mod server;

pub use binaries::{Binaries, OLDEST_MAJOR, Unfit};
pub use get::GetError;
pub use server::{Server, Settings, StartError, Stopped};
