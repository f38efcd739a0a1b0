//! Deletions end when every live server has dropped its data; leftovers of a server that returns are settled.

use std::collections::BTreeSet;

use quorate_types::{GroupId, ServerId};

use super::configs::Configs;
use super::drops::Drops;
use super::outbox::Outbox;
use crate::command::Registration;
use crate::state::entity::{EventKind, EventSubject};
use crate::state::table::{DeletedGroups, Groups, Servers};

/// May change leftovers of servers, groups that are being deleted, and the ids of deleted groups.
#[derive(Debug)]
pub struct Leftovers<'a> {
    groups: &'a mut Groups,
    servers: &'a mut Servers,
    deleted: &'a mut DeletedGroups,
    out: Outbox<'a>,
}

impl<'a> Leftovers<'a> {
    pub fn new(
        groups: &'a mut Groups,
        servers: &'a mut Servers,
        deleted: &'a mut DeletedGroups,
        out: Outbox<'a>,
    ) -> Self {
        Self {
            groups,
            servers,
            deleted,
            out,
        }
    }

    /// A group was dissolved: waits for all live servers that may hold its data, former members too.
    pub fn await_drops(&mut self, group_id: GroupId) {
        let holders = self.servers.holders_of(group_id);
        let alive: BTreeSet<ServerId> = holders.filter(|server| self.servers.is_alive(*server)).collect();
        self.groups.change(group_id, |group| group.dropping = Some(alive));
        Configs::new(self.groups, self.servers, self.out.reborrow()).refresh_status(group_id);
        self.drops().send_for_group(group_id);
        self.finish_deletion(group_id);
    }

    /// An unknown group is deleted: the deletion may overtake its admission, which must then not come into effect.
    pub fn forbid(&mut self, group_id: GroupId) {
        self.deleted.insert(group_id);
    }

    /// A server reports that it dropped a group. The report of a member is about a drop from before it was asked to
    /// learn the group again, and is ignored.
    pub fn dropped(&mut self, server: ServerId, group_id: GroupId) {
        if self.servers.forget_leftover(server, group_id) {
            self.stop_waiting(group_id, server);
        }
    }

    /// A server failed: it drops its data when it returns, and deletions do not wait for it.
    pub fn stop_waiting_for(&mut self, server: ServerId) {
        for group_id in self.servers.to_drop_on(server) {
            self.stop_waiting(group_id, server);
        }
    }

    fn stop_waiting(&mut self, group_id: GroupId, server: ServerId) {
        let removed = self.groups.change(group_id, |group| {
            let dropping = group.dropping.as_mut();
            dropping.map(|dropping| dropping.remove(&server)).is_some()
        });
        if removed == Some(true) {
            self.finish_deletion(group_id);
        }
    }

    fn finish_deletion(&mut self, group_id: GroupId) {
        let dropping = self.groups[&group_id].dropping.as_ref();
        if !dropping.is_some_and(BTreeSet::is_empty) {
            return;
        }
        self.groups.take(group_id);
        self.deleted.insert(group_id);
        let message = "The group is deleted and its data dropped.".to_string();
        let subject = EventSubject::Group(group_id, None, None);
        self.out.event(EventKind::GroupDeleted, subject, message);
    }

    /// A server returned with data of groups that went on without it. Such a group elects it as its learner if it
    /// wants one and the replica fits. Otherwise the data is dropped, once that is safe.
    pub fn settle(&mut self, id: ServerId, registration: &Registration, is_same_process: bool) {
        let held: BTreeSet<GroupId> = registration.held.iter().map(|held| held.group_id).collect();
        if !is_same_process {
            // A new process has only the data that it found on its disk.
            for group_id in self.servers.to_drop_on(id) {
                if !held.contains(&group_id) {
                    self.dropped(id, group_id);
                }
            }
        }
        for group_id in held {
            if let Some(group) = self.groups.get(&group_id).filter(|group| !group.is_member(id)) {
                self.servers.note_leftover(id, group_id, group.epoch);
            }
        }
        for group_id in self.servers.to_drop_on(id) {
            self.groups.change(group_id, |group| {
                group.dropping.as_mut().map(|dropping| dropping.insert(id))
            });
        }
        self.drops().send_to_server(id);
    }

    /// Has a server that joined drop the data of its name's former holder.
    pub fn send_drops(&mut self, id: ServerId) {
        self.drops().send_to_server(id);
    }

    /// Writes an event for data under an id that this coordinator never admitted, or forgot. Such data is never dropped
    /// on suspicion.
    pub fn note_unknown(&mut self, id: ServerId, registration: &Registration) {
        for held in &registration.held {
            let group_id = held.group_id;
            let is_known =
                self.groups.contains_key(&group_id) || self.servers[&id].to_drop.contains_key(&group_id);
            if !is_known {
                let message = format!(
                    "Server {} holds group {group_id} at epoch {}, which this coordinator does not know. The data stays.",
                    registration.name, held.epoch
                );
                let subject = EventSubject::Replica(group_id, id);
                self.out
                    .event(EventKind::ServerHoldsUnknownGroup, subject, message);
            }
        }
    }

    fn drops(&mut self) -> Drops<'_> {
        Drops::new(self.servers, self.groups, self.out.reborrow())
    }
}
