//! Epochs: every change of a group's members goes through here (Filo §4.1 "Failures"; `docs/internals/chain.md`).
//!
//! The free resources, the indexes, the epoch, the leftovers and the messages to members stay in step, whichever handler
//! asks for the change.

use std::collections::BTreeSet;

use quorate_placement::{Asked, Fleet, Profile};
use quorate_types::sla::Refusal;
use quorate_types::{Access, GroupId, Offset, ServerId};
use uuid::Uuid;

use super::configs::{Configs, config_of, epoch_message};
use super::drops::Drops;
use super::dry_run::DryRun;
use super::outbox::Outbox;
use super::replica_choice::ReplicaChoice;
use crate::state::entity::{
    EventKind, EventSubject, Group, Membership, Quarantine, Relocation, Returned, Terms,
};
use crate::state::table::{Fleets, Groups, Servers, UnreachablePairs};

/// May change groups, what servers are charged for them, and leftovers on servers. Handlers of single concerns hold it,
/// and reach those tables through its verbs alone.
#[derive(Debug)]
pub struct Epochs<'a> {
    groups: &'a mut Groups,
    servers: &'a mut Servers,
    fleets: &'a mut Fleets,
    pairs: &'a UnreachablePairs,
    /// Configurations issued since the beginning.
    epoch_changes: &'a mut u64,
    out: Outbox<'a>,
}

/// An epoch that has begun: its members are charged, and nothing has been sent yet.
#[derive(Debug)]
#[must_use = "an epoch that has begun must be issued"]
pub struct Begun {
    group_id: GroupId,
    before: Vec<ServerId>,
    /// Holds nothing of the group, and is sent nothing of its leaving it.
    empty: Option<ServerId>,
}

/// Other handlers' access.
impl<'a> Epochs<'a> {
    pub fn new(
        groups: &'a mut Groups,
        servers: &'a mut Servers,
        fleets: &'a mut Fleets,
        pairs: &'a UnreachablePairs,
        epoch_changes: &'a mut u64,
        out: Outbox<'a>,
    ) -> Self {
        Self {
            groups,
            servers,
            fleets,
            pairs,
            epoch_changes,
            out,
        }
    }

    pub fn groups(&self) -> &Groups {
        self.groups
    }

    pub fn servers(&self) -> &Servers {
        self.servers
    }

    pub fn fleets(&self) -> &Fleets {
        self.fleets
    }

    pub fn pairs(&self) -> &UnreachablePairs {
        self.pairs
    }

    pub fn out(&mut self) -> &mut Outbox<'a> {
        &mut self.out
    }

    pub fn configs(&mut self) -> Configs<'_> {
        Configs::new(self.groups, self.servers, self.out.reborrow())
    }

    pub fn drops(&mut self) -> Drops<'_> {
        Drops::new(self.servers, self.groups, self.out.reborrow())
    }

    pub fn dry_run<'b>(&'b mut self, profile: &'b Profile) -> DryRun<'b> {
        DryRun::new(self.fleets, self.groups, self.servers, self.pairs, profile)
    }

    pub fn replica_choice(&mut self) -> ReplicaChoice<'_> {
        ReplicaChoice::new(self.fleets, self.groups, self.servers, self.pairs)
    }
}

