//! Another cost profile or placement policy comes into use, the fleet's keys, or a version of the fleet. Replicas stay where
//! they are.

use quorate_placement::Profile;
use quorate_types::control::ToServer;

use super::listing::Listing;
use super::outbox::Outbox;
use crate::command::{FleetSecrets, PlacementPolicy, Reply};
use crate::state::table::{Fleets, Servers};

/// May change what is in use, and the listing; reads servers.
#[derive(Debug)]
pub struct Policies<'a> {
    used: InUse<'a>,
    fleets: &'a mut Fleets,
    servers: &'a Servers,
    out: Outbox<'a>,
}

/// The whole fleet goes by these.
#[derive(Debug)]
pub struct InUse<'a> {
    pub profile: &'a mut Profile,
    pub policy: &'a mut PlacementPolicy,
    pub secrets: &'a mut Option<Box<FleetSecrets>>,
    pub fleet_version: &'a mut u16,
}

impl<'a> Policies<'a> {
    pub fn new(used: InUse<'a>, fleets: &'a mut Fleets, servers: &'a Servers, out: Outbox<'a>) -> Self {
        Self {
            used,
            fleets,
            servers,
            out,
        }
    }

    /// Uses another profile. Servers grant burst capacity by its safety factor: without the message they would use the
    /// old one until they register again.
    pub fn use_profile(&mut self, profile: &Profile) {
        let share = profile.safety_factor;
        let is_other_share = share != self.used.profile.safety_factor;
        *self.used.profile = profile.clone();
        self.list_all();
        if is_other_share {
            for server in self.servers.values().filter(|server| server.alive) {
                let message = ToServer::PromisedShare { share };
                self.out.send(server.server_id, message);
            }
        }
        self.out.reply(Reply::Done);
    }

    pub fn use_policy(&mut self, policy: PlacementPolicy) {
        *self.used.policy = policy;
        self.list_all();
    }

    /// The authority never changes: servers trust no other.
    pub fn use_secrets(&mut self, secrets: &FleetSecrets) {
        let known = self.used.secrets.as_ref();
        if known.is_some_and(|known| known.authority_pem != secrets.authority_pem) {
            let message = "the fleet has another authority".to_string();
            let code = "other_authority";
            return self.out.reply(Reply::Conflict { code, message });
        }
        *self.used.secrets = Some(Box::new(secrets.clone()));
        self.out.reply(Reply::Done);
    }

    /// Never lowers it. The engine has checked that everything can read it.
    pub fn raise_fleet_version(&mut self, to: u16) {
        if to > *self.used.fleet_version {
            *self.used.fleet_version = to;
            for server in self.servers.values().filter(|server| server.alive) {
                let message = ToServer::FleetVersion { version: to };
                self.out.send(server.server_id, message);
            }
        }
        self.out.reply(Reply::Done);
    }

    fn list_all(&mut self) {
        Listing::new(self.fleets, self.used.profile, self.used.policy).all(self.servers);
    }
}
