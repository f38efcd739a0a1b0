//! How servers are chosen for replicas, and what of each is kept for replicas of servers that fail.

use std::collections::BTreeSet;
use std::str::FromStr;

use quorate_placement::Choice;
use serde::{Deserialize, Serialize};

use super::server::Server;
use super::{Change, State};

/// Part of the state, so that a log is replayed as it was written. The default is what was in use before there was
/// a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    pub choice: Choice,
    pub headroom: Headroom,
    #[serde(default)]
    pub foreign: Foreign,
    #[serde(default)]
    pub replacements: Replacements,
    /// Whether groups are kept from sharing the same few servers ([`quorate_placement::Fleet::set_spread`]).
    #[serde(default)]
    pub is_spread: bool,
}

/// In which order failed replicas are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacements {
    /// By the ids of their groups, each while later chains still stand with those that failed: what was in use before
    /// there was a choice.
    #[default]
    ById,
    /// When all chains are spliced and their new heads charged: the one with the highest dominant share first
    /// (Filo §4.1 "Failures").
    HeaviestFirst,
}

/// What becomes of servers that the cost profile in use is not of ([`quorate_placement::Profile::foreign`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Foreign {
    /// They are promised as if they were those that were measured.
    #[default]
    Used,
    /// They keep what they have and take no new replicas.
    Refused,
}

/// The share of each server that new groups are not placed on, and replacements are (Filo §4.1 "Failures").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// One failure domain's worth, spread over all of a region: what is on it fits on the others when it is lost.
    OneDomain,
    Permille(u16),
}

impl Default for Headroom {
    fn default() -> Self {
        Self::Permille(0)
    }
}

/// With fewer domains, a group of the usual degree of three that loses one finds no other to go to: nothing is kept
/// for what cannot be.
const DOMAINS_MIN: u64 = 4;
/// A tenth more than one domain's worth: replicas are not divisible, so the last room of a server is no use to them.
const INDIVISIBLE_PERMILLE: u64 = 100;
/// Half a fleet is for those who pay for it, at least.
const PERMILLE_MAX: u16 = 500;

impl FromStr for Headroom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "one-domain" {
            return Ok(Self::OneDomain);
        }
        let percent: f64 = text
            .strip_suffix('%')
            .unwrap_or(text)
            .trim()
            .parse()
            .map_err(|_| "must be one-domain, or percent of each server".to_string())?;
        if !(0.0..=f64::from(PERMILLE_MAX) / 10.0).contains(&percent) {
            return Err(format!("must be 0 to {} percent", PERMILLE_MAX / 10));
        }
        Ok(Self::Permille((percent * 10.0).round() as u16))
    }
}

impl State {
    /// Why new replicas are not placed on the server because of the cost profile, if they are not.
    pub fn refused_as_foreign(&self, server: &Server) -> Option<String> {
        match self.placement.foreign {
            Foreign::Used => None,
            Foreign::Refused => self.foreign(server),
        }
    }

    /// Whether replicas may be placed on the server, if there is room.
    pub(super) fn may_place_on(&self, server: &Server) -> bool {
        server.takes_replicas() && self.refused_as_foreign(server).is_none()
    }

    /// The same as a sentence after another, for people; nothing where it is placed on.
    pub(super) fn said_of_foreign(&self, server: &Server) -> String {
        self.refused_as_foreign(server).map_or_else(String::new, |how| {
            format!(" No replica is placed on it: the cost profile is of other servers: {how}.")
        })
    }

    /// After servers came, went or moved to other domains.
    pub(super) fn keep_headroom(&mut self, region: &str) {
        let permille = match self.placement.headroom {
            Headroom::Permille(permille) => u64::from(permille),
            Headroom::OneDomain => match domains(self.servers.values(), region) {
                few if few < DOMAINS_MIN => 0,
                domains => (1_000 + INDIVISIBLE_PERMILLE).div_ceil(domains),
            },
        };
        let (choice, is_spread) = (self.placement.choice, self.placement.is_spread);
        if let Some(fleet) = self.derived.fleets.get_mut(region) {
            fleet.set_headroom(permille);
            fleet.set_choice(choice);
            fleet.set_spread(is_spread);
        }
    }
}

/// Failure domains of a region, where each server without one is one. Servers that failed and may return count: a
/// failure must not free what was kept for it.
fn domains<'a>(servers: impl Iterator<Item = &'a Server>, region: &str) -> u64 {
    let lasting = servers.filter(|server| {
        let given_up = server.credential_digest.is_empty() && !server.alive;
        server.region == region && !server.auxiliary && server.drain.is_none() && !given_up
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

impl Change<'_> {
    pub(super) fn use_placement(&mut self, placement: Placement) {
        self.state.placement = placement;
        self.state.list_servers();
    }
}