/// Changes of members.
impl Epochs<'_> {
    /// Issues an epoch with other members. A missing replica gets a learner in the same epoch when a server fits.
    pub fn reconfigure(&mut self, group_id: GroupId, change: impl FnOnce(&mut Membership)) {
        let begun = self.begin(group_id, change);
        self.issue(begun);
    }

    /// Issues an epoch with the same members, who must agree again.
    pub fn renew(&mut self, group_id: GroupId) {
        self.reconfigure(group_id, |_| {});
    }

    /// Charges servers on trial for this group instead of another with the same members.
    pub fn charge_on_trial(&mut self, instead_of: &Group, group: &Group) {
        self.fleets.let_go(self.servers, instead_of);
        self.fleets.take_in(self.servers, group);
    }

    /// The servers of a placed group that is not to be: they are charged for it no more.
    pub fn give_up_place(&mut self, group: &Group) {
        self.fleets.release(self.servers, &group.charges());
    }

    /// Charges the members of a project's groups for another shared guarantee. No epoch begins: heads hear of their shares
    /// from the coordinators each interval.
    pub fn share(&mut self, project_id: Uuid, tokens_per_s: u64) {
        let groups: Vec<GroupId> = self
            .groups
            .of_project(project_id)
            .map(|group| group.group_id)
            .collect();
        for group_id in groups {
            let mut group = self.groups.take(group_id).expect("it was found");
            self.fleets.let_go(self.servers, &group);
            group.shared_tokens_per_s = tokens_per_s;
            self.fleets.take_in(self.servers, &group);
            self.groups.insert(group);
        }
    }

    /// Begins an epoch, and charges its members; [`Epochs::issue`] must follow.
    pub fn begin(&mut self, group_id: GroupId, change: impl FnOnce(&mut Membership)) -> Begun {
        self.begin_with(group_id, |group| {
            let mut members = group.membership();
            change(&mut members);
            group.enter_epoch(members);
        })
    }

    /// Issues an epoch with another SLA, whose demands the members are charged.
    pub fn resize(&mut self, group_id: GroupId, terms: Terms) {
        let now_ms = self.out.now_ms();
        let begun = self.begin_with(group_id, |group| {
            (group.sla, group.demands, group.budget) = (terms.sla, terms.demands, terms.budget);
            (group.sla_revision, group.sla_since_ms) = (terms.revision, Some(now_ms));
            group.partition = terms.partition;
            group.relocation = group.relocation.take().filter(|one| one.next.is_none());
            group.enter_epoch(group.membership());
        });
        self.issue(begun);
    }

    /// Has replicas of the group move, or none any more. The servers that they move to are charged.
    pub fn set_relocation(&mut self, group_id: GroupId, relocation: Option<Relocation>) {
        let mut group = self.groups.take(group_id).expect("only known groups move");
        self.fleets.let_go(self.servers, &group);
        group.relocation = relocation;
        self.fleets.take_in(self.servers, &group);
        self.groups.insert(group);
    }

    /// Issues an epoch in which clients may use another part of the service.
    pub fn set_access(&mut self, group_id: GroupId, access: Access) {
        let begun = self.begin_with(group_id, |group| {
            group.access = access;
            group.enter_epoch(group.membership());
        });
        self.issue(begun);
    }

    /// Notes the access of a group that is in no state for another epoch: the next one has it.
    pub fn note_access(&mut self, group_id: GroupId, access: Access) {
        self.groups.change(group_id, |group| group.access = access);
    }

    /// Issues an epoch without a server that lost its data of the group, or whose data cannot be trusted. Without any
    /// replica left, the group is lost.
    pub fn leave(&mut self, group_id: GroupId, server: ServerId) {
        let mut begun = self.begin_with(group_id, |group| {
            let was_chained = group.chain.contains(&server);
            let mut members = group.membership();
            members.chain.retain(|member| *member != server);
            members.learner = members.learner.filter(|learner| *learner != server);
            if was_chained {
                group.last_chain.insert(server);
            }
            if members.chain.is_empty() {
                members.learner = None;
                group.lost = true;
            }
            group.enter_epoch(members);
        });
        begun.empty = Some(server);
        self.issue(begun);
        // It came back with nothing: there is nothing to drop.
        self.drops().forget(server, group_id);
        if self.groups[&group_id].lost {
            for server in self.groups[&group_id].last_chain.clone() {
                self.configs().send_lost(group_id, server);
            }
        }
    }

    /// A chain that others join has all there is: former members have nothing to say about it.
    pub fn forget_last_chain(&mut self, group_id: GroupId) {
        self.groups.change(group_id, |group| group.last_chain.clear());
    }

    /// Changes what is known of the group's quarantine.
    pub fn change_quarantine<T>(
        &mut self,
        group_id: GroupId,
        change: impl FnOnce(&mut Quarantine) -> T,
    ) -> T {
        let changed = self
            .groups
            .change(group_id, |group| change(&mut group.quarantine));
        changed.expect("only known groups are quarantined")
    }

    /// Notes the log that a member of the chain returned with.
    pub fn note_returned(&mut self, group_id: GroupId, server: ServerId, returned: Returned) {
        self.groups
            .change(group_id, |group| group.note_returned(server, returned));
    }

    fn begin_with(&mut self, group_id: GroupId, change: impl FnOnce(&mut Group)) -> Begun {
        let mut group = (self.groups.take(group_id)).expect("only known groups are reconfigured");
        let before: Vec<ServerId> = group.members().collect();
        self.fleets.let_go(self.servers, &group);
        change(&mut group);
        self.fleets.take_in(self.servers, &group);
        self.groups.insert(group);
        Begun {
            group_id,
            before,
            empty: None,
        }
    }

    /// Elects the learner that is missing, and sends the epoch to all who are members or were.
    pub fn issue(&mut self, begun: Begun) {
        let (group_id, before) = (begun.group_id, begun.before);
        if self.groups[&group_id].wants_learner()
            && let Some(learner) = self.replica_choice().learner(group_id)
        {
            let group = &self.groups[&group_id];
            self.fleets
                .of(self.servers, learner)
                .add_shared(learner, &group.chain);
            self.groups
                .change(group_id, |group| group.learner = Some(learner));
        }
        self.groups.change(group_id, Group::settle_departures);
        self.drops().note_departures(group_id, &before);
        self.announce(group_id);
        for server in before {
            // It stops and names the new head to its clients; its data is dropped when that is safe.
            if !self.groups[&group_id].is_member(server) && Some(server) != begun.empty {
                self.configs().send(group_id, server);
            }
        }
        self.drops().send_for_group(group_id);
    }

    /// Sends every member the present configuration, and writes an event of it.
    pub fn announce(&mut self, group_id: GroupId) {
        let group = &self.groups[&group_id];
        let members: Vec<ServerId> = group.members().collect();
        let epoch = group.epoch;
        let message = epoch_message(self.servers, group);
        self.out.issued(&config_of(self.servers, group));
        *self.epoch_changes += 1;
        let subject = EventSubject::Group(group_id, Some(epoch), None);
        self.out.event(EventKind::GroupConfigured, subject, message);
        for server in members {
            // A member's data is wanted again.
            self.drops().forget(server, group_id);
            self.configs().send(group_id, server);
        }
        self.configs().refresh_status(group_id);
    }
}

