//! A group's configuration in one epoch, with roles and states.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::Access;
use crate::cost::Budget;
use crate::durability::Durability;
use crate::{Epoch, Offset};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub Uuid);

impl std::fmt::Display for GroupId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The owner of a group. Servers know it from tokens, and only as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectId(pub Uuid);

/// Assigned by the coordinator at registration, densely from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerId(pub u32);

impl std::fmt::Display for ServerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub server_id: ServerId,
    /// The address at which clients and peers reach the server.
    pub address: String,
}

/// Everything that a server must know of a group in one epoch. Immutable: a change is a new epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupConfig {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub durability: Durability,
    pub replication_degree: u8,
    pub min_replicas: u8,
    /// The chain, head first, tail last.
    pub replicas: Vec<Member>,
    /// Replicas that the tail feeds until they have caught up; not counted for commitment.
    #[serde(default)]
    pub learners: Vec<Member>,
    pub budget: Budget,
    pub retention_bytes: u64,
    /// Batches older than this are discarded; `None`: age discards none.
    #[serde(default)]
    pub retention_age_s: Option<u64>,
    /// The log's beginning, once the lost group was reset by its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beginning: Option<Beginning>,
    /// Older coordinators do not say; then it is full.
    #[serde(default, skip_serializing_if = "Access::is_full")]
    pub access: Access,
    /// The layout of the group that this is a partition of: clients with a token of another one may not append.
    #[serde(default, skip_serializing_if = "Layout::is_none")]
    pub layout: Layout,
}

/// The number of an assignment of keys to partitions. It rises when partitions are added; 0: the group has no partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layout(pub u32);

impl Layout {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub fn is_none(&self) -> bool {
        self.0 == 0
    }

    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The beginning of a log that follows a lost one (`docs/internals/chain.md`, "Reset").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// The epoch of the reset: batches of earlier epochs belong to the lost log.
    pub epoch: Epoch,
    /// The first entry's offset, above every offset of the lost log.
    pub offset: Offset,
    /// Entries and bytes that usage had counted before the reset: it goes on from there.
    pub entries_before: u64,
    pub bytes_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Role {
    None = 0,
    Head = 1,
    Follower = 2,
    Tail = 3,
    Learner = 4,
    /// Head and tail at once: a chain of one.
    Sole = 5,
}

impl Role {
    /// Whether a replica in this role has, by the protocol, everything that the chain has. Such a replica is not damaged.
    pub fn is_whole(self) -> bool {
        !matches!(self, Role::None | Role::Learner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum GroupState {
    Active = 1,
    /// Below its degree, still committing.
    Degraded = 2,
    /// Fewer replicas than `min_replicas`: appends wait.
    Paused = 3,
    ReadOnly = 4,
    Lost = 5,
    /// A replica that does not yet agree with its predecessor for good.
    Syncing = 6,
}

impl GroupConfig {
    /// The server's role in this epoch.
    pub fn role_of(&self, server_id: ServerId) -> Role {
        let last = self.replicas.len().saturating_sub(1);
        match self.replicas.iter().position(|m| m.server_id == server_id) {
            Some(0) if last == 0 => Role::Sole,
            Some(0) => Role::Head,
            Some(position) if position == last => Role::Tail,
            Some(_) => Role::Follower,
            None if self.learners.iter().any(|m| m.server_id == server_id) => Role::Learner,
            None => Role::None,
        }
    }

    /// The servers in the order in which data flows: the replicas, then the learners.
    pub fn line(&self) -> impl Iterator<Item = &Member> {
        self.replicas.iter().chain(&self.learners)
    }

    pub fn head(&self) -> Option<&Member> {
        self.replicas.first()
    }

    pub fn predecessor_of(&self, server_id: ServerId) -> Option<&Member> {
        let position = self.line().position(|m| m.server_id == server_id)?;
        self.line().nth(position.checked_sub(1)?)
    }

    pub fn successor_of(&self, server_id: ServerId) -> Option<&Member> {
        let position = self.line().position(|m| m.server_id == server_id)?;
        self.line().nth(position + 1)
    }

    /// Whether commitment may go on (`docs/internals/chain.md`, "min_replicas").
    pub fn has_quorum(&self) -> bool {
        self.replicas.len() >= usize::from(self.min_replicas)
    }

    pub fn state(&self) -> GroupState {
        if !self.has_quorum() {
            GroupState::Paused
        } else if self.replicas.len() < usize::from(self.replication_degree) {
            GroupState::Degraded
        } else {
            GroupState::Active
        }
    }
}
