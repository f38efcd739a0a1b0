//! The groups, with indexes by member, by project, by need of a learner and by loss.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use quorate_types::{GroupId, ServerId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state::entity::Group;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Groups {
    by_id: BTreeMap<GroupId, Group>,
    #[serde(skip)]
    by_member: BTreeMap<ServerId, BTreeSet<GroupId>>,
    /// Groups that are not being deleted.
    #[serde(skip)]
    by_project: BTreeMap<Uuid, BTreeSet<GroupId>>,
    /// Groups with a replica missing and no learner.
    #[serde(skip)]
    wanting_learner: BTreeSet<GroupId>,
    /// Groups of which replicas are to move.
    #[serde(skip)]
    relocating: BTreeSet<GroupId>,
    /// Groups of whose logs nothing is left.
    #[serde(skip)]
    lost: BTreeSet<GroupId>,
}

impl Deref for Groups {
    type Target = BTreeMap<GroupId, Group>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl<'a> IntoIterator for &'a Groups {
    type Item = (&'a GroupId, &'a Group);
    type IntoIter = std::collections::btree_map::Iter<'a, GroupId, Group>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_id.iter()
    }
}

/// Indexes follow from the rows.
impl PartialEq for Groups {
    fn eq(&self, other: &Self) -> bool {
        self.by_id == other.by_id
    }
}

impl Groups {
    /// Groups with a replica or a learner on the server.
    pub fn on(&self, server: ServerId) -> impl Iterator<Item = GroupId> + '_ {
        self.by_member.get(&server).into_iter().flatten().copied()
    }

    pub fn count_on(&self, server: ServerId) -> usize {
        self.by_member.get(&server).map_or(0, BTreeSet::len)
    }

    pub fn count_of_project(&self, project_id: Uuid) -> usize {
        self.by_project.get(&project_id).map_or(0, BTreeSet::len)
    }

    /// Groups of a project that are not being deleted.
    pub fn of_project(&self, project_id: Uuid) -> impl Iterator<Item = &Group> + '_ {
        let groups = self.by_project.get(&project_id).into_iter().flatten();
        groups.map(|group_id| &self.by_id[group_id])
    }

    pub fn wanting_learner(&self) -> Vec<GroupId> {
        self.wanting_learner.iter().copied().collect()
    }

    pub fn relocating(&self) -> Vec<GroupId> {
        self.relocating.iter().copied().collect()
    }

    pub fn lost(&self) -> Vec<GroupId> {
        self.lost.iter().copied().collect()
    }

    pub fn insert(&mut self, group: Group) {
        self.take(group.group_id);
        self.index(&group);
        self.by_id.insert(group.group_id, group);
    }

    /// Removes a group, or takes it out to be changed and inserted again.
    pub fn take(&mut self, group_id: GroupId) -> Option<Group> {
        let group = self.by_id.remove(&group_id)?;
        self.unindex(&group);
        Some(group)
    }

    /// Changes a group. `None`: there is no such group.
    pub fn change<T>(&mut self, group_id: GroupId, change: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let mut group = self.take(group_id)?;
        let changed = change(&mut group);
        self.insert(group);
        Some(changed)
    }

    pub fn reindex(&mut self) {
        let groups = std::mem::take(&mut self.by_id);
        *self = Self::default();
        for group in groups.values() {
            self.index(group);
        }
        self.by_id = groups;
    }

    /// Groups that were admitted before memory and disk were: their SLAs say how much they take.
    pub fn complete_demands(&mut self) {
        for group in self
            .by_id
            .values_mut()
            .filter(|group| group.demands.lacks_space())
        {
            group.demands = group.demands.clone().with_space(group.sla.terms().space());
        }
    }

    fn index(&mut self, group: &Group) {
        for member in group.members() {
            self.by_member.entry(member).or_default().insert(group.group_id);
        }
        if !group.is_deleting() {
            let of_project = self.by_project.entry(group.project_id).or_default();
            of_project.insert(group.group_id);
        }
        if group.wants_learner() {
            self.wanting_learner.insert(group.group_id);
        }
        if group.relocation.is_some() {
            self.relocating.insert(group.group_id);
        }
        if group.lost && !group.is_deleting() {
            self.lost.insert(group.group_id);
        }
    }

    fn unindex(&mut self, group: &Group) {
        for member in group.members() {
            if let Some(groups) = self.by_member.get_mut(&member) {
                groups.remove(&group.group_id);
                if groups.is_empty() {
                    self.by_member.remove(&member);
                }
            }
        }
        if let Some(groups) = self.by_project.get_mut(&group.project_id) {
            groups.remove(&group.group_id);
            if groups.is_empty() {
                self.by_project.remove(&group.project_id);
            }
        }
        self.wanting_learner.remove(&group.group_id);
        self.relocating.remove(&group.group_id);
        self.lost.remove(&group.group_id);
    }

    /// The first index that is out of step, in words.
    pub fn validate(&self) -> Result<(), String> {
        let mut fresh = Self::default();
        for group in self.by_id.values() {
            fresh.index(group);
        }
        if self.by_member != fresh.by_member {
            return Err("the index of groups by server is stale".into());
        }
        if self.by_project != fresh.by_project {
            return Err("the index of groups by project is stale".into());
        }
        if self.wanting_learner != fresh.wanting_learner {
            return Err("the list of groups to repair is stale".into());
        }
        if self.relocating != fresh.relocating {
            return Err("the list of groups to relocate is stale".into());
        }
        if self.lost != fresh.lost {
            return Err("the list of lost groups is stale".into());
        }
        Ok(())
    }
}
