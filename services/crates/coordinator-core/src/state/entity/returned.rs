//! The log that a member of a persistent chain returned with.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quorate_types::control::HeldGroup;
use quorate_types::{Epoch, Index, ServerId};
use serde::{Deserialize, Serialize};

/// A member's report of its log at its return. The log with the lesser end has no more committed entries than another.
/// A log that ends before the committed end of another is an older copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The last batch's epoch and index.
    pub end: (Epoch, Index),
    /// Epoch and index of the last batch that its disk proves to be committed.
    pub committed: (Epoch, Index),
    /// The group's epoch at its return. It is in the chain of every later one, as long as the report is kept.
    #[serde(default = "no_bound")]
    pub until: Epoch,
}

/// Snapshots older than the field `until`: nothing shows that the report is out of date.
fn no_bound() -> Epoch {
    Epoch::MAX
}

impl Returned {
    pub fn of(held: &HeldGroup, until: Epoch) -> Self {
        Self {
            end: (held.epoch, held.last_index),
            committed: (held.committed_epoch, held.committed_index),
            until,
        }
    }

    /// The process has lived on: its log has all committed entries, and does not prove how many those are.
    pub const LIVED_ON: Self = Self {
        end: (Epoch::MAX, Index::MAX),
        committed: (0, 0),
        until: Epoch::MAX,
    };
}

/// Sorts the members of a chain that have returned, the longest log first; the others keep their places. Members whose
/// logs end before what another's disk proves to be committed are older copies, and come apart.
pub fn order_by_logs(
    chain: &[ServerId],
    returned: &BTreeMap<ServerId, Returned>,
) -> (Vec<ServerId>, Vec<ServerId>) {
    let proven = returned.values().map(|one| one.committed).max();
    let is_older = |server: &ServerId| returned.get(server).is_some_and(|one| Some(one.end) < proven);
    let (older, kept): (Vec<ServerId>, Vec<ServerId>) = chain.iter().copied().partition(is_older);
    let has_returned = |server: &ServerId| returned.contains_key(server);
    let mut sorted: Vec<ServerId> = kept.iter().copied().filter(has_returned).collect();
    sorted.sort_by_key(|server| Reverse(returned[server].end));
    let mut sorted = sorted.into_iter();
    let place = |server: ServerId| match has_returned(&server) {
        true => sorted.next().expect("as many as have returned"),
        false => server,
    };
    (kept.into_iter().map(place).collect(), older)
}
