//! Ids of deleted groups. No group may use one again: an old replica may still hold data under it.

use std::collections::{BTreeSet, VecDeque};

use quorate_types::GroupId;
use quorate_types::limits::DELETED_GROUPS_MAX;
use serde::{Deserialize, Serialize};

/// The last [`DELETED_GROUPS_MAX`] ids.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeletedGroups {
    in_order: VecDeque<GroupId>,
    #[serde(skip)]
    ids: BTreeSet<GroupId>,
}

impl DeletedGroups {
    pub fn contains(&self, group_id: GroupId) -> bool {
        self.ids.contains(&group_id)
    }

    pub fn insert(&mut self, group_id: GroupId) {
        if !self.ids.insert(group_id) {
            return;
        }
        self.in_order.push_back(group_id);
        if self.in_order.len() > DELETED_GROUPS_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub fn reindex(&mut self) {
        self.ids = self.in_order.iter().copied().collect();
    }
}
