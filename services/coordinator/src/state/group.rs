//! One group: its SLA, its chain, and what follows from both.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::{Amounts, RoleDemands};
use quorate_types::config::Beginning;
use quorate_types::cost::Budget;
use quorate_types::limits::RESET_GAP_OFFSETS;
use quorate_types::{Durability, Epoch, GroupId, Offset, ServerId, Sla};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::returned::Returned;

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub group_id: GroupId,
    pub project_id: Uuid,
    pub sla: Sla,
    /// As admitted: a later cost profile does not change what was promised.
    pub demands: RoleDemands,
    pub budget: Budget,
    /// 1, and one more for each resize.
    #[serde(default = "first_revision")]
    pub sla_revision: u64,
    /// When it was resized last.
    #[serde(default)]
    pub sla_since_ms: Option<u64>,
    pub epoch: Epoch,
    /// Head first. Holds a failed server only when every server of the chain has failed: their data
    /// is all there is, so the chain waits for them.
    pub chain: Vec<ServerId>,
    /// Being caught up; at most one.
    pub learner: Option<ServerId>,
    /// Every replica of a chain applied its configuration once.
    pub formed: bool,
    /// While not formed, or members have returned: who applied the present epoch.
    pub applied: BTreeSet<ServerId>,
    /// Nothing of the log is left anywhere; the chain is empty.
    pub lost: bool,
    /// While it is lost: who held it last. They answer its clients that it is.
    #[serde(default)]
    pub last_chain: BTreeSet<ServerId>,
    /// Leaves the chain in the epoch in which the learner joins: its server drains, or is slow.
    #[serde(default)]
    pub leaving: Option<ServerId>,
    /// Made way because it was slow; its replacement is on its way.
    #[serde(default)]
    pub relieved: Option<ServerId>,
    /// What members of the chain returned with, until all of them are in one epoch again.
    #[serde(default)]
    pub returned: BTreeMap<ServerId, Returned>,
    /// Where the log begins, if its owner had it begin anew.
    #[serde(default)]
    pub beginning: Option<Beginning>,
    /// Above every offset that may have been acknowledged; raised long before it is reached, so that a log which
    /// begins anew can begin here whatever was heard last.
    #[serde(default = "first_ceiling")]
    pub offset_ceiling: Offset,
    /// Being deleted: servers that have not yet said that they dropped it.
    pub dropping: Option<BTreeSet<ServerId>>,
    /// As last told by an event.
    pub status: GroupStatus,
    pub created_at_ms: u64,
}

pub(super) fn first_ceiling() -> Offset {
    RESET_GAP_OFFSETS
}

pub(super) fn first_revision() -> u64 {
    1
}

impl Group {
    pub fn degree(&self) -> usize {
        usize::from(self.sla.replication_degree)
    }

    pub fn is_persistent(&self) -> bool {
        self.sla.durability == Durability::Persistent
    }

    pub fn is_deleting(&self) -> bool {
        self.dropping.is_some()
    }

    pub fn is_member(&self, server: ServerId) -> bool {
        self.chain.contains(&server) || self.learner == Some(server)
    }

    /// The chain, then the learner.
    pub fn members(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.chain.iter().copied().chain(self.learner)
    }

    /// What each member is charged: by position, as if the chain were whole; a learner as the tail.
    pub fn charges(&self) -> Vec<(ServerId, Amounts)> {
        let chain = self
            .chain
            .iter()
            .enumerate()
            .map(|(position, server)| (*server, self.demands.at(position)));
        chain
            .chain(self.learner.map(|server| (server, self.demands.tail())))
            .collect()
    }

    /// Whether a replacement should be elected: a replica is missing and none is on its way.
    pub fn wants_learner(&self) -> bool {
        !self.is_deleting()
            && !self.chain.is_empty()
            && self.learner.is_none()
            && self.chain.len() < self.degree()
    }

    /// Whether offsets have come so near the ceiling that it must be raised.
    pub fn nears_ceiling(&self, commit_offset: Offset) -> bool {
        commit_offset.saturating_add(RESET_GAP_OFFSETS / 2) > self.offset_ceiling
    }

    /// Whether it may give up a replica and still commit.
    pub fn can_spare_one(&self) -> bool {
        self.chain.len() > usize::from(self.sla.min_replicas())
    }

    pub fn status_with(&self, alive: impl Fn(ServerId) -> bool) -> GroupStatus {
        let down = self.chain.iter().filter(|server| !alive(**server)).count();
        if self.is_deleting() {
            GroupStatus::Deleting
        } else if self.lost || (down == self.chain.len() && !self.is_persistent()) {
            GroupStatus::Lost
        } else if down > 0 {
            GroupStatus::Paused
        } else if !self.formed {
            GroupStatus::Provisioning
        } else if self.chain.len() < usize::from(self.sla.min_replicas()) {
            GroupStatus::Paused
        } else if self.chain.len() < self.degree() {
            GroupStatus::Degraded
        } else {
            GroupStatus::Active
        }
    }
}
