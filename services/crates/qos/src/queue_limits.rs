//! Bounds of the queue in front of a head.

use quorate_types::{Micros, limits};

/// Bounds of one group's queue. Beyond any of them a request is throttled.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    pub bytes_max: u64,
    pub batches_max: usize,
    pub wait_us_max: Micros,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            bytes_max: limits::QUEUE_BYTES_MAX,
            batches_max: limits::QUEUE_BATCHES_MAX,
            wait_us_max: limits::QUEUE_WAIT_MS_MAX * 1_000,
        }
    }
}

impl QueueLimits {
    fn times(self, eighths: u64) -> Self {
        Self {
            bytes_max: self.bytes_max / 8 * eighths,
            batches_max: self.batches_max / 8 * eighths as usize,
            ..self
        }
    }

    /// Half of the queue is for requests that are owed, …
    pub(crate) fn reserved(self) -> Self {
        self.times(4)
    }

    /// … and some of it for others. Between the two is room for requests that pass a moment late.
    pub(crate) fn for_others(self) -> Self {
        self.times(3)
    }

    /// A head that is not late takes what it owes, even above its bounds, and no more than this.
    pub(crate) fn at_most(self) -> Self {
        self.times(16)
    }

    /// Whether a queue has no room for one more request of so many bytes. One request finds room, however large, if
    /// nothing else waits.
    pub fn is_full(&self, waiting: usize, waiting_bytes: u64, bytes: u64) -> bool {
        waiting >= self.batches_max || (waiting > 0 && waiting_bytes.saturating_add(bytes) > self.bytes_max)
    }
}
