//! An isolated head reaches neither its chain nor the coordinator: another may be the head by now. Clients that wait
//! here would wait until their deadlines, so it sends them to look for the head elsewhere. So does one that knows of a later
//! head: the order itself waits until this server's disk has written its place, which may take seconds.
//!
//! Neither of the two alone isolates it. Without the coordinator a chain goes on. A chain that stalls is the coordinator's to mend,
//! which then configures this replica. A ring with nothing under way is idle, not stalled, while its successor follows.

use quorate_types::limits::RING_STALL_MS;
use quorate_types::{Index, Micros};

#[derive(Debug, Default)]
pub(crate) struct IsolationWatch {
    is_coordinator_silent: bool,
    /// The ring's progress when a tick first found more under way, and the time of that tick.
    stalled: Option<(RingProgress, Micros)>,
    judged_at: Micros,
    is_isolated: bool,
    is_deposed: bool,
}

/// The acknowledgements of the chain as one value. A repeated acknowledgement is no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingProgress {
    pub is_agreed: bool,
    pub acknowledged_index: Index,
    pub pass: u64,
    pub trim_index: Index,
}

impl IsolationWatch {
    pub fn begin_epoch(&mut self) {
        (self.stalled, self.is_isolated, self.is_deposed) = (None, false, false);
    }

    pub fn set_coordinator_silent(&mut self, is_silent: bool) {
        self.is_coordinator_silent = is_silent;
    }

    pub fn is_isolated(&self) -> bool {
        self.is_isolated || self.is_deposed
    }

    /// An order about a later head waits for the disk.
    pub fn depose(&mut self) {
        self.is_deposed = true;
    }

    /// The tick since which the ring has made no progress, though something is under way or the successor is gone.
    pub fn stalled_since(&self) -> Option<Micros> {
        self.stalled.map(|(_, since)| since)
    }

    /// At each tick. A stall is measured a tick too short, never too long.
    pub fn judge(&mut self, now: Micros, progress: RingProgress, is_awaited: bool) {
        // A process that stood still itself has waited for nobody: it has not read yet what has come meanwhile.
        let has_paused = now.saturating_sub(self.judged_at) >= RING_STALL_MS * 1_000 / 2;
        self.judged_at = now;
        self.stalled = match self.stalled {
            _ if !is_awaited => None,
            Some(stalled) if stalled.0 == progress && !has_paused => Some(stalled),
            _ => Some((progress, now)),
        };
        let is_long = |(_, since)| now.saturating_sub(since) >= RING_STALL_MS * 1_000;
        self.is_isolated = self.is_coordinator_silent && self.stalled.is_some_and(is_long);
    }
}
