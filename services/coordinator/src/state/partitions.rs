//! Two servers that have their leases but cannot reach one another: a group in which they need each other stands
//! still, since what the one orders the other does not get. One of them makes way.
//!
//! Who: the one that is severed from more servers, so that a server whose own link is at fault goes, and not all
//! its neighbours in turn; of two that are equal, the one further from the head: what it holds, the other holds too,
//! and clients keep their head.

use quorate_placement::Pool;
use quorate_types::{GroupId, ServerId};

use super::event::EventKind;
use super::moves::is_severed;
use super::{Change, Subject};

impl Change<'_> {
    pub(super) fn severed(&mut self, a: ServerId, b: ServerId, severed: bool) {
        let known = |id| self.state.servers.contains_key(&id);
        if a == b || !known(a) || !known(b) {
            return;
        }
        let pair = (a.min(b), a.max(b));
        if !severed {
            self.state.severed.remove(&pair);
            return;
        }
        if !self.state.severed.insert(pair) {
            return;
        }
        let message = format!(
            "Servers {} and {} have not reached one another for long: where a group needs them both, one makes way.",
            self.server_name(a),
            self.server_name(b)
        );
        self.event(EventKind::ServerUnreachable, Subject::Server(b), message);
    }

    /// After each command: no group that can help it has neighbours that cannot reach one another.
    pub(super) fn resolve_partitions(&mut self) {
        for (a, b) in self.state.severed.iter().copied().collect::<Vec<_>>() {
            if !self.state.is_alive(a) || !self.state.is_alive(b) {
                continue;
            }
            for group_id in self.groups_of(a) {
                // Each round takes one member away, so it ends.
                while let Some(out) = self.who_makes_way(group_id) {
                    if !self.make_way(group_id, out) {
                        break;
                    }
                }
            }
        }
    }

    /// Of the first pair that needs one another and cannot: neighbours, and the head and those whose word it waits for (of an
    /// in-memory group the tail, of a persistent one each of the chain).
    fn who_makes_way(&self, group_id: GroupId) -> Option<ServerId> {
        let group = &self.state.groups[&group_id];
        let line: Vec<ServerId> = group.members().collect();
        let neighbours = line.windows(2).map(|pair| (pair[0], pair[1]));
        let (head, others) = group.chain.split_first()?;
        let speakers = if group.is_persistent() {
            others
        } else {
            &others[others.len().saturating_sub(1)..]
        };
        let ring = speakers.iter().map(|speaker| (*head, *speaker));
        let severed = &self.state.severed;
        let both_alive = |(a, b): &(ServerId, ServerId)| self.state.is_alive(*a) && self.state.is_alive(*b);
        let (nearer, further) = neighbours
            .chain(ring)
            .find(|pair| is_severed(severed, pair.0, pair.1) && both_alive(pair))?;
        if group.learner == Some(further) {
            return Some(further);
        }
        let count = |id: ServerId| severed.iter().filter(|(a, b)| *a == id || *b == id).count();
        Some(if count(nearer) > count(further) {
            nearer
        } else {
            further
        })
    }

    /// False when the group could not go on without it, and no other server can take its place: then it waits for
    /// the link.
    fn make_way(&mut self, group_id: GroupId, out: ServerId) -> bool {
        let group = &self.state.groups[&group_id];
        if group.learner == Some(out) {
            self.reconfigure(group_id, |group| group.learner = None);
            return true;
        }
        let survivors = group
            .chain
            .iter()
            .filter(|server| **server != out && self.state.is_alive(**server))
            .count();
        if survivors == 0
            || !(group.can_spare_one() || self.elect_for_move(group_id, out, Pool::Replacement).is_some())
        {
            return false;
        }
        self.reconfigure(group_id, |group| group.chain.retain(|server| *server != out));
        true
    }
}
