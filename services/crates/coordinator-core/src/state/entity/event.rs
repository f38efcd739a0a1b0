//! Events: the history that the API reads and applies idempotently.

use quorate_types::{Epoch, GroupId, ServerId};
use serde::{Deserialize, Serialize};

use super::group_status::GroupStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    GroupAdmitted,
    GroupRefused,
    GroupConfigured,
    GroupStatus,
    GroupDeleted,
    ServerRegistered,
    ServerFailed,
    ServerReturned,
    ServerStorageFault,
    ServerUnreachable,
    ServerHoldsUnknownGroup,
    ServerDraining,
    /// Replicas wait: no server has room for them.
    ServerDrainWaiting,
    ServerDrained,
    ServerDrainCalledOff,
    /// A drained server has stopped, which is no failure.
    ServerStopped,
    ServerSlow,
    ServerRecovered,
    ServerCapacity,
    /// A server's disk is damaged, or older than the one it had.
    ServerDiskStale,
    /// Its operator gave it up.
    ServerForgotten,
    /// The owner reset a lost group.
    GroupReset,
    /// The group has another SLA.
    GroupResized,
    /// The group has another number of partitions, or clients use those that were added.
    GroupPartitions,
    /// A replica of the group moves, has moved, or waits for room to move.
    GroupRelocation,
    /// Clients may use another part of the group's service.
    GroupAccess,
    /// An assertion stopped a replica of the group, or all of the group.
    GroupQuarantined,
    /// An operator let a quarantined group go on.
    GroupReleased,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Dense from 1.
    pub seq: u64,
    pub at_ms: u64,
    pub kind: EventKind,
    pub group_id: Option<GroupId>,
    pub server_id: Option<ServerId>,
    pub epoch: Option<Epoch>,
    pub status: Option<GroupStatus>,
    /// A plain sentence for people.
    pub message: String,
}

/// The subject of an event.
#[derive(Debug, Clone, Copy)]
pub enum EventSubject {
    Group(GroupId, Option<Epoch>, Option<GroupStatus>),
    Server(ServerId),
    Replica(GroupId, ServerId),
}
