//! One coordinator, pure: `take(now, event)`, then `take_commands(now)`. It is a member of the quorum, and decides while it
//! leads.
//!
//! - `core`: events, each to its part
//! - `standing`: what the member is at present, with the state that its agreed log leads to
//! - `leading`: the engine of a term, and the batch that is not agreed yet
//! - `start`: a process's own configuration: settings, cost profile, placement policy
//! - `alone`: the last member, when the disks of the others are lost
//! - `batch`: commands of the log as one entry
//! - `io`: events and commands
//!
//! The engine changes its state before a batch is agreed. So nothing that follows from the batch leaves before, and no input
//! is taken in meanwhile. A leader that loses its term with such a batch open reads the state again, from its disk.

mod alone;
mod batch;
mod core;
mod io;
mod leading;
mod standing;
mod start;

pub use self::core::{Coordinator, SnapshotDue};
pub use alone::{Alone, alone};
pub use batch::{decode_batch, encode_batch, read_state, secrets_in};
pub use io::{Command, Ending, Event};
pub use start::Start;
