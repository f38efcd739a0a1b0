//! Another cost profile or placement policy comes into use, or the fleet's keys. Replicas stay where they are.

use quorate_placement::Profile;
use quorate_types::control::ToServer;

use super::listing::Listing;
use super::outbox::Outbox;
use crate::command::{FleetSecrets, PlacementPolicy, Reply};
use crate::state::table::{Fleets, Servers};

/// May change profile, policy, keys and listing; reads servers.
#[derive(Debug)]
pub struct Policies<'a> {
    profile: &'a mut Profile,
    policy: &'a mut PlacementPolicy,
    secrets: &'a mut Option<Box<FleetSecrets>>,
    fleets: &'a mut Fleets,
    servers: &'a Servers,
    out: Outbox<'a>,
}

impl<'a> Policies<'a> {
    pub fn new(
        (profile, policy, secrets): (
            &'a mut Profile,
            &'a mut PlacementPolicy,
            &'a mut Option<Box<FleetSecrets>>,
        ),
        fleets: &'a mut Fleets,
        servers: &'a Servers,
        out: Outbox<'a>,
    ) -> Self {
        Self {
            profile,
            policy,
            secrets,
            fleets,
            servers,
            out,
        }
    }

    /// Uses another profile. Servers grant burst capacity by its safety factor: without the message they would use the
    /// old one until they register again.
    pub fn use_profile(&mut self, profile: &Profile) {
        let share = profile.safety_factor;
        let is_other_share = share != self.profile.safety_factor;
        *self.profile = profile.clone();
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
        *self.policy = policy;
        self.list_all();
    }

    /// The authority never changes: servers trust no other.
    pub fn use_secrets(&mut self, secrets: &FleetSecrets) {
        let known = self.secrets.as_ref();
        if known.is_some_and(|known| known.authority_pem != secrets.authority_pem) {
            let message = "the fleet has another authority".to_string();
            let code = "other_authority";
            return self.out.reply(Reply::Conflict { code, message });
        }
        *self.secrets = Some(Box::new(secrets.clone()));
        self.out.reply(Reply::Done);
    }

    fn list_all(&mut self) {
        Listing::new(self.fleets, self.profile, self.policy).all(self.servers);
    }
}
