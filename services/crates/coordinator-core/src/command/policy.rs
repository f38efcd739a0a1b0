//! The policy by which servers are chosen for replicas, and the room kept for replicas of servers that fail.

use std::str::FromStr;

use quorate_placement::Choice;
use serde::{Deserialize, Serialize};

/// The policy is part of the state, so that a log is replayed as it was written. The default is that of logs without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlacementPolicy {
    pub choice: Choice,
    pub headroom: Headroom,
    #[serde(default, rename = "foreign")]
    pub mismatched: Mismatched,
    #[serde(default)]
    pub replacements: Replacements,
    #[serde(default)]
    pub relief: Relief,
    /// Whether groups are kept from sharing the same few servers ([`quorate_placement::Fleet::set_spread`]).
    #[serde(default)]
    pub is_spread: bool,
}

/// The order in which failed replicas are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replacements {
    /// By the ids of their groups, each while later chains still contain failed servers. Older logs were written so.
    #[default]
    ById,
    /// After all chains are spliced and their new heads charged: the highest dominant share first
    /// (Filo §4.1 "Failures").
    HeaviestFirst,
}

/// How many of its groups a slow server leaves at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relief {
    /// One, until its replacement has joined. Older logs were written so.
    #[default]
    OneByOne,
    /// All that can spare a replica at once; of the others, as many as a drain moves.
    AtOnce,
}

/// The treatment of servers that do not match the cost profile in use ([`quorate_placement::Profile::mismatch`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mismatched {
    /// Their capacity is promised as if they were the measured machine.
    #[default]
    Used,
    /// They keep their replicas and take no new ones.
    Refused,
}

/// The share of each server that is closed to new groups and open to replacements (Filo §4.1 "Failures").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    /// One failure domain's worth, spread over all of a region: its replicas fit on the others when it is lost.
    OneDomain,
    Permille(u16),
}

impl Default for Headroom {
    fn default() -> Self {
        Self::Permille(0)
    }
}

/// With fewer domains, a group of the usual degree of three that loses one finds no other to go to. Room kept for it
/// would be of no use.
const DOMAINS_MIN: u64 = 4;
/// A tenth more than one domain's worth: replicas are not divisible, so the last room of a server fits none of them.
const INDIVISIBLE_PERMILLE: u64 = 100;
/// At least half a fleet is for new groups.
const PERMILLE_MAX: u16 = 500;

impl Headroom {
    /// Thousandths of each server in a region with so many failure domains.
    pub fn permille(self, domains: u64) -> u64 {
        match self {
            Self::Permille(permille) => u64::from(permille),
            Self::OneDomain if domains < DOMAINS_MIN => 0,
            Self::OneDomain => (1_000 + INDIVISIBLE_PERMILLE).div_ceil(domains),
        }
    }
}

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
