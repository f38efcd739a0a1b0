//! Chains are spliced, replacements elected, epochs issued (Filo §4.1 "Failures"; `consensus.md`).
//!
//! Every change of a group's members goes through [`Change::reconfigure`], which keeps the free
//! resources, the indexes, the epoch and what the members are told in step.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::Pool;
use quorate_types::config::Member;
use quorate_types::control::{GroupReport, ToServer};
use quorate_types::planted::{self, Bug};
use quorate_types::{Epoch, GroupConfig, GroupId, ServerId};

use super::command::Effect;
use super::event::EventKind;
use super::group::{Group, GroupStatus};
use super::moves::is_severed;
use super::placement::Replacements;
use super::{Change, Subject, fleet_of};

impl Change<'_> {
    /// Takes failed servers out of the chain, but never all: when the whole chain has failed, what its
    /// servers hold is all there is, and any one left out could be the only one that knows the end.
    fn splice(&mut self, group_id: GroupId) {
        match self.spliced(group_id) {
            Some((chain, learner)) => {
                self.reconfigure(group_id, |group| (group.chain, group.learner) = (chain, learner));
            }
            None => self.refresh_status(group_id),
        }
    }

    /// Chain and learner without the failed ones, if that is another.
    fn spliced(&self, group_id: GroupId) -> Option<(Vec<ServerId>, Option<ServerId>)> {
        let group = &self.state.groups[&group_id];
        let alive = |server: &ServerId| self.state.is_alive(*server);
        let survivors: Vec<ServerId> = group.chain.iter().copied().filter(alive).collect();
        let learner = group.learner.filter(alive);
        let chain = if survivors.is_empty() {
            group.chain.clone()
        } else {
            survivors
        };
        let is_other = chain != group.chain || learner != group.learner;
        is_other.then_some((chain, learner))
    }

    /// Splices all chains of servers that have failed, and elects replacements.
    pub(super) fn splice_all(&mut self, affected: BTreeSet<GroupId>) {
        if self.state.placement.replacements == Replacements::ById {
            for group_id in affected {
                self.splice(group_id);
            }
            return;
        }
        // First all that has to be where it is, as a follower that becomes head; what is elected gets what is left.
        let mut changed = BTreeMap::new();
        for group_id in affected {
            match self.spliced(group_id) {
                Some((chain, learner)) => {
                    let change = |group: &mut Group| (group.chain, group.learner) = (chain, learner);
                    changed.insert(group_id, self.change_members(group_id, change));
                }
                None => self.refresh_status(group_id),
            }
        }
        for group_id in self.in_order_of_replacement(changed.keys().copied().collect()) {
            self.issue(group_id, &changed[&group_id], None);
        }
    }

    fn in_order_of_replacement(&self, mut groups: Vec<GroupId>) -> Vec<GroupId> {
        if self.state.placement.replacements == Replacements::ById {
            return groups;
        }
        let region = |id: &GroupId| &self.state.groups[id].sla.region;
        groups.sort_by_key(|id| (region(id), *id));
        for of_one_region in groups.chunk_by_mut(|a, b| region(a) == region(b)) {
            if let Some(fleet) = self.state.fleet(region(&of_one_region[0])) {
                let demand = |id: &GroupId| self.state.groups[id].demands.tail();
                quorate_placement::heaviest_first(fleet, of_one_region, demand);
            }
        }
        groups
    }

    /// A server has lost what it held of the group, or what it has cannot be trusted.
    pub(super) fn leave(&mut self, group_id: GroupId, server: ServerId) {
        let was_chained = self.state.groups[&group_id].chain.contains(&server);
        self.reissue(group_id, Some(server), |group| {
            group.chain.retain(|member| *member != server);
            group.learner = group.learner.filter(|learner| *learner != server);
            if was_chained {
                group.last_chain.insert(server);
            }
            if group.chain.is_empty() {
                group.learner = None;
                group.lost = true;
            }
        });
        // It came back with nothing: there is nothing to drop.
        self.state.forget_drop(server, group_id);
        if self.state.groups[&group_id].lost {
            self.state.derived.lost.insert(group_id);
            for server in self.state.groups[&group_id].last_chain.clone() {
                self.tell_lost(group_id, server);
            }
        }
    }

    pub(super) fn learner_caught_up(
        &mut self,
        from: ServerId,
        group_id: GroupId,
        epoch: u64,
        learner: ServerId,
    ) {
        let Some(group) = self.state.groups.get(&group_id) else {
            return;
        };
        let current = (group.epoch == epoch || planted::on(Bug::StalePromotion))
            && group.learner == Some(learner)
            && group.chain.last() == Some(&from);
        if !current || !self.state.is_alive(learner) {
            return;
        }
        self.reconfigure(group_id, |group| {
            group.chain.push(learner);
            // A chain that others join has all there is: who left one before says nothing of it.
            group.last_chain.clear();
            if !planted::on(Bug::DoubleJoin) {
                group.learner = None;
            }
            // Else a replica failed meanwhile: the learner makes the chain whole, and the move begins again.
            if group.chain.len() > group.degree() {
                let leaving = group.leaving.take();
                group.chain.retain(|server| Some(*server) != leaving);
            }
        });
    }

    /// Elects a learner for every group that wants one, where a server fits.
    pub(super) fn elect_replacements(&mut self) {
        let wanting: Vec<GroupId> = self.state.derived.wanting.iter().copied().collect();
        for group_id in self.in_order_of_replacement(wanting) {
            if self.state.groups[&group_id].wants_learner() && self.may_learn(group_id) {
                self.reconfigure(group_id, |_| {});
            }
        }
    }

    /// Whether electing would find a server: asked before an epoch is spent on it.
    fn may_learn(&mut self, group_id: GroupId) -> bool {
        match self.elect(group_id) {
            Some(server) => {
                let tail = self.state.groups[&group_id].demands.tail();
                fleet_of(&mut self.state.derived, &self.state.servers, server).release(server, tail);
                true
            }
            None => false,
        }
    }

    /// ElectServer for the group's next learner, which is charged; the chain must be all alive, since
    /// its tail is where the learner learns from. A server that still holds data of the group and that
    /// the replica fits goes first: it has the least to learn. None that cannot reach a member is taken.
    fn elect(&mut self, group_id: GroupId) -> Option<ServerId> {
        let group = &self.state.groups[&group_id];
        if !group.chain.iter().all(|member| self.state.is_alive(*member)) {
            return None;
        }
        let (tail, severed) = (group.demands.tail(), &self.state.severed);
        let reaches = |id: ServerId| !group.chain.iter().any(|member| is_severed(severed, id, *member));
        let fleet = self.state.derived.fleets.get_mut(&group.sla.region)?;
        let holders = self.state.derived.holders.get(&group_id).into_iter().flatten();
        let fits = |holder: &ServerId| fleet.fits_on(*holder, tail) && reaches(*holder);
        if let Some(holder) = holders.copied().find(fits) {
            fleet.charge(holder, tail);
            return Some(holder);
        }
        fleet.elect_among(tail, &group.chain, Pool::Replacement, &reaches)
    }

    /// A new epoch: `change` alters the members, a missing replica gets a learner in the same epoch when a
    /// server fits, and all members are told.
    pub(super) fn reconfigure(&mut self, group_id: GroupId, change: impl FnOnce(&mut Group)) {
        self.reissue(group_id, None, change);
    }

    /// The same; `empty` holds nothing of the group and is told nothing of its leaving it.
    fn reissue(&mut self, group_id: GroupId, empty: Option<ServerId>, change: impl FnOnce(&mut Group)) {
        let before = self.change_members(group_id, change);
        self.issue(group_id, &before, empty);
    }

    /// Begins a new epoch with what its members are charged; [`Change::issue`] must follow. Who they were before.
    fn change_members(&mut self, group_id: GroupId, change: impl FnOnce(&mut Group)) -> Vec<ServerId> {
        let mut group = self
            .state
            .groups
            .remove(&group_id)
            .expect("only known groups are reconfigured");
        let before: Vec<ServerId> = group.members().collect();
        self.uncharge(&group);
        change(&mut group);
        group.epoch += 1;
        group.applied.clear();
        group.returned.retain(|server, _| group.chain.contains(server));
        self.charge(&group);
        self.state.groups.insert(group_id, group);
        before
    }

    /// Elects the learner that is missing, and tells all who are members or were.
    fn issue(&mut self, group_id: GroupId, before: &[ServerId], empty: Option<ServerId>) {
        let wants = self.state.groups[&group_id].wants_learner();
        if wants && let Some(learner) = self.elect(group_id) {
            let group = self.state.groups.get_mut(&group_id).expect("looked up above");
            group.learner = Some(learner);
            fleet_of(&mut self.state.derived, &self.state.servers, learner).meet(learner, &group.chain);
            self.state
                .derived
                .groups_of
                .entry(learner)
                .or_default()
                .insert(group_id);
        }
        let group = self.state.groups.get_mut(&group_id).expect("inserted above");
        // Who leaves does so when a learner joins; without one there is no move.
        let moving = |leaving: &ServerId| group.learner.is_some() && group.chain.contains(leaving);
        group.leaving = group.leaving.filter(moving);
        let short = group.chain.len() < group.degree();
        group.relieved = group.relieved.filter(|slow| short && !group.chain.contains(slow));
        self.settle_want(group_id);
        self.note_departures(group_id, before);
        self.announce(group_id);
        for server in before.iter().copied() {
            // It stops and names the new head to its clients; what it holds is dropped when that is safe.
            if !self.state.groups[&group_id].is_member(server) && Some(server) != empty {
                self.send_configuration(group_id, server);
            }
        }
        self.send_due_drops(group_id);
    }

    /// Tells every member the present configuration, and the API that there is one.
    pub(super) fn announce(&mut self, group_id: GroupId) {
        let group = &self.state.groups[&group_id];
        let members: Vec<ServerId> = group.members().collect();
        let (epoch, learner) = (group.epoch, group.learner);
        let names: Vec<String> = group
            .chain
            .iter()
            .map(|server| self.server_name(*server))
            .collect();
        let mut message = format!("Epoch {epoch}: chain {}", names.join(" → "));
        if names.is_empty() {
            message = format!("Epoch {epoch}: no replica is left");
        }
        if let Some(learner) = learner {
            message += &format!(", {} is learning", self.server_name(learner));
        }
        self.state.epoch_changes += 1;
        self.event(
            EventKind::GroupConfigured,
            Subject::Group(group_id, Some(epoch), None),
            message + ".",
        );
        for server in members {
            // It holds data that is wanted again.
            self.state.forget_drop(server, group_id);
            self.send_configuration(group_id, server);
        }
        self.refresh_status(group_id);
    }

    pub(super) fn send_configuration(&mut self, group_id: GroupId, server: ServerId) {
        if self.state.is_alive(server) {
            let config = self.state.config_of(&self.state.groups[&group_id]);
            self.effects.push(Effect::Send {
                server,
                message: ToServer::Configure { config },
            });
        }
    }

    pub(super) fn refresh_status(&mut self, group_id: GroupId) {
        let group = &self.state.groups[&group_id];
        let status = group.status_with(|server| self.state.is_alive(server));
        if status == group.status {
            return;
        }
        let (epoch, message) = (
            group.epoch,
            format!("The group is {status}; it was {}.", group.status),
        );
        let group = self.state.groups.get_mut(&group_id).expect("looked up above");
        group.status = status;
        match status {
            GroupStatus::Lost => group.last_chain.extend(group.chain.iter().copied()),
            GroupStatus::Active | GroupStatus::Degraded => group.last_chain.clear(),
            GroupStatus::Provisioning | GroupStatus::Paused | GroupStatus::Deleting => {}
        }
        self.event(
            EventKind::GroupStatus,
            Subject::Group(group_id, Some(epoch), Some(status)),
            message,
        );
    }

    /// Members that are members no more: what they hold is to be dropped, when that is safe.
    pub(super) fn note_departures(&mut self, group_id: GroupId, before: &[ServerId]) {
        for server in before {
            if !self.state.groups[&group_id].is_member(*server) {
                self.state.note_drop(*server, group_id);
            }
        }
    }

    /// Tells servers that are there to drop what they hold of a group without them.
    pub(super) fn send_due_drops(&mut self, group_id: GroupId) {
        if !self.state.may_drop(group_id) {
            return;
        }
        for server in self.state.derived.holders.get(&group_id).into_iter().flatten() {
            let known = &self.state.servers[server];
            if known.alive {
                let message = ToServer::Drop {
                    group_id,
                    epoch: known.to_drop[&group_id],
                };
                self.effects.push(Effect::Send {
                    server: *server,
                    message,
                });
            }
        }
    }

    pub(super) fn charge(&mut self, group: &Group) {
        self.state.derived.meet(group);
        for (server, amounts) in group.charges() {
            fleet_of(&mut self.state.derived, &self.state.servers, server).charge(server, amounts);
            self.state
                .derived
                .groups_of
                .entry(server)
                .or_default()
                .insert(group.group_id);
        }
    }

    pub(super) fn uncharge(&mut self, group: &Group) {
        self.state.derived.part(group);
        for (server, amounts) in group.charges() {
            fleet_of(&mut self.state.derived, &self.state.servers, server).release(server, amounts);
            self.state
                .derived
                .groups_of
                .entry(server)
                .or_default()
                .remove(&group.group_id);
        }
    }

    pub(super) fn settle_want(&mut self, group_id: GroupId) {
        if self.state.groups.get(&group_id).is_some_and(Group::wants_learner) {
            self.state.derived.wanting.insert(group_id);
        } else {
            self.state.derived.wanting.remove(&group_id);
        }
    }
}

