//! The servers of the fleet, with indexes by credential, by name and by leftover data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use quorate_types::sla::ScarceResource;
use quorate_types::{Epoch, GroupId, ServerId};
use serde::{Deserialize, Serialize};

use crate::command::{Digest, Registration};
use crate::state::entity::{Drain, Server};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Servers {
    by_id: BTreeMap<ServerId, Server>,
    #[serde(skip)]
    by_credential: BTreeMap<Digest, ServerId>,
    #[serde(skip)]
    by_name: BTreeMap<String, ServerId>,
    /// Servers that replicas should leave.
    #[serde(skip)]
    vacating: BTreeSet<ServerId>,
    /// Servers that may hold data of a group without being members: the inverse of `to_drop`.
    #[serde(skip)]
    holders: BTreeMap<GroupId, BTreeSet<ServerId>>,
}

impl Deref for Servers {
    type Target = BTreeMap<ServerId, Server>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl<'a> IntoIterator for &'a Servers {
    type Item = (&'a ServerId, &'a Server);
    type IntoIter = std::collections::btree_map::Iter<'a, ServerId, Server>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_id.iter()
    }
}

/// Questions.
impl Servers {
    pub fn is_alive(&self, id: ServerId) -> bool {
        self.by_id.get(&id).is_some_and(|server| server.alive)
    }

    pub fn name_of(&self, id: ServerId) -> String {
        self.by_id
            .get(&id)
            .map_or_else(|| format!("server {id}"), |server| server.name.clone())
    }

    pub fn named(&self, name: &str) -> Option<ServerId> {
        self.by_name.get(name).copied()
    }

    pub fn with_credential(&self, digest: &str) -> Option<ServerId> {
        self.by_credential.get(digest).copied()
    }

    pub fn next_id(&self) -> ServerId {
        ServerId(self.by_id.last_key_value().map_or(0, |(id, _)| id.0) + 1)
    }

    pub fn vacating(&self) -> Vec<ServerId> {
        self.vacating.iter().copied().collect()
    }

    /// Servers that may hold data of the group without being members.
    pub fn holders_of(&self, group_id: GroupId) -> impl Iterator<Item = ServerId> + '_ {
        self.holders.get(&group_id).into_iter().flatten().copied()
    }

    /// Groups whose data the server is to drop.
    pub fn to_drop_on(&self, id: ServerId) -> Vec<GroupId> {
        self.by_id[&id].to_drop.keys().copied().collect()
    }
}

/// Transitions.
impl Servers {
    /// Adds a server, or replaces the entry that its name's former holder left.
    pub fn insert(&mut self, server: Server) {
        let id = server.server_id;
        self.unindex(id);
        self.by_id.insert(id, server);
        self.index(id);
    }

    pub fn return_with(&mut self, id: ServerId, registration: &Registration) {
        self.change(id, |server| server.return_with(registration));
    }

    pub fn fail(&mut self, id: ServerId, now_ms: u64) {
        self.change(id, |server| {
            server.alive = false;
            server.failed_at_ms = Some(now_ms);
        });
    }

    /// No credential belongs to it from here on.
    pub fn give_up(&mut self, id: ServerId) {
        self.change(id, |server| {
            server.credential_digest.clear();
            (server.drain, server.slow) = (None, None);
            server.set_storage_fault(None);
        });
    }

    pub fn set_storage_fault(&mut self, id: ServerId, fault: Option<String>) {
        self.change(id, |server| server.set_storage_fault(fault));
    }

    pub fn set_fault_lasts(&mut self, id: ServerId) {
        self.change(id, |server| server.fault_lasts = true);
    }

    pub fn set_slow(&mut self, id: ServerId, cause: Option<String>) {
        self.change(id, |server| server.slow = cause);
    }

    pub fn set_estimated(&mut self, id: ServerId, permille: [u16; 3]) {
        self.change(id, |server| server.estimated_permille = permille);
    }

