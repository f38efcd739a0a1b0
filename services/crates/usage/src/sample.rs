//! Samples: a shard's counts of a group, each second.

use quorate_types::{Epoch, GroupId, Micros, Role};

use crate::Histogram;

/// A group's counters at one moment. All but `latency` are cumulative, so a sample that is never taken loses nothing: the
/// next one includes its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub group: GroupId,
    /// The time at which the group came to this server. Another value means that its totals restarted at zero.
    pub since_us: Micros,
    pub epoch: Epoch,
    pub role: Role,
    /// Wall clock.
    pub at_ms: u64,
    /// The time up to which `active_us` and `paused_us` count. It is behind `at_ms` while the chain owes an acknowledgement.
    pub accounted_ms: u64,
    /// The epoch of the reset that began the log; 0 for the group's first log.
    pub log_epoch: Epoch,
    /// Counts since the log began, the same on every replica; this replica's may lag.
    pub committed_entries: u64,
    pub committed_bytes: u64,
    pub stored_bytes: u64,
    pub totals: Totals,
    /// Commit latency of entries since the last sample, from their arrival.
    pub latency: Histogram,
    /// The same of entries within the reservation, from the time at which it let them pass.
    pub judged_latency: Histogram,
    /// The same from the time at which the head ordered them: the chain's part.
    pub chain_latency: Histogram,
}

impl Sample {
    /// Committed entries and bytes.
    pub fn committed(&self) -> (u64, u64) {
        (self.committed_entries, self.committed_bytes)
    }
}

/// Counts since the group came to this server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub offered_batches: u64,
    pub offered_entries: u64,
    pub offered_bytes: u64,
    pub throttled_entries: u64,
    pub throttled_within_sla_entries: u64,
    /// Entries that the reservation let pass, or should have.
    pub within_sla_entries: u64,
    pub refused_entries: u64,
    pub read_entries: u64,
    pub read_bytes: u64,
    /// Entries that the reservation for reads let pass here, and those of them that left late.
    pub owed_read_entries: u64,
    pub late_read_entries: u64,
    /// Time at the head during which it was able to accept appends, and during which it was not.
    pub active_us: u64,
    pub paused_us: u64,
}

impl Totals {
    /// Counts from `before` to here.
    pub fn since(&self, before: &Totals) -> Totals {
        let less = |now: u64, then: u64| now.checked_sub(then).expect("a group's totals only grow");
        Totals {
            offered_batches: less(self.offered_batches, before.offered_batches),
            offered_entries: less(self.offered_entries, before.offered_entries),
            offered_bytes: less(self.offered_bytes, before.offered_bytes),
            throttled_entries: less(self.throttled_entries, before.throttled_entries),
            throttled_within_sla_entries: less(
                self.throttled_within_sla_entries,
                before.throttled_within_sla_entries,
            ),
            within_sla_entries: less(self.within_sla_entries, before.within_sla_entries),
            refused_entries: less(self.refused_entries, before.refused_entries),
            read_entries: less(self.read_entries, before.read_entries),
            read_bytes: less(self.read_bytes, before.read_bytes),
            owed_read_entries: less(self.owed_read_entries, before.owed_read_entries),
            late_read_entries: less(self.late_read_entries, before.late_read_entries),
            active_us: less(self.active_us, before.active_us),
            paused_us: less(self.paused_us, before.paused_us),
        }
    }
}
