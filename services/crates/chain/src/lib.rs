//! Chain replication in a ring: one replica of one group, as a pure state machine.
//!
//! [`Replica::step`] takes an [`Event`] and the time, [`Replica::flush`] ends a round of events; both push
//! [`Command`]s for the shell (`services/replica`) or the simulator to carry out. Nothing in this crate
//! reads a socket, a disk, a clock or entropy. `docs/internals/chain.md` explains the protocol.
//!
//! Invariants, asserted in release too:
//! - a batch's index is its predecessor's plus one, its base offset its predecessor's end;
//! - nothing committed is ever cut;
//! - a replica's level never exceeds what it holds.

mod base;
mod command;
mod cut_off;
mod downstream;
mod head;
mod lag;
mod log;
mod read;
mod recover;
mod replica;
mod ring;
mod rounds;
mod sessions;
mod trim;
mod upstream;

pub use base::Base;
pub use command::{AppendRequest, Asked, ClientRef, Command, Event, Happened};
pub use lag::Lags;
pub use log::Log;
pub use read::{ReadError, ReadPage, ReadPiece};
pub use recover::RecoverError;
pub use replica::Replica;
pub use sessions::{Sessions, Verdict};
