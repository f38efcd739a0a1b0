//! The status of a group, as the API shows it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupStatus {
    /// Not every replica of the first chain has applied its configuration yet.
    Provisioning,
    Active,
    /// Below its degree, still committing.
    Degraded,
    /// Fewer live replicas than `min_replicas`, or a whole persistent chain is down: appends wait.
    Paused,
    /// In-memory and no replica is left, or a persistent group's last disk came back empty or damaged.
    Lost,
    Deleting,
}

impl std::fmt::Display for GroupStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            GroupStatus::Provisioning => "provisioning",
            GroupStatus::Active => "active",
            GroupStatus::Degraded => "degraded",
            GroupStatus::Paused => "paused",
            GroupStatus::Lost => "lost",
            GroupStatus::Deleting => "deleting",
        })
    }
}
