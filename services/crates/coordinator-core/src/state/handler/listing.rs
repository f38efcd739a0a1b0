//! Servers are listed for placement, each with its promisable capacity, and whether it takes replicas.

use std::collections::BTreeSet;

use quorate_placement::Profile;
use quorate_types::ServerId;

use crate::command::{Mismatched, PlacementPolicy};
use crate::state::entity::Server;
use crate::state::table::{Fleets, Servers};

/// May list servers in the fleets; reads profile and policy.
#[derive(Debug)]
pub struct Listing<'a> {
    fleets: &'a mut Fleets,
    profile: &'a Profile,
    policy: &'a PlacementPolicy,
}

/// Why the cost profile does not match the server, if it does not.
pub fn mismatch(profile: &Profile, server: &Server) -> Option<String> {
    profile.mismatch(server.machine.as_ref(), &server.version)
}

/// The same, where the policy refuses such servers.
pub fn refused_mismatch(profile: &Profile, policy: &PlacementPolicy, server: &Server) -> Option<String> {
    match policy.mismatched {
        Mismatched::Used => None,
        Mismatched::Refused => mismatch(profile, server),
    }
}

/// Whether replicas may be placed on the server, if there is room.
pub fn takes_replicas(profile: &Profile, policy: &PlacementPolicy, server: &Server) -> bool {
    server.takes_replicas() && refused_mismatch(profile, policy, server).is_none()
}

impl<'a> Listing<'a> {
    pub fn new(fleets: &'a mut Fleets, profile: &'a Profile, policy: &'a PlacementPolicy) -> Self {
        Self {
            fleets,
            profile,
            policy,
        }
    }

    /// Lists a server that has changed. The room kept in its region follows.
    pub fn server(&mut self, servers: &Servers, id: ServerId) {
        let server = &servers[&id];
        self.set(server);
        self.keep_headroom(servers, &server.region);
    }

    pub fn all(&mut self, servers: &Servers) {
        for server in servers.values() {
            self.set(server);
        }
        for region in self.fleets.regions() {
            self.keep_headroom(servers, &region);
        }
    }

    /// Takes a server off the list whose entry is about to be replaced.
    pub fn remove(&mut self, server: &Server) {
        if let Some(fleet) = self.fleets.in_region_mut(&server.region) {
            fleet.set_available(server.server_id, false);
        }
    }

    /// A clause about a server that the policy refuses, to follow a sentence of an event; empty for others.
    pub fn refusal_clause(&self, server: &Server) -> String {
        refused_mismatch(self.profile, self.policy, server).map_or_else(String::new, |how| {
            format!(" No replica is placed on it: the cost profile does not match it: {how}.")
        })
    }

    fn set(&mut self, server: &Server) {
        let promisable = server.promisable(self.profile.safety_factor);
        let takes_replicas = takes_replicas(self.profile, self.policy, server);
        self.fleets.in_region_or_new(&server.region).set_server(
            server.server_id,
            promisable,
            server.failure_domain.clone(),
            server.auxiliary,
            takes_replicas,
        );
    }

    fn keep_headroom(&mut self, servers: &Servers, region: &str) {
        let permille = self.policy.headroom.permille(domains(servers, region));
        if let Some(fleet) = self.fleets.in_region_mut(region) {
            fleet.set_headroom(permille);
            fleet.set_choice(self.policy.choice);
            fleet.set_spread(self.policy.is_spread);
        }
    }
}

/// Failure domains of a region; a server without one counts as its own. Failed servers that may return count: a
/// failure must not free the room that was kept for it.
fn domains(servers: &Servers, region: &str) -> u64 {
    let lasting = servers.values().filter(|server| {
        let is_gone = server.is_given_up() && !server.alive;
        server.region == region && !server.auxiliary && server.drain.is_none() && !is_gone
    });
    let (mut named, mut alone) = (BTreeSet::new(), 0);
    for server in lasting {
        match &server.failure_domain {
            Some(domain) => drop(named.insert(domain)),
            None => alone += 1,
        }
    }
    named.len() as u64 + alone
}
