//! Chains are repaired: failed servers are spliced out, replacements elected, learners that caught up join.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::planted::{self, Bug};
use quorate_types::{Epoch, GroupId, ServerId};

use super::epochs::Epochs;
use crate::command::Replacements;
use crate::state::entity::Membership;

/// May change members, through epochs.
#[derive(Debug)]
pub struct ChainRepairs<'a> {
    epochs: Epochs<'a>,
    order: Replacements,
}

impl<'a> ChainRepairs<'a> {
    pub fn new(epochs: Epochs<'a>, order: Replacements) -> Self {
        Self { epochs, order }
    }

    /// Splices the chains of servers that have failed, and elects replacements.
    pub fn splice_all(&mut self, affected: BTreeSet<GroupId>) {
        match self.order {
            Replacements::ById => affected.into_iter().for_each(|group_id| self.splice(group_id)),
            Replacements::HeaviestFirst => self.splice_then_replace(affected),
        }
    }

    fn splice(&mut self, group_id: GroupId) {
        match self.spliced(group_id) {
            Some(members) => self.epochs.reconfigure(group_id, |now| *now = members),
            None => self.epochs.configs().refresh_status(group_id),
        }
    }

    /// Charges first the replicas that stay where they are, as a follower that becomes head; replacements get the rest.
    fn splice_then_replace(&mut self, affected: BTreeSet<GroupId>) {
        let mut spliced = Vec::new();
        let mut begun = BTreeMap::new();
        for group_id in affected {
            match self.spliced(group_id) {
                Some(members) => {
                    begun.insert(group_id, self.epochs.begin(group_id, |now| *now = members));
                    spliced.push(group_id);
                }
                None => self.epochs.configs().refresh_status(group_id),
            }
        }
        for group_id in self.in_order(spliced) {
            if let Some(begun) = begun.remove(&group_id) {
                self.epochs.issue(begun);
            }
        }
    }

    /// The members without the failed ones, if that changes them.
    fn spliced(&self, group_id: GroupId) -> Option<Membership> {
        let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
        let is_well = |server| group.is_well(server, |id| servers.is_alive(id));
        let members = group.membership().without_failed(is_well);
        (group.may_change_members() && members != group.membership()).then_some(members)
    }

    /// Elects a learner for every group that wants one, where a server fits.
    pub fn elect_replacements(&mut self) {
        for group_id in self.in_order(self.epochs.groups().wanting_learner()) {
            if self.epochs.groups()[&group_id].wants_learner()
                && self.epochs.replica_choice().would_find_learner(group_id)
            {
                self.epochs.renew(group_id);
            }
        }
    }

    fn in_order(&mut self, mut groups: Vec<GroupId>) -> Vec<GroupId> {
        if self.order == Replacements::HeaviestFirst {
            self.epochs.replica_choice().sort_heaviest_first(&mut groups);
        }
        groups
    }

    /// The tail reports that the learner holds all it holds: the learner joins as the new tail.
    pub fn learner_caught_up(&mut self, from: ServerId, group_id: GroupId, epoch: Epoch, learner: ServerId) {
        let Some(group) = self.epochs.groups().get(&group_id) else {
            return;
        };
        let is_current = (group.epoch == epoch || planted::on(Bug::StalePromotion))
            && group.learner == Some(learner)
            && group.chain.last() == Some(&from);
        if !is_current || !group.may_change_members() || !self.epochs.servers().is_alive(learner) {
            return;
        }
        let degree = group.degree();
        self.epochs.forget_last_chain(group_id);
        self.epochs.reconfigure(group_id, |members| {
            members.chain.push(learner);
            if !planted::on(Bug::DoubleJoin) {
                members.learner = None;
            }
            // Otherwise a replica failed meanwhile: the learner makes the chain whole, and the move begins again.
            if members.chain.len() > degree {
                let leaving = members.leaving.take();
                members.chain.retain(|server| Some(*server) != leaving);
            }
        });
    }
}
