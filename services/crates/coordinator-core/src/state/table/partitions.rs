//! Groups with partitions, by the group's id, which is also that of its first partition.

use std::collections::BTreeMap;
use std::ops::Deref;

use quorate_types::GroupId;
use serde::{Deserialize, Serialize};

use crate::state::entity::Partitioned;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partitions {
    by_group: BTreeMap<GroupId, Partitioned>,
}

impl Deref for Partitions {
    type Target = BTreeMap<GroupId, Partitioned>;

    fn deref(&self) -> &Self::Target {
        &self.by_group
    }
}

impl Partitions {
    pub fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    pub fn set(&mut self, group_id: GroupId, partitioned: Partitioned) {
        self.by_group.insert(group_id, partitioned);
    }

    pub fn change<T>(&mut self, group_id: GroupId, change: impl FnOnce(&mut Partitioned) -> T) -> Option<T> {
        self.by_group.get_mut(&group_id).map(change)
    }

    /// The chains of a group that is deleted; none: it has no partitions.
    pub fn remove(&mut self, group_id: GroupId) -> Option<Vec<GroupId>> {
        self.by_group
            .remove(&group_id)
            .map(|partitioned| partitioned.members)
    }
}
