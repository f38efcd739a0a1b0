//! A group's partitions as the API shows them.

use std::collections::HashMap;

use quorate_types::{GroupId, Layout, Sla};
use serde::Serialize;
use uuid::Uuid;

use super::group::GroupView;
use super::time::rfc3339;
use crate::state::{CoordinatorState, LayoutChange};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionsView {
    pub group_id: GroupId,
    pub project_id: Uuid,
    /// The SLA of all partitions together.
    pub sla: Sla,
    /// 1, and one more for each change.
    pub revision: u64,
    pub since: String,
    /// The layout by which clients find keys' partitions; 0: there is one partition, and none was ever added.
    pub layout: Layout,
    /// Partitions that clients use: fewer than there are while some are being added.
    pub in_use: u16,
    /// Growths that are over, oldest first.
    pub changes: Vec<LayoutChange>,
    /// All partitions, in order.
    pub partitions: Vec<GroupView>,
    /// Requests/s of the declared size that each wants, in the same order; `None`: its head has not reported lately.
    pub wanted_per_s: Vec<Option<u64>>,
}

impl PartitionsView {
    /// `None`: the group has no partitions.
    pub fn of(
        state: &CoordinatorState,
        group_id: GroupId,
        wanted_per_s: &HashMap<GroupId, u64>,
    ) -> Option<Self> {
        let partitioned = state.partitions.get(&group_id)?;
        let view = |member: &GroupId| GroupView::without_reads(state, &state.groups[member]);
        Some(Self {
            group_id,
            project_id: partitioned.project_id,
            sla: partitioned.sla.clone(),
            revision: partitioned.revision,
            since: rfc3339(partitioned.since_ms),
            layout: partitioned.layout_in_use(),
            in_use: partitioned.partitions_in_use(),
            changes: partitioned.changes.clone(),
            partitions: partitioned.members.iter().map(view).collect(),
            wanted_per_s: (partitioned.members.iter())
                .map(|member| wanted_per_s.get(member).copied())
                .collect(),
        })
    }
}
