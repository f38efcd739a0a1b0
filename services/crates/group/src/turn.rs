//! The time of a step, and the facts of the server that hold at that time.

use quorate_types::Micros;
use quorate_types::limits::{FETCHES_SERVED_PER_SHARD_MAX, REPAIRS_PER_SHARD_MAX};

use crate::clock::Vouch;
use crate::pool::Pool;

/// The facts that a shell gives its groups with each step. One `Turn` serves all groups of a shard: the two counts
/// are shared by them.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The shell's clock; it never goes back.
    pub now_us: Micros,
    /// Since 1970; it may jump.
    pub wall_us: u64,
    /// The coordinator's word on the wall clock.
    pub vouch: Vouch,
    /// Budgets, queues and accounting are off (`--measure-isolation`).
    pub is_unmetered: bool,
    /// Bytes of records that the journal has not taken yet.
    pub journal_waiting_bytes: usize,
    /// An owner on this server wants its reservation back: nothing passes on burst capacity.
    pub is_burst_stopped: bool,
    /// This server takes part in sharing idle capacity.
    pub shares_burst: bool,
    /// Somebody exports spans.
    pub exports_spans: bool,
    /// Memory for more than each group was admitted with.
    pub pool: Pool,
    repairs_asked: usize,
    fetches_served: usize,
}

impl Turn {
    pub fn new() -> Self {
        Self {
            now_us: 0,
            wall_us: 0,
            vouch: Vouch::default(),
            is_unmetered: false,
            journal_waiting_bytes: 0,
            is_burst_stopped: false,
            shares_burst: false,
            exports_spans: false,
            pool: Pool::unlimited(),
            repairs_asked: 0,
            fetches_served: 0,
        }
    }

    pub(crate) fn wall_s(&self) -> u64 {
        self.wall_us / 1_000_000
    }

    /// The time by which batches are old.
    pub(crate) fn vouched_us(&self) -> Option<u64> {
        self.vouch.time_for_ages(self.now_us, self.wall_us)
    }

    pub(crate) fn is_clock_doubted(&self) -> bool {
        self.vouch.judge(self.now_us, self.wall_us).is_err()
    }

    /// Takes one of the shard's places for repairs that ask a peer; false: all are taken.
    pub(crate) fn begin_repair(&mut self) -> bool {
        let is_free = self.may_begin_repair();
        self.repairs_asked += usize::from(is_free);
        is_free
    }

    /// Whether a place for a repair is free.
    pub fn may_begin_repair(&self) -> bool {
        self.repairs_asked < REPAIRS_PER_SHARD_MAX
    }

    pub(crate) fn end_repairs(&mut self, count: usize) {
        assert!(self.repairs_asked >= count, "no more repairs end than have begun");
        self.repairs_asked -= count;
    }

    /// The group that asked for so many repairs is in quarantine. Its count is in doubt.
    pub(crate) fn abandon_repairs(&mut self, count: usize) {
        self.repairs_asked = self.repairs_asked.saturating_sub(count);
    }

    /// Takes one of the shard's places for batches that are read back for peers; false: all are taken.
    pub(crate) fn begin_fetch(&mut self) -> bool {
        let is_free = self.fetches_served < FETCHES_SERVED_PER_SHARD_MAX;
        self.fetches_served += usize::from(is_free);
        is_free
    }

    /// The answer to an [`crate::Output::ReadForPeer`] was sent.
    pub fn end_fetch(&mut self) {
        assert!(self.fetches_served > 0, "a fetch ends once");
        self.fetches_served -= 1;
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self::new()
    }
}
