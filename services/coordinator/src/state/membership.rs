//! Servers register, return and fail.

use std::collections::BTreeSet;

use quorate_types::control::{RefuseCode, ToServer};
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, ServerId};

use super::command::{Effect, Proof, Registration, Reply};
use super::event::EventKind;
use super::returned::Returned;
use super::server::Server;
use super::{Change, State, Subject};

pub type Refused = (RefuseCode, String);

/// Whether what a server holds is what it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// Nothing was restarted: memory and disk.
    SameProcess,
    /// A new process on the data folder of the one that was known.
    Kept,
    /// A new process on an older copy of the folder.
    Older,
}

impl Disk {
    fn of(before: &Server, registration: &Registration, same_process: bool) -> Self {
        let ran_before = &registration.previous_incarnations;
        if same_process {
            Disk::SameProcess
        } else if ran_before.is_empty() || ran_before.contains(&before.incarnation) {
            Disk::Kept
        } else {
            Disk::Older
        }
    }
}

impl Change<'_> {
    pub(super) fn register(&mut self, registration: &Registration) {
        let refused = self.state.vet(registration, self.now_ms);
        let outcome = refused.and_then(|()| match &registration.proof {
            Proof::JoinToken {
                digest,
                credential_digest,
            } => self.join(registration, digest, credential_digest),
            Proof::Credential(digest) => self.come_back(registration, digest),
        });
        if let Err((code, message)) = outcome {
            self.effects.push(Effect::Refuse { code, message });
        }
    }

    /// With a join token: a new server. The same process may try again if the answer was lost.
    fn join(&mut self, registration: &Registration, digest: &str, credential: &str) -> Result<(), Refused> {
        let (again, auxiliary) = self.state.check_token(registration, digest, self.now_ms)?;
        let known = again.or_else(|| self.state.abandoned(&registration.name));
        let server_id = known.unwrap_or_else(|| self.next_server_id());
        // What its name's former holder may still have on disk is still to be dropped.
        let to_drop = self
            .state
            .servers
            .get(&server_id)
            .map(|s| s.to_drop.clone())
            .unwrap_or_default();
        self.retire_credential(server_id);
        let token = self.state.join_tokens.get_mut(digest).expect("looked up above");
        token.used_by = Some((server_id, registration.incarnation.clone()));
        let server = Server {
            server_id,
            name: registration.name.clone(),
            address: registration.address.clone(),
            region: registration.region.clone(),
            failure_domain: registration.failure_domain.clone(),
            capacity: registration.capacity,
            auxiliary,
            credential_digest: credential.to_string(),
            incarnation: registration.incarnation.clone(),
            version: registration.version.clone(),
            machine: registration.machine.clone(),
            alive: true,
            storage_fault: None,
            drain: None,
            slow: None,
            to_drop,
            registered_at_ms: self.now_ms,
            failed_at_ms: None,
        };
        let mut message = format!("Server {} joined from {}.", server.name, server.address);
        message += &self.state.said_of_foreign(&server);
        self.state.servers.insert(server_id, server);
        self.state.list_server(server_id);
        self.effects.push(Effect::Accept {
            server: server_id,
            joined: true,
        });
        self.event(EventKind::ServerRegistered, Subject::Server(server_id), message);
        // A retry may have been given replicas between the two answers.
        for group_id in self.groups_of(server_id) {
            self.send_configuration(group_id, server_id);
            self.refresh_status(group_id);
        }
        self.send_drops(server_id);
        self.note_unknown(server_id, registration);
        Ok(())
    }

    /// With a credential: a known server, in the same process or in a new one.
    fn come_back(&mut self, registration: &Registration, digest: &str) -> Result<(), Refused> {
        let id = self.state.holder_of(digest)?;
        let before = self.state.servers[&id].clone();
        self.state.derived.by_name.remove(&before.name);
        let same_process = before.incarnation == registration.incarnation;
        let server = self.state.servers.get_mut(&id).expect("known by its credential");
        server.name = registration.name.clone();
        server.address = registration.address.clone();
        server.failure_domain = registration.failure_domain.clone();
        server.capacity = registration.capacity;
        server.incarnation = registration.incarnation.clone();
        server.version = registration.version.clone();
        server.machine = registration.machine.clone();
        server.alive = true;
        server.failed_at_ms = None;
        if !same_process {
            // A new process may have been given another disk, and shows anew whether it is slow.
            server.storage_fault = None;
            server.slow = None;
        }
        self.state.list_server(id);
        self.effects.push(Effect::Accept {
            server: id,
            joined: false,
        });
        if !before.alive || !same_process {
            let how = if same_process {
                "is reachable again"
            } else {
                "was started again"
            };
            let mut message = format!("Server {} {how} at {}.", registration.name, registration.address);
            message += &self.state.said_of_foreign(&self.state.servers[&id]);
            self.event(EventKind::ServerReturned, Subject::Server(id), message);
        }
        let moved = before.address != registration.address;
        let disk = Disk::of(&before, registration, same_process);
        self.settle_memberships(id, registration, disk, moved, before.alive);
        self.settle_leftovers(id, registration, same_process);
        self.note_unknown(id, registration);
        self.remind(id);
        Ok(())
    }

    /// Which of its places a server keeps: all in the same process; in a new one those of persistent
    /// groups that it found whole on its disk. The others count as failed.
    fn settle_memberships(
        &mut self,
        id: ServerId,
        registration: &Registration,
        disk: Disk,
        moved: bool,
        was_alive: bool,
    ) {
        for group_id in self.groups_of(id) {
            let group = &self.state.groups[&group_id];
            let is_chained = group.chain.contains(&id);
            // Others have returned, or may: in a chain that was all down.
            let is_compared =
                is_chained && group.is_persistent() && (!was_alive || !group.returned.is_empty());
            if disk == Disk::SameProcess && is_compared {
                self.settle_returned(group_id, id, Returned::LIVED_ON, moved);
                continue;
            }
            if disk == Disk::SameProcess || planted::on(Bug::RestartKeepsEpoch) {
                if moved {
                    // Its neighbours must find it elsewhere.
                    self.reconfigure(group_id, |_| {});
                } else {
                    self.send_configuration(group_id, id);
                    self.refresh_status(group_id);
                }
                continue;
            }
            let held = registration.held.iter().find(|held| held.group_id == group_id);
            let Some(held) = held.filter(|_| group.is_persistent()) else {
                if planted::on(Bug::EmptyMemberKept) {
                    self.reconfigure(group_id, |_| {});
                    continue;
                }
                self.leave(group_id, id);
                continue;
            };
            // An older copy lacks entries that others have; if there are no others, it is the most that is left.
            let is_last = group.chain == [id];
            let told = said_of_disk(&registration.name, held.damaged, disk, is_last);
            if let Some(message) = told {
                self.event(
                    EventKind::ServerDiskStale,
                    Subject::Replica(group_id, id),
                    message,
                );
            }
            if held.damaged || (disk == Disk::Older && !is_last) {
                self.leave(group_id, id);
            } else if is_chained {
                let returned = Returned::of(held, self.state.groups[&group_id].epoch);
                self.settle_returned(group_id, id, returned, true);
            } else {
                // Its neighbours must agree anew with a process that remembers less.
                self.reconfigure(group_id, |_| {});
            }
        }
    }

    /// What a server that registers may have to know besides its configurations.
    fn remind(&mut self, id: ServerId) {
        for group_id in self.state.derived.lost.iter().copied().collect::<Vec<_>>() {
            if self.state.groups[&group_id].last_chain.contains(&id) {
                self.tell_lost(group_id, id);
            }
        }
        if self.state.servers[&id].drain.is_some() {
            self.tell_drain(id);
        }
    }

    /// What it holds of groups that went on without it: such a group elects it as its learner if it wants
    /// one and the replica fits; otherwise the data is dropped, once that is safe.
    fn settle_leftovers(&mut self, id: ServerId, registration: &Registration, same_process: bool) {
        let held: BTreeSet<GroupId> = registration.held.iter().map(|held| held.group_id).collect();
        if !same_process {
            let noted: Vec<GroupId> = self.state.servers[&id].to_drop.keys().copied().collect();
            // A new process has only what it found on disk.
            for group_id in noted.into_iter().filter(|group_id| !held.contains(group_id)) {
                self.dropped(id, group_id);
            }
        }
        for group_id in held {
            if self
                .state
                .groups
                .get(&group_id)
                .is_some_and(|group| !group.is_member(id))
            {
                self.state.note_drop(id, group_id);
            }
        }
        for group_id in self.state.servers[&id]
            .to_drop
            .keys()
            .copied()
            .collect::<Vec<_>>()
        {
            if let Some(dropping) = self
                .state
                .groups
                .get_mut(&group_id)
                .and_then(|g| g.dropping.as_mut())
            {
                dropping.insert(id);
            }
        }
        self.send_drops(id);
    }

    /// Data under an id that this coordinator never admitted, or forgot: never dropped on suspicion.
    fn note_unknown(&mut self, id: ServerId, registration: &Registration) {
        for held in &registration.held {
            let known = self.state.groups.contains_key(&held.group_id)
                || self.state.servers[&id].to_drop.contains_key(&held.group_id);
            if !known {
                let message = format!(
                    "Server {} holds group {} at epoch {}, which this coordinator does not know. It is left alone.",
                    registration.name, held.group_id, held.epoch
                );
                self.event(
                    EventKind::ServerHoldsUnknownGroup,
                    Subject::Replica(held.group_id, id),
                    message,
                );
            }
        }
    }

    pub(super) fn servers_failed(&mut self, servers: &[ServerId]) {
        let mut affected = BTreeSet::new();
        for id in servers.iter().copied() {
            let Some(server) = self.state.servers.get_mut(&id) else {
                continue;
            };
            affected.extend(
                self.state
                    .derived
                    .groups_of
                    .get(&id)
                    .into_iter()
                    .flatten()
                    .copied(),
            );
            if !server.alive {
                continue;
            }
            server.alive = false;
            server.failed_at_ms = Some(self.now_ms);
            let (name, server_was_drained) = (server.name.clone(), server.is_drained());
            self.state.list_server(id);
            self.effects.push(Effect::Disconnect { server: id });
            let (kind, message) = if server_was_drained {
                let message = format!("Server {name}, which was drained, has stopped.");
                (EventKind::ServerStopped, message)
            } else {
                let message = format!("Server {name} has failed: its lease or its connection is gone.");
                (EventKind::ServerFailed, message)
            };
            self.event(kind, Subject::Server(id), message);
            self.stop_waiting_for_drops(id);
        }
        // All of them are marked first, so that chains which fail as a whole are kept as they were.
        self.splice_all(affected);
    }

    /// It will not come back, and what it had on disk is gone: what only it held is lost.
    pub(super) fn forget_server(&mut self, id: ServerId) {
        let Some(server) = self.state.servers.get(&id) else {
            return self.effects.push(Effect::Reply(Reply::Unknown));
        };
        if server.alive {
            let message = format!(
                "Server {} is alive; drain it, or stop it, before it is given up.",
                server.name
            );
            let reply = Reply::Conflict {
                code: "server_alive",
                message,
            };
            return self.effects.push(Effect::Reply(reply));
        }
        self.effects.push(Effect::Reply(Reply::Done));
        if server.is_given_up() {
            return;
        }
        for group_id in self.groups_of(id) {
            self.leave(group_id, id);
        }
        for group_id in self.state.servers[&id]
            .to_drop
            .keys()
            .copied()
            .collect::<Vec<_>>()
        {
            self.dropped(id, group_id);
        }
        let server = self.state.servers.get_mut(&id).expect("looked up above");
        let digest = std::mem::take(&mut server.credential_digest);
        (server.drain, server.slow) = (None, None);
        self.state.derived.by_credential.remove(&digest);
        self.state.list_server(id);
        let message = format!(
            "Server {} is given up: it cannot come back, and what only it held is lost. A new join token may use its name.",
            self.server_name(id)
        );
        self.event(EventKind::ServerForgotten, Subject::Server(id), message);
    }

    pub(super) fn storage_fault(&mut self, id: ServerId, fault: Option<String>) {
        let Some(server) = self.state.servers.get_mut(&id) else {
            return;
        };
        if server.storage_fault == fault {
            return;
        }
        let message = match &fault {
            Some(fault) => format!(
                "Server {} has a storage fault and takes no new replicas: {fault}",
                server.name
            ),
            None => format!("The storage fault of server {} is gone.", server.name),
        };
        server.storage_fault = fault;
        self.state.list_server(id);
        self.event(EventKind::ServerStorageFault, Subject::Server(id), message);
    }

    pub(super) fn peer_unreachable(&mut self, server: ServerId, peer: ServerId) {
        let message = format!(
            "Server {} cannot reach {}, which still has its lease.",
            self.server_name(server),
            self.server_name(peer)
        );
        self.event(EventKind::ServerUnreachable, Subject::Server(peer), message);
    }

    pub(super) fn groups_of(&self, id: ServerId) -> Vec<GroupId> {
        self.state
            .derived
            .groups_of
            .get(&id)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    pub(super) fn send_drops(&mut self, id: ServerId) {
        for (group_id, epoch) in self.state.servers[&id].to_drop.clone() {
            if !self.state.may_drop(group_id) {
                continue;
            }
            self.effects.push(Effect::Send {
                server: id,
                message: ToServer::Drop { group_id, epoch },
            });
        }
    }

    fn retire_credential(&mut self, id: ServerId) {
        if let Some(server) = self.state.servers.get(&id) {
            let (digest, name, region) = (
                server.credential_digest.clone(),
                server.name.clone(),
                server.region.clone(),
            );
            self.state.derived.by_credential.remove(&digest);
            self.state.derived.by_name.remove(&name);
            if let Some(fleet) = self.state.derived.fleets.get_mut(&region) {
                fleet.set_available(id, false);
            }
        }
    }

    fn next_server_id(&self) -> ServerId {
        ServerId(self.state.servers.last_key_value().map_or(0, |(id, _)| id.0) + 1)
    }
}

