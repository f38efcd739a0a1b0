//! The log that a member of a persistent chain returned with.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quorate_types::control::HeldGroup;
use quorate_types::planted::{self, Bug};
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

/// A chain in the order of its members' logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByLogs {
    pub chain: Vec<ServerId>,
    /// Their logs end before what another's disk, or their own, proves to be committed.
    pub older: Vec<ServerId>,
    /// Every log that is left ends before what is proved to be committed.
    pub is_short: bool,
}

/// Puts members that lived on first, then those that returned in a new process, the longest log first. A member that lived
/// on holds all that was committed. The disk of one that was restarted may have lost a write, though it had said that the
/// write is durable. While nobody is known to have lived on, those that have not returned yet keep their places.
pub fn order_by_logs(
    chain: &[ServerId],
    returned: &BTreeMap<ServerId, Returned>,
    is_alive: impl Fn(ServerId) -> bool,
) -> ByLogs {
    let proven = returned.values().map(|one| one.committed).max();
    let is_older = |server: &ServerId| returned.get(server).is_some_and(|one| Some(one.end) < proven);
    let (mut older, mut kept): (Vec<ServerId>, Vec<ServerId>) = chain.iter().copied().partition(is_older);
    let is_short = kept.is_empty() && !chain.is_empty();
    if is_short {
        // The longest is the most that is left.
        let longest = older.iter().map(|server| returned[server].end).max();
        (kept, older) = (older.into_iter()).partition(|server| Some(returned[server].end) == longest);
    }
    let lived_on = |server: &ServerId| match returned.get(server) {
        Some(one) => one.end == Returned::LIVED_ON.end,
        None => is_alive(*server) && !planted::on(Bug::ReturnedLeads),
    };
    let (mut chain, rest): (Vec<ServerId>, Vec<ServerId>) = kept.into_iter().partition(lived_on);
    chain.extend(longest_first(&rest, returned));
    ByLogs {
        chain,
        older,
        is_short,
    }
}

/// Sorts the members that have returned; the others keep their places.
fn longest_first(members: &[ServerId], returned: &BTreeMap<ServerId, Returned>) -> Vec<ServerId> {
    let has_returned = |server: &ServerId| returned.contains_key(server);
    let mut sorted: Vec<ServerId> = members.iter().copied().filter(has_returned).collect();
    sorted.sort_by_key(|server| Reverse(returned[server].end));
    let mut sorted = sorted.into_iter();
    let place = |server: &ServerId| match has_returned(server) {
        true => sorted.next().expect("as many as have returned"),
        false => *server,
    };
    members.iter().map(place).collect()
}
