//! A group as the API shows it.

use quorate_types::config::Role;
use quorate_types::cost::{Charges, ReadBudget};
use quorate_types::sla::ScarceResource;
use quorate_types::{Access, Epoch, GroupId, Offset, ServerId, Sla};
use serde::Serialize;
use uuid::Uuid;

use super::time::rfc3339;
use crate::command::Cause;
use crate::state::{CoordinatorState, Group, GroupStatus, Move, Relocation};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupView {
    pub group_id: GroupId,
    pub project_id: Uuid,
    pub sla: Sla,
    pub status: GroupStatus,
    pub epoch: Epoch,
    /// Head first.
    pub replicas: Vec<ReplicaView>,
    pub learners: Vec<ReplicaView>,
    /// The server whose replica leaves when the learner joins.
    pub leaving: Option<ServerId>,
    /// Replicas that are to move, one after the other; null: none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relocation: Option<RelocationView>,
    /// The time since which the group is quarantined as a whole; null while it is not.
    pub quarantined_since: Option<String>,
    /// Servers whose replica of the group is in quarantine.
    pub quarantined_on: Vec<ServerId>,
    /// The part of the service that clients may use.
    pub access: Access,
    /// The head's charges for batches.
    pub charges: Charges,
    /// The cost of reads; in the view of one group alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<Box<ReadBudget>>,
    /// Tokens each second that the project's guarantee shares among its groups; 0: it has none.
    pub shared_tokens_per_s: u64,
    /// The price of a request of the declared size, in thousandths of those tokens.
    pub request_milli_tokens: u64,
    /// The first offset of the log: above 0 when the group was lost and reset.
    pub begins_at_offset: Offset,
    /// 1, and one more for each resize.
    pub sla_revision: u64,
    /// The time at which the group got this SLA.
    pub sla_since: String,
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicaView {
    pub server_id: ServerId,
    pub name: String,
    pub address: String,
    pub role: Role,
    pub alive: bool,
    /// The name of its server's failure domain, if it has one.
    pub failure_domain: Option<String>,
}

/// A group's way to other servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelocationView {
    pub cause: Cause,
    pub since: String,
    /// Still to be done, in order; the first is under way.
    pub moves: Vec<Move>,
    /// The SLA that begins after the last move.
    pub next_sla: Option<Sla>,
    pub next_revision: Option<u64>,
    /// The resource that a resize waits for.
    pub scarce_resource: Option<ScarceResource>,
}

impl RelocationView {
    fn of(relocation: &Relocation) -> Self {
        let next = relocation.next.as_ref();
        Self {
            cause: relocation.cause,
            since: rfc3339(relocation.since_ms),
            moves: relocation.moves.clone(),
            next_sla: next.map(|next| next.sla.clone()),
            next_revision: next.map(|next| next.revision),
            scarce_resource: relocation.scarce,
        }
    }
}

/// A group whose replicas move.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelocatingView {
    pub group_id: GroupId,
    pub project_id: Uuid,
    pub relocation: RelocationView,
}

impl RelocatingView {
    /// By the ids of the groups.
    pub fn all(state: &CoordinatorState) -> Vec<Self> {
        let view = |group_id: GroupId| {
            let group = &state.groups[&group_id];
            Some(Self {
                group_id,
                project_id: group.project_id,
                relocation: RelocationView::of(group.relocation.as_ref()?),
            })
        };
        state.groups.relocating().into_iter().filter_map(view).collect()
    }
}

impl GroupView {
    pub fn of(state: &CoordinatorState, group: &Group) -> Self {
        let config = state.config_of(group);
        let view = |server: ServerId| ReplicaView {
            server_id: server,
            name: state.servers[&server].name.clone(),
            address: state.servers[&server].address.clone(),
            role: config.role_of(server),
            alive: state.is_alive(server),
            failure_domain: state.servers[&server].failure_domain.clone(),
        };
        Self {
            group_id: group.group_id,
            project_id: group.project_id,
            sla: group.sla.clone(),
            status: group.status,
            epoch: group.epoch,
            replicas: group.chain.iter().copied().map(view).collect(),
            learners: group.learner.into_iter().map(view).collect(),
            leaving: group.leaving,
            relocation: group.relocation.as_ref().map(RelocationView::of),
            quarantined_since: group.quarantine.since_ms().map(rfc3339),
            quarantined_on: group.quarantine.servers.iter().copied().collect(),
            access: group.access,
            charges: config.budget.charges(),
            reads: config.budget.reads.clone(),
            shared_tokens_per_s: group.shared_tokens_per_s,
            request_milli_tokens: group.request_guarantee_milli(),
            begins_at_offset: group.beginning.map_or(0, |beginning| beginning.offset),
            sla_revision: group.sla_revision,
            sla_since: rfc3339(group.sla_since_ms.unwrap_or(group.created_at_ms)),
            created_at: rfc3339(group.created_at_ms),
        }
    }

    pub fn all(state: &CoordinatorState) -> Vec<Self> {
        let groups = state.groups.values();
        groups.map(|group| Self::without_reads(state, group)).collect()
    }

    /// One of many.
    pub fn without_reads(state: &CoordinatorState, group: &Group) -> Self {
        Self {
            reads: None,
            ..Self::of(state, group)
        }
    }
}