impl State {
    /// Whether a registration would be accepted. Asked before anything is kept of it: whoever has neither a join
    /// token nor a credential shall not fill the coordinator's disk.
    pub fn vet(&self, registration: &Registration, now_ms: u64) -> Result<(), Refused> {
        if let Some(problem) = registration.problem() {
            return refuse(RefuseCode::RegisterInvalid, problem);
        }
        match &registration.proof {
            Proof::JoinToken { digest, .. } => {
                let (again, _) = self.check_token(registration, digest, now_ms)?;
                let own = again.or_else(|| self.abandoned(&registration.name));
                if own.is_none() {
                    self.name_is_free(&registration.name, None)?;
                }
                // By a token somebody vouches for a new machine, which may have the address of one that is no more,
                // once that one has failed.
                self.address_is_free(&registration.address, own)
            }
            Proof::Credential(digest) => {
                let id = self.holder_of(digest)?;
                self.name_is_free(&registration.name, Some(id))?;
                if self.servers[&id].region != registration.region {
                    let message = "a server cannot change its region: join it as a new one".into();
                    return refuse(RefuseCode::RegisterInvalid, message);
                }
                let had = &self.servers[&id].address;
                if had.eq_ignore_ascii_case(&registration.address) {
                    return Ok(());
                }
                self.address_is_free(&registration.address, Some(id))
            }
        }
    }