impl super::State {
    /// What to tell a server whose report differs from what it should hold: messages that it may have
    /// missed. Each is idempotent, so one too many does no harm.
    pub fn corrections(&self, server: ServerId, reports: &[GroupReport]) -> Vec<ToServer> {
        let epochs: BTreeMap<GroupId, Epoch> = reports
            .iter()
            .map(|report| (report.group_id, report.epoch))
            .collect();
        let members = self.derived.groups_of.get(&server).into_iter().flatten();
        let behind = members.filter(|id| epochs.get(id).is_none_or(|epoch| *epoch < self.groups[id].epoch));
        let configure = behind.map(|id| ToServer::Configure {
            config: self.config_of(&self.groups[id]),
        });
        let due = self.servers[&server]
            .to_drop
            .iter()
            .filter(|(id, _)| self.may_drop(**id));
        let drop = due.map(|(group_id, epoch)| ToServer::Drop {
            group_id: *group_id,
            epoch: *epoch,
        });
        configure.chain(drop).collect()
    }

    /// Whether leftovers of a group may be dropped. Not while its chain is short of a replica, partly down
    /// or lost: what a stale server holds may then be the most that anybody has.
    pub(super) fn may_drop(&self, group_id: GroupId) -> bool {
        self.groups.get(&group_id).is_none_or(|group| {
            let whole = !group.chain.is_empty() && group.chain.iter().all(|server| self.is_alive(*server));
            group.is_deleting() || (whole && !group.wants_learner())
        })
    }

