//! Two servers that have their leases cannot reach one another. A group that needs both stands still, since batches of
//! the one do not reach the other. One of them leaves the group.
//!
//! The one at fault by the planner's word leaves; else the one with more unreachable peers. So a server whose own link is at fault leaves, and
//! not all its neighbours in turn. With equal numbers, the one further from the head leaves: the other has all its batches, and
//! clients keep their head.

use quorate_placement::Pool;
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, ServerId};

use super::epochs::Epochs;
use crate::state::entity::Group;

/// May change members, through epochs.
#[derive(Debug)]
pub struct Unreachable<'a> {
    epochs: Epochs<'a>,
}

impl<'a> Unreachable<'a> {
    pub fn new(epochs: Epochs<'a>) -> Self {
        Self { epochs }
    }

    /// Splits unreachable pairs in each group that can do without one of them.
    pub fn resolve(&mut self) {
        let pairs: Vec<(ServerId, ServerId)> = self.epochs.pairs().iter().collect();
        for (a, b) in pairs {
            let servers = self.epochs.servers();
            if !servers.is_alive(a) || !servers.is_alive(b) {
                continue;
            }
            let groups: Vec<GroupId> = self.epochs.groups().on(a).collect();
            for group_id in groups {
                // Each iteration takes one member away, so it ends.
                while let Some(out) = self.member_to_leave(group_id) {
                    if !self.take_out(group_id, out) {
                        break;
                    }
                }
            }
        }
    }

    /// The member to leave, of the first unreachable pair that the group needs.
    fn member_to_leave(&self, group_id: GroupId) -> Option<ServerId> {
        let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
        if !group.may_change_members() {
            return None;
        }
        let pairs = self.epochs.pairs();
        let is_split = |(a, b): &(ServerId, ServerId)| {
            pairs.contains(*a, *b) && servers.is_alive(*a) && servers.is_alive(*b)
        };
        let (nearer, further) = needed_pairs(group).into_iter().find(is_split)?;
        if group.learner == Some(further) {
            return Some(further);
        }
        Some(match pairs.at_fault(nearer, further) {
            Some(server) if !planted::on(Bug::HungOneStays) => server,
            _ if pairs.count_of(nearer) > pairs.count_of(further) => nearer,
            _ => further,
        })
    }

    /// False when the group could not go on without the member, and no other server can take its place. The group then
    /// waits for the link.
    fn take_out(&mut self, group_id: GroupId, out: ServerId) -> bool {
        let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
        if group.learner == Some(out) {
            self.epochs
                .reconfigure(group_id, |members| members.learner = None);
            return true;
        }
        let mut survivors = group.chain.iter().filter(|server| **server != out);
        if !survivors.any(|server| servers.is_alive(*server)) {
            return false;
        }
        let can_spare_one = group.can_spare_one();
        if !can_spare_one {
            let successor = (self.epochs.replica_choice()).successor(group_id, out, Pool::Replacement);
            if successor.is_none() {
                return false;
            }
        }
        self.epochs.reconfigure(group_id, |members| {
            members.chain.retain(|server| *server != out);
        });
        true
    }
}

/// Pairs of servers that a group needs, the one nearer to the head first: neighbours, and the head with each member
/// that acknowledges to it. Those are the tail in an in-memory group, and each of the chain in a persistent one.
fn needed_pairs(group: &Group) -> Vec<(ServerId, ServerId)> {
    let Some((head, others)) = group.chain.split_first() else {
        return Vec::new();
    };
    let members: Vec<ServerId> = group.members().collect();
    let neighbours = members.windows(2).map(|pair| (pair[0], pair[1]));
    let acknowledging = if group.is_persistent() {
        others
    } else {
        &others[others.len().saturating_sub(1)..]
    };
    let ring = acknowledging.iter().map(|member| (*head, *member));
    neighbours.chain(ring).collect()
}
