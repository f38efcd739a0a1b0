//! Finds the batches that are older than the SLA retains. Nothing here may take a young batch for an old one.
//!
//! There are two proofs of an age, and either will do:
//! - the batch's time stamp, if the clock that made it was believed then, and the head's clock is now;
//! - the time for which this process has held the batch, by a clock that nobody can set.
//!
//! A batch with a doubtful stamp is older than the next one with a good stamp. So doubt delays a trim; it never hastens
//! one, and the second proof ends the delay.

use std::collections::VecDeque;

use quorate_types::planted::{self, Bug};
use quorate_types::{Index, Micros};

use crate::local_log::LocalLog;

/// Marks for the length of a retention: a batch is trimmed late by no more than this part of it.
const MARKS: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct Ages {
    /// Times, and what was committed here by then, oldest first.
    marks: VecDeque<(Micros, Index)>,
    /// Stamps up to this were looked at: they are old, or doubtful with no good one behind them yet.
    searched: Index,
    /// The last batch that is known to be too old.
    old: Index,
    clock: SteadyClock,
}

impl Ages {
    pub fn old_index(&self) -> Index {
        self.old
    }

    /// A lost group's log begins again. Its marks mean nothing for the new one; the clock is not the log's.
    pub fn reset(&mut self) {
        *self = Self {
            clock: self.clock,
            ..Self::default()
        };
    }

    /// Looks at the wall clock, head or not: a leap is seen by those alone that saw the clock before it. `None`: it is not
    /// believed now.
    pub fn watch_clock(&mut self, now: Micros, vouched_us: Option<u64>) {
        self.clock.look(now, vouched_us);
    }

    /// Notes what is committed by now, if the last note is old enough.
    pub fn watch(&mut self, now: Micros, age_us: Micros, committed: Index) {
        let is_due =
            |(at, index): &(Micros, Index)| *index < committed && now.saturating_sub(*at) >= age_us / MARKS;
        if self.marks.back().is_none_or(is_due) && committed > 0 {
            self.marks.push_back((now, committed));
        }
        // The first mark is the last that proves an age, once there is one.
        while self
            .marks
            .get(1)
            .is_some_and(|(at, _)| now.saturating_sub(*at) >= age_us)
        {
            self.marks.pop_front();
        }
    }

    /// The last batch, of those from `from` on, that is older than so much. To be asked behind a look at the clock.
    pub fn old(&mut self, now: Micros, age_us: Micros, from: Index, local: &LocalLog) -> Index {
        let held = self
            .marks
            .front()
            .filter(|(at, _)| now.saturating_sub(*at) >= age_us);
        let by_marks = held.map_or(0, |(_, index)| *index);
        let by_stamps = self.clock.reading_us().map_or(0, |wall_us| {
            self.stamped_before(wall_us.saturating_sub(age_us), from, local)
        });
        self.old = self.old.max(by_marks).max(by_stamps);
        self.old
    }

    /// Looks at stamps from where the last search ended. The first good one that is not too old ends it.
    fn stamped_before(&mut self, oldest_us: u64, from: Index, local: &LocalLog) -> Index {
        let mut old = 0;
        for index in from.max(self.searched + 1)..=local.commit_index() {
            let Some(header) = local.log().header(index) else {
                break;
            };
            if header.is_stamp_doubted() && !planted::on(Bug::DoubtedStampTaken) {
                self.searched = index;
            } else if header.timestamp_us < oldest_us {
                (self.searched, old) = (index, index);
            } else {
                break;
            }
        }
        old
    }
}

/// A wall clock that leaps ahead is followed at a tenth more than the speed of time. All clocks of a fleet may be set wrong
/// at once, and put right again.
#[derive(Debug, Default, Clone, Copy)]
struct SteadyClock {
    /// Time of the last look at a clock that was believed, and its steady reading.
    last: Option<(Micros, u64)>,
    /// The last look was at a clock that was not believed.
    is_doubted: bool,
}

impl SteadyClock {
    fn look(&mut self, now: Micros, vouched_us: Option<u64>) {
        self.is_doubted = vouched_us.is_none();
        let Some(wall_us) = vouched_us else { return };
        let steady_us = match self.last {
            None => wall_us,
            Some((then, said_us)) => {
                let elapsed = now.saturating_sub(then);
                wall_us.min(said_us + elapsed + elapsed / 10)
            }
        };
        self.last = Some((now, steady_us));
    }

    /// The reading of the last look; `None` in doubt.
    fn reading_us(&self) -> Option<u64> {
        self.last.filter(|_| !self.is_doubted).map(|(_, said_us)| said_us)
    }
}