    pub fn begin_drain(&mut self, id: ServerId, now_ms: u64) {
        let drain = Drain {
            since_ms: now_ms,
            drained_at_ms: None,
            scarce: None,
        };
        self.change(id, |server| server.drain = Some(drain));
    }

    pub fn call_off_drain(&mut self, id: ServerId) {
        self.change(id, |server| server.drain = None);
    }

    /// Nothing is left on a draining server.
    pub fn finish_drain(&mut self, id: ServerId, now_ms: u64) {
        self.change_drain(id, |drain| {
            drain.drained_at_ms = Some(now_ms);
            drain.scarce = None;
        });
    }

    pub fn set_scarce_for_drain(&mut self, id: ServerId, scarce: Option<ScarceResource>) {
        self.change_drain(id, |drain| drain.scarce = scarce);
    }

    /// The server may hold data of a group that it left in this epoch.
    pub fn note_leftover(&mut self, id: ServerId, group_id: GroupId, epoch: Epoch) {
        let server = self.by_id.get_mut(&id).expect("only known servers hold groups");
        server.to_drop.insert(group_id, epoch);
        self.holders.entry(group_id).or_default().insert(id);
    }

    /// The server holds no such data any more, or is a member again. Whether it was noted.
    pub fn forget_leftover(&mut self, id: ServerId, group_id: GroupId) -> bool {
        let Some(server) = self.by_id.get_mut(&id) else {
            return false;
        };
        if let Some(holders) = self.holders.get_mut(&group_id) {
            holders.remove(&id);
            if holders.is_empty() {
                self.holders.remove(&group_id);
            }
        }
        server.to_drop.remove(&group_id).is_some()
    }

    fn change_drain(&mut self, id: ServerId, change: impl FnOnce(&mut Drain)) {
        self.change(id, |server| {
            if let Some(drain) = &mut server.drain {
                change(drain);
            }
        });
    }

    fn change(&mut self, id: ServerId, change: impl FnOnce(&mut Server)) {
        self.unindex(id);
        if let Some(server) = self.by_id.get_mut(&id) {
            change(server);
        }
        self.index(id);
    }
}

/// Indexes.
impl Servers {
    pub fn reindex(&mut self) {
        let ids: Vec<ServerId> = self.by_id.keys().copied().collect();
        *self = Self {
            by_id: std::mem::take(&mut self.by_id),
            ..Self::default()
        };
        ids.into_iter().for_each(|id| self.index(id));
    }

    fn index(&mut self, id: ServerId) {
        let Some(server) = self.by_id.get(&id) else { return };
        if !server.is_given_up() {
            self.by_credential.insert(server.credential_digest.clone(), id);
        }
        self.by_name.insert(server.name.clone(), id);
        if server.is_vacating() {
            self.vacating.insert(id);
        }
        for group_id in server.to_drop.keys() {
            self.holders.entry(*group_id).or_default().insert(id);
        }
    }

    fn unindex(&mut self, id: ServerId) {
        let Some(server) = self.by_id.get(&id) else { return };
        self.by_credential.remove(&server.credential_digest);
        self.by_name.remove(&server.name);
        self.vacating.remove(&id);
        for group_id in server.to_drop.keys() {
            if let Some(holders) = self.holders.get_mut(group_id) {
                holders.remove(&id);
                if holders.is_empty() {
                    self.holders.remove(group_id);
                }
            }
        }
    }

    /// The first index that is out of step, in words.
    pub fn validate(&self) -> Result<(), String> {
        let mut fresh = self.clone();
        fresh.reindex();
        if self.vacating != fresh.vacating {
            return Err("the list of vacating servers is stale".into());
        }
        if self.holders != fresh.holders {
            return Err("the index of leftovers is stale".into());
        }
        if self.by_credential != fresh.by_credential {
            return Err("the index of credentials is stale".into());
        }
        let names: BTreeSet<&str> = self.by_id.values().map(|server| server.name.as_str()).collect();
        if self.by_name != fresh.by_name || names.len() != self.by_id.len() {
            return Err("two servers of one name".into());
        }
        Ok(())
    }
}
