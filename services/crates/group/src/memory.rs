//! The memory that a group holds, as admission counts it: its own, and its part of the shard's [`Pool`].

use crate::pool::Pool;
use crate::turn::Turn;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The memory that it was admitted with; none before its first configuration.
    own_bytes: u64,
    /// The memory that it holds beyond that, as the pool knows it.
    pooled_bytes: u64,
}

impl Memory {
    pub fn admit(&mut self, own_bytes: u64) {
        self.own_bytes = own_bytes;
    }

    pub fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    pub fn pooled_bytes(&self) -> u64 {
        self.pooled_bytes
    }

    /// The pool is full, and this group is among those that use it.
    pub fn is_short(&self, turn: &Turn) -> bool {
        self.pooled_bytes > 0 && turn.pool.is_full()
    }

    /// Tells the pool what a group that holds so much holds beyond its own.
    pub fn note(&mut self, held_bytes: u64, pool: &mut Pool) {
        let pooled_bytes = held_bytes.saturating_sub(self.own_bytes);
        pool.note(self.pooled_bytes, pooled_bytes);
        self.pooled_bytes = pooled_bytes;
    }

    /// The group leaves the shard.
    pub fn give_back(&mut self, pool: &mut Pool) {
        pool.note(std::mem::take(&mut self.pooled_bytes), 0);
    }
}
