//! Typed command handlers for Weir, as WebAssembly components.
//!
//! A handler declares, for each command, the events that the decision on it depends on: a [`Query`] over event
//! types and tags, the boundary. Weir shows it those events and appends what it decides, unless another event
//! that matches the boundary was recorded in between.
//!
//! A whole handler:
//!
//! ```
//! use std::collections::BTreeSet;
//! use weir_guest::prelude::*;
//!
//! commands! { enum Command { ClaimUsername { username: Id } } }
//! events! { enum Event: EventType { UsernameClaimed { username: Id } tags [tag("username", username)] } }
//!
//! #[derive(Default)]
//! struct Usernames(BTreeSet<Id>);
//!
//! export!(Usernames);
//!
//! impl Handler for Usernames {
//!     const NAME: &'static str = "usernames";
//!     type Command = Command;
//!     type Event = Event;
//!
//!     fn boundary(Command::ClaimUsername { username }: &Command, _: &Context) -> Result<Query, Rejection> {
//!         Ok(Query::new().item([EventType::UsernameClaimed], [tag("username", username)]))
//!     }
//!
//!     fn apply(&mut self, Event::UsernameClaimed { username }: Event, _: &Recorded) {
//!         self.0.insert(username);
//!     }
//!
//!     fn decide(&self, Command::ClaimUsername { username }: Command, _: &Context) -> Decision<Event> {
//!         if self.0.contains(&username) {
//!             return reject("username-claimed", format!(r#"Username "{username}" is claimed"#));
//!         }
//!         Ok(vec![Event::UsernameClaimed { username }])
//!     }
//! }
//! #
//! # use weir_guest::testing::Scenario;
//! # let username = || Id::new("ada").unwrap();
//! # let claim = || Command::ClaimUsername { username: username() };
//! # let claimed = || Event::UsernameClaimed { username: username() };
//! # Usernames::given([]).when(claim()).then([claimed()]);
//! # Usernames::given([claimed()])
//! #     .when(claim())
//! #     .then_rejected("username-claimed", r#"Username "ada" is claimed"#);
//! ```
//!
//! It becomes a component when its crate is a `cdylib` and is built for `wasm32-wasip2`. [`testing`] runs it
//! natively, against examples. [`commands!`] and [`events!`] only save typing: a command is any enum that serde
//! reads, and [`Events`] can be implemented by hand. Below all of it lies the [`contract`].

mod commands;
mod component;
pub mod contract;
mod events;
mod handler;
mod id;
pub mod prelude;
mod query;
mod tag;
pub mod testing;
mod variant;

pub use component::{Component, Model};
pub use contract::Rejection;
pub use events::Events;
pub use handler::{Context, Decision, Handler, Otherwise, Recorded, reject, widen};
pub use id::{Id, InvalidId};
pub use query::Query;
pub use serde;
pub use tag::{Tag, tag};
