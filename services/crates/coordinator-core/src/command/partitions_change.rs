//! Another number of partitions for a group, or another SLA of all of them.

use quorate_types::{GroupId, Sla};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The whole of a partitioned group, as it is to be. The coordinator admits partitions that are missing, gives the others their parts of
/// the SLA, and refuses the whole where one of them does not fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionsChange {
    /// Also the id of partition 0.
    pub group_id: GroupId,
    pub project_id: Uuid,
    /// The SLA of all partitions together.
    pub sla: Sla,
    /// The ids of all partitions, in order.
    pub partitions: Vec<GroupId>,
    /// The number of the change: one above the present one.
    pub revision: u64,
}

/// Other rates for the partitions of some groups, whose SLAs stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateChange {
    pub group_id: GroupId,
    /// The change of partitions that the rates were computed for; after another one they mean nothing.
    pub revision: u64,
    /// By partition, with the SLA's rate as their sum.
    pub rates: Vec<u64>,
}
