//! Another cost profile or placement policy comes into use. Replicas stay where they are.

use quorate_placement::Profile;
use quorate_types::control::ToServer;

use super::listing::Listing;
use super::outbox::Outbox;
use crate::command::{PlacementPolicy, Reply};
use crate::state::table::{Fleets, Servers};

/// May change profile, policy and listing; reads servers.
#[derive(Debug)]
pub struct Policies<'a> {
    profile: &'a mut Profile,
    policy: &'a mut PlacementPolicy,
    fleets: &'a mut Fleets,
    servers: &'a Servers,
    out: Outbox<'a>,
}

impl<'a> Policies<'a> {
    pub fn new(
        profile: &'a mut Profile,
        policy: &'a mut PlacementPolicy,
        fleets: &'a mut Fleets,
        servers: &'a Servers,
        out: Outbox<'a>,
    ) -> Self {
        Self {
            profile,
            policy,
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

    fn list_all(&mut self) {
        Listing::new(self.fleets, self.profile, self.policy).all(self.servers);
    }
}
