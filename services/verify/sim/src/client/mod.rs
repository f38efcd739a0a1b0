//! Clients as `sdk/contract/wire.md` describes them, each with a connection of its own.
//!
//! - [`writer`]: appends in sessions, retries across heads, asks for the tail, trims; [`batches`]: what it appends
//! - [`reader`]: single reads and subscriptions, at any replica
//! - [`connection`]: a client's end of its connection
//! - [`token`]: what a client may do, as its token says it

mod batches;
mod connection;
mod reader;
mod token;
mod writer;

pub use connection::{Connection, ToClient, Who};
pub use reader::Reader;
pub use token::permission_of;
pub use writer::{Habit, Writer};

/// How long a client waits for the answer to an ATTACH.
const ATTACH_TIMEOUT_US: quorate_types::Micros = 400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Attaching,
    Ready,
}
