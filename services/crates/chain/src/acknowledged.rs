//! The part of the head's log, trims and ring passes that a replica has for good.

use quorate_types::Index;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    /// Batches, on stable storage in a persistent group.
    pub index: Index,
    /// Clients' trims, on stable storage in a persistent group.
    pub trim_index: Index,
    /// The last ring pass that has reached it.
    pub pass: u64,
}

impl Acknowledged {
    /// Bounds nothing when combined with another.
    pub const UNBOUNDED: Self = Self {
        index: Index::MAX,
        trim_index: Index::MAX,
        pass: u64::MAX,
    };

    /// The part that both have.
    pub fn common(self, other: Acknowledged) -> Acknowledged {
        Self {
            index: self.index.min(other.index),
            trim_index: self.trim_index.min(other.trim_index),
            pass: self.pass.min(other.pass),
        }
    }

    /// Whether it says something that `earlier` did not.
    pub fn is_update_of(self, earlier: Acknowledged) -> bool {
        self.index > earlier.index || (self.trim_index, self.pass) != (earlier.trim_index, earlier.pass)
    }
}
