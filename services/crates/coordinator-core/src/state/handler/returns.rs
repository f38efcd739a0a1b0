//! A server returned: which places in its groups it keeps.
//!
//! Members of a persistent chain return with the logs on their disks, in any order. Members that lived on lead: they hold
//! all that was committed. When nobody did, the longest log leads. A disk that was not exchanged, and kept what it had
//! synced, has all that was committed. Another disk has less, and would have its successors truncate what it lacks. It
//! cannot always be recognised alone, but beside the others (`docs/internals/coordinator.md`, "An older copy of a disk").

use quorate_types::control::HeldGroup;
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, ServerId};

use super::epochs::Epochs;
use super::registrations::{Disk, Return};
use crate::command::Registration;
use crate::state::entity::{EventKind, EventSubject, Returned};

/// May change members, through epochs.
#[derive(Debug)]
pub struct Returns<'a> {
    epochs: Epochs<'a>,
}

impl<'a> Returns<'a> {
    pub fn new(epochs: Epochs<'a>) -> Self {
        Self { epochs }
    }

    /// Sends a server that joined its configurations. A retry may have been given replicas between the two answers.
    pub fn confirm_places(&mut self, server: ServerId) {
        for group_id in self.groups_of(server) {
            self.epochs.configs().confirm_place(group_id, server);
        }
    }

    /// Settles each of the server's places.
    pub fn settle(&mut self, back: Return, registration: &Registration) {
        for group_id in self.groups_of(back.server) {
            if back.disk == Disk::SameProcess || planted::on(Bug::RestartKeepsEpoch) {
                self.keep_place(group_id, back);
                continue;
            }
            let held = registration.held.iter().find(|held| held.group_id == group_id);
            let is_persistent = self.epochs.groups()[&group_id].is_persistent();
            match held.filter(|_| is_persistent) {
                Some(held) => self.keep_place_by_disk(group_id, back, registration, held),
                None if planted::on(Bug::EmptyMemberKept) => self.epochs.renew(group_id),
                None => self.epochs.leave(group_id, back.server),
            }
        }
    }

    /// The same process keeps all its places.
    fn keep_place(&mut self, group_id: GroupId, back: Return) {
        if back.disk == Disk::SameProcess && self.is_compared(group_id, back) {
            return self.compare_logs(group_id, back.server, Returned::LIVED_ON, back.moved);
        }
        if back.moved {
            self.epochs.renew(group_id);
        } else {
            self.epochs.configs().confirm_place(group_id, back.server);
        }
    }

    /// Whether others of the chain have returned, or may: the chain was all down.
    fn is_compared(&self, group_id: GroupId, back: Return) -> bool {
        let group = &self.epochs.groups()[&group_id];
        let may_others_return = !back.was_alive || !group.returned.is_empty();
        group.chain.contains(&back.server) && group.is_persistent() && may_others_return
    }

    /// A new process keeps the places in persistent groups that it found whole on its disk. Elsewhere it counts as
    /// failed.
    fn keep_place_by_disk(
        &mut self,
        group_id: GroupId,
        back: Return,
        registration: &Registration,
        held: &HeldGroup,
    ) {
        let id = back.server;
        let group = &self.epochs.groups()[&group_id];
        // An older copy lacks entries that others have. Without others, it is the most that is left.
        let is_last = group.chain == [id];
        let (is_chained, epoch) = (group.chain.contains(&id), group.epoch);
        if let Some(message) = disk_message(&registration.name, held.damaged, back.disk, is_last) {
            let subject = EventSubject::Replica(group_id, id);
            self.epochs
                .out()
                .event(EventKind::ServerDiskStale, subject, message);
        }
        if held.damaged || (back.disk == Disk::Older && !is_last) {
            self.epochs.leave(group_id, id);
        } else if is_chained {
            self.compare_logs(group_id, id, Returned::of(held, epoch), true);
        } else {
            // The learner's neighbours must agree with a process that remembers less.
            self.epochs.renew(group_id);
        }
    }

    /// A member of the chain is back with this log. `must_agree`: its neighbours must agree with it in a new epoch in
    /// any case.
    fn compare_logs(&mut self, group_id: GroupId, id: ServerId, returned: Returned, must_agree: bool) {
        self.epochs.note_returned(group_id, id, returned);
        let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
        let by_logs = group.chain_by_logs(|server| servers.is_alive(server));
        if !must_agree && by_logs.chain == group.chain {
            return self.epochs.configs().confirm_place(group_id, id);
        }
        for server in by_logs.older {
            let what = "holds an older copy of the group's log, as the logs of others prove: it must learn it again.";
            self.tell_stale(group_id, server, what);
        }
        if by_logs.is_short {
            let what = "lacks entries that its disk proves to be committed, and no replica has more. \
                        The group goes on without them.";
            self.tell_stale(group_id, by_logs.chain[0], what);
        }
        self.epochs
            .reconfigure(group_id, |members| members.chain = by_logs.chain);
    }

    fn tell_stale(&mut self, group_id: GroupId, server: ServerId, what: &str) {
        let message = format!("Server {} {what}", self.epochs.servers().name_of(server));
        let subject = EventSubject::Replica(group_id, server);
        self.epochs
            .out()
            .event(EventKind::ServerDiskStale, subject, message);
    }

    fn groups_of(&self, server: ServerId) -> Vec<GroupId> {
        self.epochs.groups().on(server).collect()
    }
}

/// The event of a server that came back with less than it had.
fn disk_message(name: &str, is_damaged: bool, disk: Disk, is_last: bool) -> Option<String> {
    match (is_damaged, disk) {
        (true, _) => Some(format!(
            "The group's data on the disk of server {name} is damaged: the server must learn the log again."
        )),
        (false, Disk::Older) if !is_last => Some(format!(
            "Server {name} holds an older copy of the group's log: it must learn it again."
        )),
        (false, Disk::Older) => Some(format!(
            "Server {name} came back with an older copy of its disk, and the group has no other replica. \
             It goes on with the copy: entries acknowledged after the copy was made are gone."
        )),
        (false, _) => None,
    }
}
