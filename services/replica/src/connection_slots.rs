//! Places for client connections: the server has so many, whatever their shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_types::limits::CONNECTIONS_MAX;

#[derive(Default)]
pub struct ConnectionSlots(Arc<AtomicUsize>);

/// One of the client connections that the server may have; given back when it is dropped.
pub struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlots {
    /// A place for one more client's connection, unless there are as many as there may be.
    pub fn take(&self) -> Option<ConnectionSlot> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let slot = ConnectionSlot(self.0.clone());
        (before < CONNECTIONS_MAX).then_some(slot)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
