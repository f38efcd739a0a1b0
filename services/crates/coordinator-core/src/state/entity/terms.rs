//! A group's SLA with what follows from it.

use quorate_placement::{Profile, RoleDemands};
use quorate_types::Sla;
use quorate_types::cost::Budget;
use serde::{Deserialize, Serialize};

use super::partitioned::Partition;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub sla: Sla,
    pub demands: RoleDemands,
    pub budget: Budget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    pub revision: u64,
}

impl Terms {
    /// Terms of a group without partitions, by this profile.
    pub fn of(profile: &Profile, sla: &Sla, revision: u64) -> Self {
        Self {
            sla: sla.clone(),
            demands: profile.demands(sla),
            budget: profile.budget(sla),
            partition: None,
            revision,
        }
    }
}
