//! Links to the other coordinators: one TLS connection in each direction, JSON hellos, then messages of the quorum in
//! length-prefixed frames (`docs/internals/quorum.md`).
//!
//! - `hello`: the first frames, and who this coordinator is
//! - `links`: connections to others, which send
//! - `listener`: connections from others, which receive
//! - `senders`: a member's newest process, and its newest connection
//! - `begin`: whether there is a fleet to join, or one to begin
//! - `join`: the wish to be taken in, or to be known elsewhere
//! - `ring_offer`, `ring_thread`: links whose messages go by one-sided writes
//! - `side`: all of it, made at the start

mod begin;
mod hello;
mod join;
mod links;
mod listener;
mod ring_offer;
mod ring_thread;
mod senders;
mod side;

pub use begin::is_new_fleet;
pub use hello::{Contact, JoinAnswer};
pub use links::Links;
pub use listener::FromMember;
pub use side::{ForTask, Side};
