//! The guarantees of projects. Each group notes the shared one of its project, for what servers are charged.

use std::collections::BTreeMap;

use quorate_guarantees::Guarantee;
use quorate_placement::SharedGuarantee;
use quorate_types::ProjectId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Guarantees {
    by_project: BTreeMap<Uuid, ProjectGuarantee>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectGuarantee {
    /// `None`: it was taken back. Its revision stays, so that a late repetition changes nothing.
    pub guarantee: Option<Guarantee>,
    /// 1, and one more for each change.
    pub revision: u64,
    pub since_ms: u64,
}

impl Guarantees {
    pub fn of(&self, project_id: Uuid) -> Option<&Guarantee> {
        self.by_project.get(&project_id)?.guarantee.as_ref()
    }

    pub fn entry(&self, project_id: Uuid) -> Option<&ProjectGuarantee> {
        self.by_project.get(&project_id)
    }

    /// Tokens that any group of the project may use.
    pub fn shared_tokens_per_s(&self, project_id: Uuid) -> u64 {
        self.of(project_id).map_or(0, |one| one.shared_tokens_per_s)
    }

    pub fn shared(&self, project_id: Uuid) -> Option<SharedGuarantee> {
        SharedGuarantee::of(ProjectId(project_id), self.shared_tokens_per_s(project_id))
    }

    /// The last change's number; 0: there was none.
    pub fn revision(&self, project_id: Uuid) -> u64 {
        self.by_project.get(&project_id).map_or(0, |one| one.revision)
    }

    pub fn set(&mut self, project_id: Uuid, guarantee: ProjectGuarantee) {
        self.by_project.insert(project_id, guarantee);
    }

    /// Projects that have one.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, &Guarantee)> {
        let all = self.by_project.iter();
        all.filter_map(|(project_id, one)| Some((*project_id, one.guarantee.as_ref()?)))
    }

    pub fn is_empty(&self) -> bool {
        self.by_project.is_empty()
    }

    /// The number of changes since the beginning.
    pub fn changes(&self) -> u64 {
        self.by_project.values().map(|one| one.revision).sum()
    }
}
