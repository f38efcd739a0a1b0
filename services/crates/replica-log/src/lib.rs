//! What groups write to their server's disk, and what a server finds there when it starts. Pure: bytes in and out.
//!
//! - [`record`]: the kinds of records and their bytes, written and read in one place
//! - [`Places`]: where a group's batches lie
//! - [`Scan`]: records and holes of group logs and journal, in order, to the groups that the server holds
//!
//! The server (`services/replica/src/disk.rs`, `storage.rs`) and the simulator run the same.

mod places;
pub mod record;
mod scan;
#[cfg(test)]
mod scan_tests;

pub use places::{Place, Places};
pub use record::{Durable, Entry, Foreign, classify};
pub use scan::{Recovered, RecoveredGroup, Scan, State};

/// Whether a replica in this role has, by the protocol, all that the chain has: one that was damaged no longer is.
pub fn is_whole(role: quorate_types::Role) -> bool {
    use quorate_types::Role;
    !matches!(role, Role::None | Role::Learner)
}
