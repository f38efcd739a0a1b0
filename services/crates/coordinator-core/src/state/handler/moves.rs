//! Replicas leave servers that are well enough to be left in order: a server that drains, one that is slow, or one whose
//! disk takes nothing.
//!
//! A replica leaves in the epoch in which its replacement joins as the new tail, so its group is never below its degree.
//! Only a replica that harms its group leaves before, where the group can spare one ([`Moves::vacate`]).
//!
//! The state has no list of moves that are still to do. After each command every move that can begin does. So a move
//! that was interrupted (a learner failed, the coordinator was restarted) is taken up again by itself.

use quorate_placement::Pool;
use quorate_types::limits::DRAIN_MOVES_MAX;
use quorate_types::sla::ScarceResource;
use quorate_types::{GroupId, ServerId};

use super::epochs::Epochs;
use crate::state::entity::Group;

/// May change members, through epochs.
#[derive(Debug)]
pub struct Moves<'a> {
    epochs: Epochs<'a>,
}

impl<'a> Moves<'a> {
    pub fn new(epochs: Epochs<'a>) -> Self {
        Self { epochs }
    }

    /// Moves of a draining server, a few at a time. The resource that those without a new server lack.
    pub fn move_away(&mut self, id: ServerId) -> Option<ScarceResource> {
        let groups = self.groups_of(id);
        let mut under_way = self.moves_from(id, &groups);
        let mut scarce = None;
        for group_id in groups {
            if under_way >= DRAIN_MOVES_MAX || self.is_leaving(id, group_id) {
                continue;
            }
            if self.group(group_id).learner == Some(id) {
                self.replace_learner(group_id, id);
                continue;
            }
            if !self.is_settled(group_id) {
                continue;
            }
            match self.begin_move(group_id, id) {
                Ok(()) => under_way += 1,
                Err(lacking) => scarce = scarce.or(Some(lacking)),
            }
        }
        scarce
    }

    /// Takes a server that harms its groups out of all that can spare a replica, at once: their appends flow again with
    /// the next epoch. The others move a few at a time, as in a drain. The heaviest go first, while there is most room.
    pub fn vacate(&mut self, id: ServerId) {
        let mut groups = self.groups_of(id);
        let mut under_way = self.moves_from(id, &groups);
        self.epochs.replica_choice().sort_heaviest_first(&mut groups);
        for group_id in groups {
            if self.group(group_id).learner == Some(id) {
                self.replace_learner(group_id, id);
            } else if !self.is_settled(group_id) {
                continue;
            } else if self.group(group_id).can_spare_one() {
                self.splice(group_id, id, false);
            } else if under_way < DRAIN_MOVES_MAX {
                under_way += usize::from(self.begin_move(group_id, id).is_ok());
            }
        }
    }

    /// Replaces a slow server in one of its groups, when no such replacement is under way. Where the group can spare
    /// the replica, it leaves at once, as a failed one does; elsewhere its replacement learns first.
    pub fn relieve(&mut self, id: ServerId) {
        let has_begun = |group: &Group| group.leaving == Some(id) || group.relieved == Some(id);
        let is_busy = |group: &Group| has_begun(group) && group.may_change_members();
        if self.epochs.groups().values().any(is_busy) {
            return;
        }
        for group_id in self.groups_of(id) {
            if self.group(group_id).learner == Some(id) {
                if self.replace_learner(group_id, id) {
                    return;
                }
                continue;
            }
            if !self.is_settled(group_id) {
                continue;
            }
            let has_begun = if self.group(group_id).can_spare_one() {
                self.splice(group_id, id, true)
            } else {
                self.begin_move(group_id, id).is_ok()
            };
            if has_begun {
                return;
            }
        }
    }

    /// Has the persistent replicas of a server leave it whose disk takes nothing. They keep their groups read-only. Where
    /// the group can spare the replica, and another disk of it takes appends, it leaves at once. It does so also when no
    /// server has room for a replacement yet. Elsewhere its replacement learns first, a few at a time. Groups in memory stay.
    pub fn leave_faulty_disk(&mut self, id: ServerId) {
        let groups = self
            .groups_of(id)
            .into_iter()
            .filter(|group_id| self.group(*group_id).is_persistent());
        let groups: Vec<GroupId> = groups.collect();
        let mut under_way = groups
            .iter()
            .filter(|group_id| self.group(**group_id).leaving == Some(id))
            .count();
        for group_id in groups {
            if self.group(group_id).learner == Some(id) {
                if !self.replace_learner(group_id, id) {
                    self.give_up_learner(group_id);
                }
            } else if self.group(group_id).can_spare_one()
                && self.has_all_alive(group_id)
                && self.has_another_sound_disk(group_id, id)
            {
                self.take_out(group_id, id, None);
            } else if under_way < DRAIN_MOVES_MAX
                && self.is_settled(group_id)
                && self.begin_move(group_id, id).is_ok()
            {
                under_way += 1;
            }
        }
    }

