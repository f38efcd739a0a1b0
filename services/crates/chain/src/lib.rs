//! Chain replication in a ring: one replica of one group, as a pure state machine.
//!
//! [`Replica::step`] takes one [`ReplicaEvent`] and the time. [`Replica::flush`] ends a run of events. Both push
//! [`ReplicaCommand`]s for the shell (`services/crates/group`) to carry out. Nothing here reads a socket, a disk,
//! a clock or entropy. `docs/internals/chain.md` explains the protocol.
//!
//! [`Replica`] composes parts and dispatches events to them. Each part owns the state of one concern, and gets no more
//! of the others than its methods name:
//! - `log`: base, batches, session table
//! - `local_log`: the log with what is durable, committed and being truncated here
//! - `recovery`: rebuilding it from the journal
//! - `membership`: role, neighbours and epoch, from the configuration
//! - `upstream`: agreeing with the predecessor, following it, acknowledging to the head
//! - `downstream`: feeding the successor, catching up a learner, commit notices
//! - `head`: ordering appends, the ring, its passes, refusals that wait, isolation
//! - `trim`: the trim point, and clients that wait for a trim
//! - `ages`: which batches are older than is retained
//! - `lag`: how far the disk and the successor are behind
//! - `read`: pages for readers
//!
//! Invariants, asserted in release too:
//! - a batch's index is its predecessor's plus one, its base offset its predecessor's end;
//! - no committed batch is truncated;
//! - a replica acknowledges no index beyond its log.

mod acknowledged;
mod ages;
mod command;
mod downstream;
mod head;
mod lag;
mod local_log;
mod log;
mod membership;
mod read;
mod recovery;
mod replica;
mod trim;
mod upstream;

pub use command::{AppendRequest, Arrival, Asked, ClientRef, Happened, ReplicaCommand, ReplicaEvent};
pub use lag::Lags;
pub use log::{Base, Log, Sessions, Verdict};
pub use read::{ReadError, ReadPage, ReadPiece};
pub use recovery::RecoverError;
pub use replica::Replica;
