//! Assertions that stopped replicas. A replica in quarantine is replaced once. When its replacement or the next head is
//! stopped too, the cause goes with the group. Then the group is quarantined as a whole until an operator releases it.

use quorate_types::control::ToServer;
use quorate_types::{GroupId, ServerId};

use super::epochs::Epochs;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, Group};

/// May change members, through epochs.
#[derive(Debug)]
pub struct Quarantines<'a> {
    epochs: Epochs<'a>,
}

impl<'a> Quarantines<'a> {
    pub fn new(epochs: Epochs<'a>) -> Self {
        Self { epochs }
    }

    /// An assertion stopped the server's replica. It leaves its group, unless it is the last or too many were stopped.
    pub fn reported(&mut self, server: ServerId, group_id: GroupId, reason: &str) {
        let Some(group) = self.epochs.groups().get(&group_id) else {
            return;
        };
        if !group.is_member(server) || group.quarantine.servers.contains(&server) {
            return;
        }
        let others = group.chain.iter().copied().filter(|member| *member != server);
        let is_last = group.chain.contains(&server) && !self.has_well(group, others);
        let was_whole = group.quarantine.is_whole();
        let now_ms = self.epochs.out().now_ms();
        let too_many = self
            .epochs
            .change_quarantine(group_id, |one| one.note(server, now_ms));
        let name = self.epochs.servers().name_of(server);
        let message =
            format!("An assertion stopped the replica on server {name}, which keeps its data: {reason}");
        let subject = EventSubject::Replica(group_id, server);
        self.epochs
            .out()
            .event(EventKind::GroupQuarantined, subject, message);
        if is_last || too_many || was_whole {
            return self.stop(group_id, now_ms);
        }
        self.epochs.reconfigure(group_id, |members| {
            members.chain.retain(|member| *member != server);
            members.learner = members.learner.filter(|learner| *learner != server);
        });
    }

    fn stop(&mut self, group_id: GroupId, now_ms: u64) {
        let was_whole = self.epochs.groups()[&group_id].quarantine.is_whole();
        self.epochs.change_quarantine(group_id, |one| one.stop(now_ms));
        self.epochs.configs().refresh_status(group_id);
        if !was_whole {
            let message = "The group is quarantined: it takes no appends, and no server is given a replica of it, until an \
                           operator releases it.";
            let epoch = self.epochs.groups()[&group_id].epoch;
            let subject = EventSubject::Group(group_id, Some(epoch), None);
            self.epochs
                .out()
                .event(EventKind::GroupQuarantined, subject, message.into());
        }
        self.tell(group_id);
    }

    /// Tells the servers that have the group in quarantine that all of it is.
    fn tell(&mut self, group_id: GroupId) {
        let group = &self.epochs.groups()[&group_id];
        let (epoch, servers) = (group.epoch, group.quarantine.servers.clone());
        for server in servers {
            if self.epochs.servers().is_alive(server) {
                let message = ToServer::Quarantined { group_id, epoch };
                self.epochs.out().send(server, message);
            }
        }
    }

    /// The group goes on with the replicas that are not in quarantine, and without those whose servers failed meanwhile.
    /// When all these servers are away, the chain waits for them. A persistent group does not while a restart of others
    /// would bring back as much.
    pub fn release(&mut self, group_id: GroupId) {
        let Some(group) = self.epochs.groups().get(&group_id) else {
            return self.epochs.out().reply(Reply::Unknown);
        };
        if !group.quarantine.is_whole() {
            return self.epochs.out().reply(Reply::Done);
        }
        let is_in = |server: &ServerId| group.quarantine.servers.contains(server);
        let chain = group.chain.clone();
        let (in_quarantine, sound): (Vec<ServerId>, Vec<ServerId>) = chain.into_iter().partition(is_in);
        let is_away = !self.has_well(group, sound.iter().copied());
        if is_away && !in_quarantine.is_empty() && group.is_persistent() {
            let names: Vec<String> = (in_quarantine.iter())
                .map(|server| self.epochs.servers().name_of(*server))
                .collect();
            let message = format!(
                "Every replica of the group is in quarantine or away. Restart {} first: a new process reads the log again.",
                names.join(" and ")
            );
            let code = "restart_needed";
            return self.epochs.out().reply(Reply::Conflict { code, message });
        }
        self.epochs.change_quarantine(group_id, |one| one.release());
        let message = "An operator released the group from its quarantine.".to_string();
        let subject = EventSubject::Group(group_id, None, None);
        self.epochs
            .out()
            .event(EventKind::GroupReleased, subject, message);
        if sound.is_empty() {
            // The log was in memory, and is gone with the replicas.
            for server in &in_quarantine {
                self.epochs.leave(group_id, *server);
            }
            self.epochs.drops().note_departures(group_id, &in_quarantine);
        } else {
            let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
            let mut members = group.membership();
            members.chain = sound;
            let members = members.without_failed(|server| group.is_well(server, |id| servers.is_alive(id)));
            self.epochs.reconfigure(group_id, |now| *now = members);
        }
        self.epochs.out().reply(Reply::Done);
    }

    fn has_well(&self, group: &Group, mut servers: impl Iterator<Item = ServerId>) -> bool {
        let is_alive = |id| self.epochs.servers().is_alive(id);
        servers.any(|server| group.is_well(server, is_alive))
    }

    /// The server dropped the group: it may be given a replica again.
    pub fn dropped(&mut self, server: ServerId, group_id: GroupId) {
        let holds = |one: &Group| one.quarantine.servers.contains(&server);
        if self.epochs.groups().get(&group_id).is_some_and(holds) {
            self.epochs
                .change_quarantine(group_id, |one| one.servers.remove(&server));
        }
    }

    /// The server's process ended, and its quarantines with it: a new one begins from the disk.
    pub fn process_ended(&mut self, server: ServerId) {
        let groups = self.epochs.groups().values();
        let held = groups.filter(|group| group.quarantine.servers.contains(&server));
        for group_id in held.map(|group| group.group_id).collect::<Vec<_>>() {
            self.dropped(server, group_id);
        }
    }
}