/// First and last epochs.
impl Epochs<'_> {
    /// Finds servers for a new group, and charges them.
    pub fn place(&mut self, profile: &Profile, asked: Asked<'_>) -> Result<Vec<ServerId>, Refusal> {
        let admit = |fleet: &mut Fleet| quorate_placement::admit(fleet, profile, asked);
        self.fleets.try_in_region(&asked.sla.region, admit)
    }

    /// Adds a group whose servers are charged already; [`Epochs::announce`] must follow.
    pub fn found(&mut self, group: Group) {
        self.fleets.count_shared(&group);
        self.groups.insert(group);
    }

    /// Begins the last epoch of a group that is deleted. Its members, and the last holders of a lost log, are to drop
    /// their data.
    pub fn dissolve(&mut self, group_id: GroupId) {
        let Some(mut group) = self.groups.take(group_id) else {
            return;
        };
        let last_holders = group.last_chain.iter().copied().filter(|_| group.lost);
        let holders: Vec<ServerId> = group.members().chain(last_holders).collect();
        self.fleets.let_go(self.servers, &group);
        group.dissolve();
        self.groups.insert(group);
        self.drops().note_departures(group_id, &holders);
    }

    /// Places a lost group again by its demand vectors, and begins an epoch with an empty log. The offset at which the
    /// log begins; [`Epochs::announce_reset`] must follow.
    pub fn reset(
        &mut self,
        group_id: GroupId,
        profile: &Profile,
        entries_before: u64,
        bytes_before: u64,
    ) -> Result<(Offset, Vec<ServerId>), Refusal> {
        // The lost chain's charges are free for the new one.
        let mut group = self.groups.take(group_id).expect("only known groups are reset");
        self.fleets.let_go(self.servers, &group);
        let (sla, shared) = (&group.sla, group.shared());
        let again = |fleet: &mut Fleet| {
            let demands = group.whole_demands();
            quorate_placement::place_again(fleet, profile, Asked { sla, shared }, &demands)
        };
        let placed = self.fleets.try_in_region(&group.sla.region, again);
        let outcome = placed.map(|chain| {
            let before: BTreeSet<ServerId> =
                group.members().chain(group.last_chain.iter().copied()).collect();
            let offset = group.offset_ceiling;
            group.reset(chain, entries_before, bytes_before);
            self.fleets.count_shared(&group);
            (offset, before.into_iter().collect())
        });
        if outcome.is_err() {
            self.fleets.take_in(self.servers, &group);
        }
        self.groups.insert(group);
        outcome
    }

    /// Sends the epoch of a reset; `before` are to drop the lost log.
    pub fn announce_reset(&mut self, group_id: GroupId, before: &[ServerId]) {
        self.drops().note_departures(group_id, before);
        self.announce(group_id);
        self.drops().send_for_group(group_id);
    }
}
