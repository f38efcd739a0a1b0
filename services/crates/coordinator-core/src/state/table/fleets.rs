//! The free resources of each region's servers. They follow from the servers and the groups; no snapshot has them.

use std::collections::BTreeMap;

use quorate_placement::{Demand, Fleet};
use quorate_types::ServerId;

use super::servers::Servers;
use crate::state::entity::Group;

#[derive(Debug, Clone, Default)]
pub struct Fleets {
    by_region: BTreeMap<String, Fleet>,
}

/// The demand of a group that a server is charged.
pub type Charge = (ServerId, Demand);

impl Fleets {
    pub fn in_region(&self, region: &str) -> Option<&Fleet> {
        self.by_region.get(region)
    }

    pub fn in_region_mut(&mut self, region: &str) -> Option<&mut Fleet> {
        self.by_region.get_mut(region)
    }

    /// The region's fleet, which begins with its first server.
    pub fn in_region_or_new(&mut self, region: &str) -> &mut Fleet {
        self.by_region.entry(region.to_string()).or_default()
    }

    /// Runs `look` on the region's fleet; on an empty one where no server ever registered.
    pub fn try_in_region<T>(&mut self, region: &str, look: impl FnOnce(&mut Fleet) -> T) -> T {
        match self.by_region.get_mut(region) {
            Some(fleet) => look(fleet),
            None => look(&mut Fleet::default()),
        }
    }

    pub fn regions(&self) -> Vec<String> {
        self.by_region.keys().cloned().collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Fleet> {
        self.by_region.values()
    }

    /// The fleet that a known server belongs to.
    pub fn of(&mut self, servers: &Servers, server: ServerId) -> &mut Fleet {
        self.by_region
            .get_mut(&servers[&server].region)
            .expect("a server's region has a fleet")
    }

    pub fn charge(&mut self, servers: &Servers, charges: &[Charge]) {
        for (server, demand) in charges {
            self.of(servers, *server).charge(*server, *demand);
        }
    }

    pub fn release(&mut self, servers: &Servers, charges: &[Charge]) {
        for (server, demand) in charges {
            self.of(servers, *server).release(*server, *demand);
        }
    }

    /// Charges a group, and counts it among those that its members share.
    pub fn take_in(&mut self, servers: &Servers, group: &Group) {
        self.count_shared(group);
        self.charge(servers, &group.charges());
    }

    /// The inverse of [`Fleets::take_in`].
    pub fn let_go(&mut self, servers: &Servers, group: &Group) {
        let members: Vec<ServerId> = group.members().collect();
        if let Some(fleet) = self.by_region.get_mut(&group.sla.region) {
            for (i, member) in members.iter().enumerate() {
                fleet.remove_shared(*member, &members[..i]);
            }
        }
        self.release(servers, &group.charges());
    }

    /// Counts a group, whose servers are charged already, among those that its members share.
    pub fn count_shared(&mut self, group: &Group) {
        let members: Vec<ServerId> = group.members().collect();
        if let Some(fleet) = self.by_region.get_mut(&group.sla.region) {
            for (i, member) in members.iter().enumerate() {
                fleet.add_shared(*member, &members[..i]);
            }
        }
    }
}
