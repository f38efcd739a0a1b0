//! Records that groups write to their server's disk, and recovery from them at a start. Pure: bytes in and out.
//!
//! - [`record`]: the kinds of records and their bytes, written and read in one place
//! - [`Places`]: the places of a group's batches
//! - [`Scan`]: turns records and holes of group logs and journal, in order, into the groups that the server holds
//!
//! The server (`services/replica/src/journal_port.rs`, `storage.rs`) and the simulator run the same code.

mod places;
pub mod record;
mod scan;
#[cfg(test)]
mod scan_tests;

pub use places::{Place, Places};
pub use record::{Durable, GroupRecord, UnknownRecord, classify};
pub use scan::{LogState, Recovered, RecoveredGroup, Scan};
