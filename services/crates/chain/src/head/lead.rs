//! The head's turn: commits what the ring has acknowledged, begins ring passes, answers what has become certain.

use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Micros, Role};

use crate::acknowledged::Acknowledged;
use crate::command::{Asked, Question, ReplicaCommand};
use crate::head::headship::Headship;
use crate::head::isolation::RingProgress;
use crate::local_log::LocalLog;
use crate::membership::Membership;
use crate::trim::Trim;

/// The parts that a head's turn may touch.
pub(crate) struct Lead<'a> {
    pub membership: &'a Membership,
    pub local: &'a mut LocalLog,
    pub trim: &'a mut Trim,
    pub headship: &'a mut Headship,
    /// The last ring pass begun in this epoch.
    pub ring_pass: &'a mut u64,
    /// The part that a learner about to join has: the ring waits for it too.
    pub learner_has: Acknowledged,
}

impl Lead<'_> {
    #[inline]
    pub fn flush(&mut self, out: &mut Vec<ReplicaCommand>) {
        self.commit(out);
        self.begin_pass();
        self.answer_certain(out);
    }

    /// Answers trims that all of the ring has.
    #[inline]
    pub fn answer_trims(&mut self, out: &mut Vec<ReplicaCommand>) {
        let ring_index = self.ring_trim_index();
        self.trim.answer(ring_index, out);
    }

    /// Answers the question after the next ring pass. A trim of what is known to be committed needs none.
    pub fn ask(&mut self, now: Micros, question: Question, out: &mut Vec<ReplicaCommand>) {
        if let Asked::Trim { before_offset } = question.asked
            && before_offset <= self.local.commit_offset()
        {
            return self.trim.request(question, before_offset, self.local, out);
        }
        let pass = *self.ring_pass + 1;
        if let Err(code) = self.headship.questions.wait(now, question, pass) {
            out.push(question.answer(Some(code)));
        }
    }

    pub fn progress(&self) -> RingProgress {
        RingProgress {
            is_agreed: self.headship.ring.is_agreed(),
            acknowledged_index: self.ring_index(),
            pass: self.completed_pass(),
            trim_index: self.ring_trim_index(),
        }
    }

    /// Commits while the chain has enough replicas.
    fn commit(&mut self, out: &mut Vec<ReplicaCommand>) {
        if !self.membership.has_quorum() && !planted::on(Bug::MinReplicasIgnored) {
            return;
        }
        let index = if planted::on(Bug::AckBeforeTail) {
            self.local.last_index()
        } else {
            self.ring_index()
        };
        self.local.advance_commit(index);
        let commit_index = self.local.commit_index();
        self.headship.waiters.acknowledge(commit_index, out);
    }

    /// Begins the next pass, if it is wanted and none is under way.
    fn begin_pass(&mut self) {
        let latest = *self.ring_pass;
        if latest == self.completed_pass() && self.headship.wants_pass_after(latest) {
            *self.ring_pass += 1;
        }
    }

    fn answer_certain(&mut self, out: &mut Vec<ReplicaCommand>) {
        let completed = if planted::on(Bug::StaleTail) {
            u64::MAX
        } else {
            self.completed_pass()
        };
        if self.knows_earlier_commits() || planted::on(Bug::StaleTail) {
            while let Some(question) = self.headship.questions.take_answerable(completed) {
                self.answer(question, out);
            }
        }
        let commit_index = self.local.commit_index();
        self.headship.refusals.release(commit_index, completed, out);
    }

    /// Whether a completed pass tells what was committed before this epoch. A ring that waits for a learner to join may
    /// commit, for a moment, less than was committed before. Below `min_replicas` the head cannot know.
    fn knows_earlier_commits(&self) -> bool {
        self.local.commit_index() >= self.headship.inherited_index || !self.membership.has_quorum()
    }

    /// This replica was the head after the question had come.
    fn answer(&mut self, question: Question, out: &mut Vec<ReplicaCommand>) {
        // A head that took over learns from the ring what was committed before; below min_replicas it does not.
        let is_certain = self.membership.has_quorum() || self.local.commit_index() == self.local.last_index();
        let refused = match question.asked {
            _ if !is_certain => Some(Code::Paused),
            Asked::Status => None,
            Asked::Trim { before_offset } if before_offset > self.local.commit_offset() => {
                Some(Code::TrimBeyondCommit)
            }
            Asked::Trim { before_offset } => {
                return self.trim.request(question, before_offset, self.local, out);
            }
        };
        out.push(question.answer(refused));
    }

    /// All replicas, and a learner about to join, have the log up to this.
    fn ring_index(&self) -> Index {
        let others = self.headship.ring.acknowledged_index();
        if planted::on(Bug::OwnDiskIgnored) && self.membership.role() == Role::Head {
            return others;
        }
        self.local.durable_index().min(self.learner_has.index).min(others)
    }

    /// The same for clients' trims.
    fn ring_trim_index(&self) -> Index {
        let own = self.trim.durable_index().min(self.learner_has.trim_index);
        own.min(self.headship.ring.trim_index())
    }

    /// The last pass that has come back. A chain of one completes a pass by beginning it.
    fn completed_pass(&self) -> u64 {
        let own = (*self.ring_pass).min(self.learner_has.pass);
        own.min(self.headship.ring.pass())
    }
}
