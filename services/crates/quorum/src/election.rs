//! A member that stands for election: first it asks whether it would win, then it asks for votes.

use std::collections::BTreeSet;

use crate::ids::{MemberId, Term};
use crate::kept::Kept;
use crate::message::Body;

#[derive(Debug)]
pub struct Election {
    /// It only asks whether it would win. A member that is cut off so leaves the term alone.
    is_canvass: bool,
    yes: BTreeSet<MemberId>,
    pub deadline_ms: u64,
}

impl Election {
    /// Asks the others whether they would vote for this member.
    pub fn canvass(kept: &mut Kept, own: MemberId, deadline_ms: u64) -> Self {
        let last = kept.log().last();
        for other in others(kept, own) {
            kept.send(other, Body::Canvass { last });
        }
        Self {
            is_canvass: true,
            yes: BTreeSet::from([own]),
            deadline_ms,
        }
    }

    /// Begins a term and asks for votes in it. The own vote counts once it is on the disk: the request waits for it.
    pub fn stand(kept: &mut Kept, own: MemberId, deadline_ms: u64) -> Self {
        let next = Term(kept.term().0 + 1);
        kept.adopt(next);
        kept.give_vote(own);
        let last = kept.log().last();
        for other in others(kept, own) {
            kept.send(other, Body::Vote { last });
        }
        Self {
            is_canvass: false,
            yes: BTreeSet::new(),
            deadline_ms,
        }
    }

    pub fn is_canvass(&self) -> bool {
        self.is_canvass
    }

    pub fn count(&mut self, from: MemberId) {
        self.yes.insert(from);
    }

    pub fn is_won(&self, kept: &Kept) -> bool {
        kept.members().has_majority(|id| self.yes.contains(&id))
    }
}

fn others(kept: &Kept, own: MemberId) -> Vec<MemberId> {
    kept.members().voters().filter(|id| *id != own).collect()
}
