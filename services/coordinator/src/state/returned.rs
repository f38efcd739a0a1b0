//! Members of a persistent chain return with what their disks hold, in whatever order: the longest log leads.
//!
//! A disk that is what it was holds all that was committed, so of such members any may lead, and the longest log
//! always may. One that was restored from an older copy holds less, and would have its successors cut what it lacks. It
//! cannot always be told by itself (`docs/internals/coordinator.md`, "An older copy of a disk"), but beside the others.

use std::cmp::Reverse;

use quorate_types::control::HeldGroup;
use quorate_types::{Epoch, GroupId, Index, ServerId};
use serde::{Deserialize, Serialize};

use super::event::EventKind;
use super::group::Group;
use super::{Change, Subject};

/// What a member said of its log when it returned. Of two logs the one whose end is less holds no more than the other
/// of what was committed; one that ends before what another has committed is an older copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The last batch's epoch and index.
    pub end: (Epoch, Index),
    /// The last one of which its disk proves that it was committed.
    pub committed: (Epoch, Index),
    /// The group's epoch when it returned. It is in the chain of every later one, as long as this is kept.
    #[serde(default = "no_bound")]
    pub until: Epoch,
}

/// Of what was noted before `until` was: nothing shows that it is out of date.
fn no_bound() -> Epoch {
    Epoch::MAX
}

impl Returned {
    pub(super) fn of(held: &HeldGroup, until: Epoch) -> Self {
        Self {
            end: (held.epoch, held.last_index),
            committed: (held.committed_epoch, held.committed_index),
            until,
        }
    }

    /// Its process has lived on: it holds all that was committed, and says nothing of how much that is.
    pub(super) const LIVED_ON: Self = Self {
        end: (Epoch::MAX, Index::MAX),
        committed: (0, 0),
        until: Epoch::MAX,
    };
}

impl Group {
    /// The chain by what its members returned with, those that did not keeping their places; and older copies.
    fn by_what_they_hold(&self) -> (Vec<ServerId>, Vec<ServerId>) {
        let proven = self.returned.values().map(|one| one.committed).max();
        let is_older = |server: &ServerId| {
            let returned = self.returned.get(server);
            returned.is_some_and(|one| Some(one.end) < proven)
        };
        let (older, kept): (Vec<ServerId>, Vec<ServerId>) = self.chain.iter().copied().partition(is_older);
        let has_returned = |server: &ServerId| self.returned.contains_key(server);
        let mut returned: Vec<ServerId> = kept.iter().copied().filter(has_returned).collect();
        returned.sort_by_key(|server| Reverse(self.returned[server].end));
        let mut returned = returned.into_iter();
        let place = |server: ServerId| match self.returned.contains_key(&server) {
            true => returned.next().expect("as many as have returned"),
            false => server,
        };
        (kept.into_iter().map(place).collect(), older)
    }

    /// A batch that was ordered in an epoch is committed by a chain of that epoch or a later one, all of which holds it
    /// then. So a member that returned before that epoch was issued has got more since than it returned with, though
    /// its word that it is in the epoch may still be on its way.
    fn forget_outdated(&mut self, committed: (Epoch, Index)) {
        self.returned.retain(|_, one| committed.0 <= one.until);
    }

    /// Whether a member's word that it is in the present epoch changes anything.
    pub fn awaits_applied(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && (!self.formed || !self.returned.is_empty())
    }
}

impl Change<'_> {
    /// A member of the chain is back. `anew`: its neighbours must agree with it in a new epoch in any case.
    pub(super) fn settle_returned(
        &mut self,
        group_id: GroupId,
        id: ServerId,
        returned: Returned,
        anew: bool,
    ) {
        let group = self.state.groups.get_mut(&group_id).expect("a member's group");
        group.forget_outdated(returned.committed);
        group.returned.insert(id, returned);
        let (chain, older) = group.by_what_they_hold();
        if !anew && chain == group.chain {
            self.send_configuration(group_id, id);
            self.refresh_status(group_id);
            return;
        }
        for server in older {
            let name = self.server_name(server);
            self.event(
                EventKind::ServerDiskStale,
                Subject::Replica(group_id, server),
                format!("What server {name} holds of the group is an older copy, by what others hold: it learns it anew."),
            );
        }
        self.reconfigure(group_id, |group| group.chain = chain);
    }
}
