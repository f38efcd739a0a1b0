//! A learner that may join the chain as its new tail.
//!
//! From here to the end of the epoch nothing is committed that it lacks. A member of the next epoch's chain therefore
//! has all that was committed before.

use quorate_types::planted::{self, Bug};
use quorate_types::{Index, ServerId};
use quorate_wire::peer;

use crate::acknowledged::Acknowledged;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    learner: ServerId,
    /// The learner's acknowledgement: durable, in a persistent group.
    confirmed: Acknowledged,
    /// The last index that may have been committed without it: it must have this to join.
    needed: Index,
    /// The same for clients' trims.
    trim_needed: Index,
}

impl Joining {
    /// `needed`: what the replica has that feeds it, and its predecessor. That replica had its part in all that was
    /// committed so far, in this epoch and before, so all of it lies within its own log. Trims acknowledged in earlier
    /// epochs are durable there; other replicas' acknowledgements of them may not have come there yet.
    pub fn new(learner: ServerId, needed: Acknowledged) -> Self {
        Self {
            learner,
            confirmed: Acknowledged::default(),
            needed: needed.index,
            trim_needed: needed.trim_index,
        }
    }

    pub fn learner(&self) -> ServerId {
        self.learner
    }

    pub fn may_join(&self) -> bool {
        let tolerated = u64::from(planted::on(Bug::CatchUpOneShort));
        self.confirmed.index + tolerated >= self.needed && self.confirmed.trim_index >= self.trim_needed
    }

    /// Whether the coordinator may not know yet that the learner may join.
    pub fn hear(&mut self, progress: peer::Progress) -> bool {
        let is_update = !self.may_join() || self.confirmed.index == 0;
        let confirmed = &mut self.confirmed;
        confirmed.index = confirmed.index.max(progress.index);
        confirmed.pass = confirmed.pass.max(progress.ring_pass);
        confirmed.trim_index = confirmed.trim_index.max(progress.trim_index);
        is_update
    }

    /// The learner's own part: the ring waits for it.
    pub fn has(&self) -> Acknowledged {
        let index = if planted::on(Bug::LearnerNotWaitedFor) {
            Index::MAX
        } else {
            self.confirmed.index
        };
        Acknowledged {
            index,
            ..self.confirmed
        }
    }
}
