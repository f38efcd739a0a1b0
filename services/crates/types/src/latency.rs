//! The latency class of an SLA: how far from full the group's servers are kept.

use serde::{Deserialize, Serialize};

use crate::limits;

/// Targets of the classes are the API's (`docs/reference/sla.md`); servers treat all groups alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    #[default]
    Standard,
    /// The group takes more of its servers than it uses, so that its requests wait less.
    Low,
}

impl Latency {
    /// The rates that a group takes on the fleet, as a multiple of those that it may use.
    pub fn headroom(self) -> u64 {
        match self {
            Self::Standard => 1,
            Self::Low => limits::LOW_LATENCY_HEADROOM,
        }
    }

    /// The default is left out of JSON: configurations of earlier versions have no class.
    pub fn is_standard(&self) -> bool {
        *self == Self::Standard
    }
}