    /// The server may hold data of a group that it is no member of.
    pub(super) fn note_drop(&mut self, server: ServerId, group_id: GroupId) {
        let epoch = self.groups[&group_id].epoch;
        let known = self
            .servers
            .get_mut(&server)
            .expect("only known servers hold groups");
        known.to_drop.insert(group_id, epoch);
        self.derived.holders.entry(group_id).or_default().insert(server);
    }

    /// The server holds no such data any more, or is a member again. Whether it was noted.
    pub(super) fn forget_drop(&mut self, server: ServerId, group_id: GroupId) -> bool {
        let Some(known) = self.servers.get_mut(&server) else {
            return false;
        };
        if let Some(holders) = self.derived.holders.get_mut(&group_id) {
            holders.remove(&server);
            if holders.is_empty() {
                self.derived.holders.remove(&group_id);
            }
        }
        known.to_drop.remove(&group_id).is_some()
    }

    /// What the members of a group are told in its present epoch.
    pub fn config_of(&self, group: &Group) -> GroupConfig {
        let member = |server: ServerId| Member {
            server_id: server,
            address: self.servers[&server].address.clone(),
        };
        GroupConfig {
            group_id: group.group_id,
            epoch: group.epoch,
            durability: group.sla.durability,
            replication_degree: group.sla.replication_degree,
            min_replicas: group.sla.min_replicas(),
            replicas: group.chain.iter().copied().map(member).collect(),
            learners: group.learner.into_iter().map(member).collect(),
            budget: group.budget.clone(),
            retention_bytes: group.sla.retention_bytes,
            retention_age_s: group.sla.retention_age_s,
            beginning: group.beginning,
        }
    }
}
