//! Events that the journal reports to its submitters.

use std::sync::Arc;

use crate::record::Lsn;

/// A report to one submitter, on one of the journal's threads.
#[derive(Debug, Clone)]
pub enum Event {
    /// This submitter's records up to this tag are on stable storage.
    Durable { tag: u64, lsn: Lsn },
    /// A submission was refused as busy or for a full disk: try again.
    Room,
    /// No further segment can be prepared. Prepared space is still used; then follows `SubmitError::DiskFull`.
    DiskFull { reason: Arc<str> },
    /// Segments can be prepared again.
    DiskFree,
    /// The journal failed for good: nothing more becomes durable in this process.
    Failed { reason: Arc<str> },
}

/// Receives [`Event`]s; every `Fn(Event)` is one.
pub trait Completion: Send + Sync {
    fn notify(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> Completion for F {
    fn notify(&self, event: Event) {
        self(event);
    }
}