    fn has_all_alive(&self, group_id: GroupId) -> bool {
        let (group, servers) = (self.group(group_id), self.epochs.servers());
        group.chain.iter().all(|server| servers.is_alive(*server))
    }

    fn has_another_sound_disk(&self, group_id: GroupId, id: ServerId) -> bool {
        let servers = self.epochs.servers();
        let mut others = self.group(group_id).chain.iter().filter(|server| **server != id);
        others.any(|server| servers[server].storage_fault.is_none())
    }

    /// Replicas that were about to leave stay. The replacement of a replica that has left already goes on learning.
    pub fn call_off(&mut self, id: ServerId) {
        for group_id in self.groups_of(id) {
            if self.group(group_id).leaving == Some(id) {
                let degree = self.group(group_id).degree();
                self.epochs.reconfigure(group_id, |members| {
                    members.leaving = None;
                    if members.chain.len() >= degree {
                        members.learner = None;
                    }
                });
            }
        }
    }

    fn is_settled(&self, group_id: GroupId) -> bool {
        let servers = self.epochs.servers();
        self.group(group_id).is_settled(|server| servers.is_alive(server))
    }

    /// Elects the replacement and has it learn; the replica stays until it has.
    fn begin_move(&mut self, group_id: GroupId, from: ServerId) -> Result<(), ScarceResource> {
        let mut choice = self.epochs.replica_choice();
        let Some(learner) = choice.successor(group_id, from, Pool::Admission) else {
            return Err(choice.scarce_for_successor(group_id, from));
        };
        self.epochs.reconfigure(group_id, |members| {
            members.leaving = Some(from);
            members.learner = Some(learner);
        });
        Ok(())
    }

    /// Takes the replica out before its replacement has learned, if there is a server for that one.
    fn splice(&mut self, group_id: GroupId, out: ServerId, is_noted: bool) -> bool {
        let successor = (self.epochs.replica_choice()).successor(group_id, out, Pool::Replacement);
        if successor.is_none() {
            return false;
        }
        self.take_out(group_id, out, is_noted.then_some(out));
        true
    }

    fn take_out(&mut self, group_id: GroupId, out: ServerId, relieved: Option<ServerId>) {
        self.epochs.reconfigure(group_id, |members| {
            members.chain.retain(|server| *server != out);
            members.relieved = relieved.or(members.relieved);
        });
    }

    /// A learner whose disk takes nothing never joins, and commits wait for one that was about to. Another is elected once a
    /// server fits.
    fn give_up_learner(&mut self, group_id: GroupId) {
        self.epochs.reconfigure(group_id, |members| {
            (members.learner, members.leaving) = (None, None);
        });
    }

    /// Another learner instead of one whose server drains or is slow. False: there is none, and it goes on.
    fn replace_learner(&mut self, group_id: GroupId, learner: ServerId) -> bool {
        let pool = if self.group(group_id).leaving.is_some() {
            Pool::Admission
        } else {
            Pool::Replacement
        };
        let Some(other) = self.epochs.replica_choice().successor(group_id, learner, pool) else {
            return false;
        };
        self.epochs
            .reconfigure(group_id, |members| members.learner = Some(other));
        true
    }

    fn moves_from(&self, id: ServerId, groups: &[GroupId]) -> usize {
        let leaving = groups.iter().filter(|group_id| self.is_leaving(id, **group_id));
        leaving.count()
    }

    fn is_leaving(&self, id: ServerId, group_id: GroupId) -> bool {
        self.group(group_id).leaving == Some(id)
    }

    fn group(&self, group_id: GroupId) -> &Group {
        &self.epochs.groups()[&group_id]
    }

    /// The server's groups, but for those that wait for an operator: no replica may leave these.
    fn groups_of(&self, server: ServerId) -> Vec<GroupId> {
        let groups = self.epochs.groups().on(server);
        groups.filter(|id| self.group(*id).may_change_members()).collect()
    }
}
