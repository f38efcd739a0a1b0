//! Burst capacity as it is granted to a group.

use quorate_types::{Epoch, Micros};

/// The rate that a group may use above its reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    pub epoch: Epoch,
    /// Requests of the declared size.
    pub rate_per_s: u64,
    /// On the shell's clock.
    pub until_us: Micros,
}