    fn holder_of(&self, credential_digest: &str) -> Result<ServerId, Refused> {
        let known = self.derived.by_credential.get(credential_digest).copied();
        known.ok_or_else(|| {
            let message = "this fleet does not know the credential; was the coordinator's data folder replaced, or \
                           the server given up with `forget`?";
            (RefuseCode::CredentialInvalid, message.into())
        })
    }

    /// Whether the token admits this server: the server that it made already, if this very process asks
    /// again, and whether it is for an auxiliary one.
    fn check_token(
        &self,
        registration: &Registration,
        digest: &str,
        now_ms: u64,
    ) -> Result<(Option<ServerId>, bool), Refused> {
        let refused = |code, message: &str| Err((code, message.to_string()));
        let Some(token) = self.join_tokens.get(digest) else {
            return refused(
                RefuseCode::JoinTokenInvalid,
                "this fleet did not issue the join token",
            );
        };
        if let Some((server, incarnation)) = &token.used_by {
            let known = &self.servers[server].incarnation;
            if [incarnation, known]
                .iter()
                .any(|used| **used != registration.incarnation)
            {
                let message = "the join token has been used; a token works once: issue another";
                return refused(RefuseCode::JoinTokenUsed, message);
            }
        }
        if token.revoked {
            let message = "the join token was revoked: issue another";
            return refused(RefuseCode::JoinTokenInvalid, message);
        }
        if token.terms.expires_at_ms <= now_ms {
            let message = "the join token has expired: issue another";
            return refused(RefuseCode::JoinTokenExpired, message);
        }
        let bound_to = token.terms.name.as_ref();
        if bound_to.is_some_and(|name| *name != registration.name) {
            let message = "the join token was issued for a server of another name";
            return refused(RefuseCode::JoinTokenInvalid, message);
        }
        Ok((
            token.used_by.as_ref().map(|(server, _)| *server),
            token.terms.auxiliary,
        ))
    }

