//! Groups that wait for a time: a queue or a read whose deadline comes, a commit notice that is due, a learner's
//! allowance. A task of the shard sleeps for each of these (`run.rs`).

use std::collections::BTreeSet;
use std::rc::Rc;

use quorate_qos::Pace;
use quorate_types::{GroupId, Micros};
use tokio::sync::Notify;

pub struct Wakeups {
    /// Groups in which something waits for its time.
    timed: BTreeSet<GroupId>,
    /// Wakes the timer task: there is one more, or another time.
    pub timer: Rc<Notify>,
    /// Groups that hold back a commit notice for their next batch to carry.
    notices_pending: Vec<GroupId>,
    /// Wakes the task that sends it when no batch comes.
    pub notices: Rc<Notify>,
    /// The rate at which learners of this shard's groups may be sent.
    pub pace: Pace,
    /// The same for learners of groups that lack no replica, within the other one.
    calm: Pace,
    /// Groups whose learner waits for its allowance.
    catching_up: BTreeSet<GroupId>,
    /// Wakes the pace task: one of them waits.
    pub pacing: Rc<Notify>,
}

impl Wakeups {
    pub fn new(pace: Pace, calm: Pace) -> Self {
        Self {
            timed: BTreeSet::new(),
            timer: Rc::default(),
            notices_pending: Vec::new(),
            notices: Rc::default(),
            pace,
            calm,
            catching_up: BTreeSet::new(),
            pacing: Rc::default(),
        }
    }

    /// Has the group flushed when something of it has its time.
    pub fn in_time(&mut self, group_id: GroupId) {
        self.timed.insert(group_id);
        self.timer.notify_one();
    }

    pub fn take_timed(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.timed)
    }

    /// Something of the group still waits.
    pub fn keep_timed(&mut self, group_id: GroupId) {
        self.timed.insert(group_id);
    }

    /// A commit notice to the group's successor is due.
    pub fn notice_pending(&mut self, group_id: GroupId) {
        if self.notices_pending.is_empty() {
            self.notices.notify_one();
        }
        self.notices_pending.push(group_id);
    }

    pub fn take_notices_pending(&mut self) -> Vec<GroupId> {
        std::mem::take(&mut self.notices_pending)
    }

    /// The group's learner waits until it may be sent more.
    pub fn catchup_wanted(&mut self, group_id: GroupId) {
        self.catching_up.insert(group_id);
        self.pacing.notify_one();
    }

    pub fn has_catching_up(&self) -> bool {
        !self.catching_up.is_empty()
    }

    pub fn take_catching_up(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.catching_up)
    }

    /// The group's learner got nothing this time.
    pub fn keep_catching_up(&mut self, group_id: GroupId) {
        self.catching_up.insert(group_id);
    }

    /// The bytes that one of `waiters` groups may send, as all get an even share. `is_moving`: it lacks no replica.
    pub fn allowance(&mut self, now: Micros, wanted_bytes: u64, waiters: u64, is_moving: bool) -> u64 {
        let share = self.pace.available(now).div_ceil(waiters);
        let wanted_bytes = match is_moving {
            true => wanted_bytes.min(self.calm.available(now).div_ceil(waiters)),
            false => wanted_bytes,
        };
        let bytes = self.pace.take(now, wanted_bytes.min(share));
        if is_moving {
            self.calm.take(now, bytes);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_get_a_part_of_what_missing_replicas_get() {
        let mut wakeups = Wakeups::new(Pace::new(1_000_000, 10_000, 0), Pace::new(250_000, 2_500, 0));
        assert_eq!(wakeups.allowance(10_000, 1 << 20, 1, true), 2_500);
        assert_eq!(wakeups.allowance(10_000, 1 << 20, 1, false), 7_500);
        assert_eq!(wakeups.allowance(20_000, 1 << 20, 1, false), 10_000);
        // They get no more than what is left of the whole share.
        assert_eq!(wakeups.allowance(20_000, 1 << 20, 1, true), 0);
    }
}
