//! A head that reaches neither its chain nor the coordinator: another may be the head by now. Whoever waits here would
//! wait until its deadline, so it is sent to look elsewhere.
//!
//! Neither alone says so: without the coordinator a chain goes on, and a chain that stalls is the coordinator's to mend,
//! which tells this replica. A ring that owes nothing is idle, not stalled.

use quorate_types::limits::RING_STALL_MS;
use quorate_types::{Code, Index, Micros, Role};

use crate::command::Command;
use crate::replica::Replica;

#[derive(Debug, Default)]
pub(crate) struct CutOff {
    pub coordinator_silent: bool,
    /// What the ring had told when a tick first found it owing more, and when that was.
    stalled: Option<(RingWord, Micros)>,
    judged_at: Micros,
    is_on: bool,
}

/// All that a head is told by its chain. It is no progress to be told the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingWord {
    is_closed: bool,
    level: Index,
    round: u64,
    trim_level: Index,
}

impl CutOff {
    pub fn begin_epoch(&mut self) {
        (self.stalled, self.is_on) = (None, false);
    }
}

impl Replica {
    /// At a head: its clients are to look for another.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.is_on
    }

    /// At each tick. A stall is known a tick too short, never too long.
    pub(crate) fn judge_cut_off(&mut self, now: Micros, out: &mut Vec<Command>) {
        let word = self.ring_word();
        // Who stood still itself has not waited for anybody: what has come meanwhile is not read yet.
        let has_paused = now.saturating_sub(self.cut_off.judged_at) >= RING_STALL_MS * 1_000 / 2;
        self.cut_off.judged_at = now;
        self.cut_off.stalled = match self.cut_off.stalled {
            _ if !self.ring_owes() => None,
            Some(stalled) if stalled.0 == word && !has_paused => Some(stalled),
            _ => Some((word, now)),
        };
        let is_long = |(_, since)| now.saturating_sub(since) >= RING_STALL_MS * 1_000;
        self.cut_off.is_on = self.cut_off.coordinator_silent && self.cut_off.stalled.is_some_and(is_long);
        if self.cut_off.is_on {
            self.abandon_rounds(Code::CutOff, out);
            self.abandon_trims(Code::CutOff, out);
            self.refuse_waiters(Code::CutOff, out);
        }
    }

    fn ring_word(&self) -> RingWord {
        RingWord {
            is_closed: self.ring.is_closed(),
            level: self.ring_level(),
            round: self.round_closed(),
            trim_level: self.ring_trim_level(),
        }
    }

    /// Whether something is on its way round that has not come back.
    fn ring_owes(&self) -> bool {
        let is_behind = self.ring_level() < self.log.last_index() || self.round_closed() < self.rounds.seen;
        self.role == Role::Head && (!self.ring.is_closed() || is_behind || self.has_trims_waiting())
    }
}
