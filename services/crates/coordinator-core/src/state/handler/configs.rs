//! Configurations are sent to members, and the status of a group follows what happens to them.

use quorate_types::config::Member;
use quorate_types::control::ToServer;
use quorate_types::{Epoch, GroupConfig, GroupId, Offset, ServerId};

use super::outbox::Outbox;
use crate::state::entity::{EventKind, EventSubject, Group};
use crate::state::table::{Groups, Servers};

/// May change what a group's members confirmed, its status and its offset ceiling; reads servers.
#[derive(Debug)]
pub struct Configs<'a> {
    groups: &'a mut Groups,
    servers: &'a Servers,
    out: Outbox<'a>,
}

/// The configuration of a group's present epoch.
pub fn config_of(servers: &Servers, group: &Group) -> GroupConfig {
    let member = |server: ServerId| Member {
        server_id: server,
        address: servers[&server].address.clone(),
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
        access: group.access,
        layout: group.layout(),
    }
}

/// The event of a new epoch: its members by name.
pub fn epoch_message(servers: &Servers, group: &Group) -> String {
    let epoch = group.epoch;
    let names: Vec<String> = group
        .chain
        .iter()
        .map(|server| servers.name_of(*server))
        .collect();
    let mut message = format!("Epoch {epoch}: chain {}", names.join(" → "));
    if names.is_empty() {
        message = format!("Epoch {epoch}: no replica is left");
    }
    if let Some(learner) = group.learner {
        message += &format!(", {} is learning", servers.name_of(learner));
    }
    message + "."
}

impl<'a> Configs<'a> {
    pub fn new(groups: &'a mut Groups, servers: &'a Servers, out: Outbox<'a>) -> Self {
        Self { groups, servers, out }
    }

    /// Sends the present configuration, if the server is alive.
    pub fn send(&mut self, group_id: GroupId, server: ServerId) {
        if self.servers.is_alive(server) {
            let config = config_of(self.servers, &self.groups[&group_id]);
            self.out.send(server, ToServer::Configure { config });
        }
    }

    /// Sends a member what it may have missed, and brings the group's status up to date.
    pub fn confirm_place(&mut self, group_id: GroupId, server: ServerId) {
        self.send(group_id, server);
        self.refresh_status(group_id);
    }

    /// Sends that nothing of the group's log is left: the server answers its clients so.
    pub fn send_lost(&mut self, group_id: GroupId, server: ServerId) {
        if self.servers.is_alive(server) {
            self.out.send(server, ToServer::Lost { group_id });
        }
    }

    /// Sends the same for each lost group that the server was one of the last to hold.
    pub fn send_all_lost(&mut self, server: ServerId) {
        for group_id in self.groups.lost() {
            if self.groups[&group_id].last_chain.contains(&server) {
                self.send_lost(group_id, server);
            }
        }
    }

    /// A member of the chain applied an epoch. Older epochs, and confirmations that change nothing, are ignored.
    pub fn applied(&mut self, server: ServerId, group_id: GroupId, epoch: Epoch) {
        let Some(group) = self.groups.get(&group_id) else {
            return;
        };
        if group.awaits_applied(epoch) && group.chain.contains(&server) {
            self.groups
                .change(group_id, |group| group.confirm_applied(server));
            self.refresh_status(group_id);
        }
    }

    /// Raises the ceiling of a group's offsets, if these have come near it.
    pub fn offsets_reached(&mut self, group_id: GroupId, commit_offset: Offset) {
        self.groups.change(group_id, |group| {
            if group.nears_ceiling(commit_offset) {
                group.raise_ceiling(commit_offset);
            }
        });
    }

    /// Writes an event when the status is another than the last event named.
    pub fn refresh_status(&mut self, group_id: GroupId) {
        let group = &self.groups[&group_id];
        let status = group.status_with(|server| self.servers.is_alive(server));
        if status == group.status {
            return;
        }
        let (epoch, message) = (
            group.epoch,
            format!("The group is {status}; it was {}.", group.status),
        );
        self.groups.change(group_id, |group| group.set_status(status));
        self.out.event(
            EventKind::GroupStatus,
            EventSubject::Group(group_id, Some(epoch), Some(status)),
            message,
        );
    }
}
