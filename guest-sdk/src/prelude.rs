//! What a handler needs, in one line.

pub use crate::{
    Context, Decision, Handler, Id, Query, Recorded, Rejection, commands, events, export, reject, tag, widen,
};