    fn name_is_free(&self, name: &str, own: Option<ServerId>) -> Result<(), Refused> {
        match self.derived.by_name.get(name) {
            Some(other) if Some(*other) != own => {
                let message = format!(
                    "another server is named {name:?}: choose a name of its own with --name, or, if that is this very \
                     machine and it never got its credential, have it given up with `forget` first"
                );
                refuse(RefuseCode::NameTaken, message)
            }
            _ => Ok(()),
        }
    }

    /// Clients and peers would be sent to whoever listens there, and a certificate for its host be given to two: no
    /// server takes the address of one that is alive for its own.
    fn address_is_free(&self, address: &str, own: Option<ServerId>) -> Result<(), Refused> {
        let mut others =
            (self.servers.values()).filter(|server| server.alive && Some(server.server_id) != own);
        let holder = others.find(|server| server.address.eq_ignore_ascii_case(address));
        match holder {
            Some(holder) => {
                let name = &holder.name;
                let message = format!(
                    "server {name:?}, which is alive, has the address {address}: advertise another, or, if this one \
                     replaces it, try again when it has failed"
                );
                refuse(RefuseCode::RegisterInvalid, message)
            }
            None => Ok(()),
        }
    }

    /// A server of that name which is down and holds nothing: it never got its credential, or was
    /// wiped. A new join token lets it start over under its name.
    fn abandoned(&self, name: &str) -> Option<ServerId> {
        let id = *self.derived.by_name.get(name)?;
        let busy = self
            .derived
            .groups_of
            .get(&id)
            .is_some_and(|groups| !groups.is_empty());
        (!self.is_alive(id) && !busy).then_some(id)
    }
}

/// What its owner is told of a server that came back with less than it had.
fn said_of_disk(name: &str, is_damaged: bool, disk: Disk, is_last: bool) -> Option<String> {
    match (is_damaged, disk) {
        (true, _) => Some(format!(
            "What server {name} found of the group on its disk is damaged: it learns it anew."
        )),
        (false, Disk::Older) if !is_last => Some(format!(
            "What server {name} holds of the group is an older copy: it learns it anew."
        )),
        (false, Disk::Older) => Some(format!(
            "Server {name} came back with an older copy of its disk, and the group has no other replica: \
             it goes on with that, and entries that were acknowledged after the copy was made are gone."
        )),
        (false, _) => None,
    }
}

fn refuse(code: RefuseCode, message: String) -> Result<(), Refused> {
    Err((code, message))
}
