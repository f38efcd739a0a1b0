//! One group: its SLA, its chain, and what follows from both.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::{Demand, RoleDemands, SharedGuarantee, demand_at, demands_with};
use quorate_types::config::Beginning;
use quorate_types::cost::Budget;
use quorate_types::limits::RESET_GAP_OFFSETS;
use quorate_types::{Access, Durability, Epoch, GroupId, Index, Layout, Offset, ProjectId, ServerId, Sla};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::group_status::GroupStatus;
use super::partitioned::Partition;
use super::quarantine::Quarantine;
use super::relocation::{Relocation, most_on_the_way};
use super::returned::{ByLogs, Returned, order_by_logs};
use super::terms::Terms;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub group_id: GroupId,
    pub project_id: Uuid,
    pub sla: Sla,
    /// As admitted: a later cost profile does not change what was promised.
    pub demands: RoleDemands,
    pub budget: Budget,
    /// The shared guarantee of its project, all of which it may use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_tokens_per_s: u64,
    /// Its place in a partitioned group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// 1, and one more for each resize.
    #[serde(default = "first_revision")]
    pub sla_revision: u64,
    /// The time of the last resize.
    #[serde(default)]
    pub sla_since_ms: Option<u64>,
    pub epoch: Epoch,
    /// Head first. It contains a failed server only when all of the chain have failed, or while the group is quarantined as
    /// a whole. Their data is all there is, so the chain waits for them.
    pub chain: Vec<ServerId>,
    /// Being caught up; at most one.
    pub learner: Option<ServerId>,
    /// Every replica of a chain applied its configuration once.
    pub formed: bool,
    /// Servers that applied the present epoch. Kept while the group is not formed, or members have returned.
    pub applied: BTreeSet<ServerId>,
    /// Nothing of the log is left anywhere; the chain is empty.
    pub lost: bool,
    /// The last holders of a lost log. They answer its clients that it is lost.
    #[serde(default)]
    pub last_chain: BTreeSet<ServerId>,
    /// Leaves the chain in the epoch in which the learner joins: its server drains, or is slow.
    #[serde(default)]
    pub leaving: Option<ServerId>,
    /// Left the chain because it was slow, before its replacement has joined; noted where one leaves after the other.
    #[serde(default)]
    pub relieved: Option<ServerId>,
    /// Replicas that are to move, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocation: Option<Relocation>,
    /// The logs that members of the chain returned with, until all of them are in one epoch again.
    #[serde(default)]
    pub returned: BTreeMap<ServerId, Returned>,
    /// The beginning of the log, once its owner has reset the group.
    #[serde(default)]
    pub beginning: Option<Beginning>,
    /// Above every offset that may have been acknowledged, so that a reset can begin the new log here. It is raised
    /// long before it is reached.
    #[serde(default = "first_ceiling")]
    pub offset_ceiling: Offset,
    /// While it is being deleted: servers that have not yet reported that they dropped it.
    pub dropping: Option<BTreeSet<ServerId>>,
    #[serde(default, skip_serializing_if = "Quarantine::is_none")]
    pub quarantine: Quarantine,
    #[serde(default, skip_serializing_if = "Access::is_full")]
    pub access: Access,
    /// As the last event named it.
    pub status: GroupStatus,
    pub created_at_ms: u64,
}

fn first_ceiling() -> Offset {
    RESET_GAP_OFFSETS
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(tokens_per_s: &u64) -> bool {
    *tokens_per_s == 0
}

fn first_revision() -> u64 {
    1
}

/// The members of a group: what a new epoch may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub chain: Vec<ServerId>,
    pub learner: Option<ServerId>,
    pub leaving: Option<ServerId>,
    pub relieved: Option<ServerId>,
}

impl Membership {
    /// Without those that are not well. A chain of which nobody is well stays. Its servers' data is all there is, and any
    /// server left out could be the only one that knows the end.
    pub fn without_failed(mut self, is_well: impl Fn(ServerId) -> bool) -> Self {
        self.learner = self.learner.filter(|learner| is_well(*learner));
        if self.chain.iter().any(|server| is_well(*server)) {
            self.chain.retain(|server| is_well(*server));
        }
        self
    }
}

impl Group {
    pub fn degree(&self) -> usize {
        usize::from(self.sla.replication_degree)
    }

    /// The layout by which its head takes appends.
    pub fn layout(&self) -> Layout {
        self.partition
            .map_or(Layout::default(), |partition| partition.layout)
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

    /// The amounts that each server is charged. Members: by position, as if the chain were whole; a learner as the tail.
    /// Servers that replicas are to move to are charged beforehand.
    pub fn charges(&self) -> Vec<(ServerId, Demand)> {
        self.charges_by(&self.demands, &self.budget)
    }

    /// The same by other demands and another budget for the same SLA.
    pub fn charges_by(&self, demands: &RoleDemands, budget: &Budget) -> Vec<(ServerId, Demand)> {
        let all = demands_with(demands, budget, &self.sla, self.shared());
        if let Some(relocation) = self.relocation.as_ref().filter(|one| !one.moves.is_empty()) {
            let next = relocation.next.as_ref().map(|terms| self.demands_under(terms));
            return most_on_the_way(&self.chain, &relocation.moves, &all, next.as_deref());
        }
        let chain = self.chain.iter().copied().zip(all.iter().copied());
        let tail = *all.last().expect("a degree is at least 1");
        chain.chain(self.learner.map(|server| (server, tail))).collect()
    }

    /// The demands of all positions of a whole chain.
    pub fn whole_demands(&self) -> Vec<Demand> {
        demands_with(&self.demands, &self.budget, &self.sla, self.shared())
    }

    /// The same under other terms.
    pub fn demands_under(&self, terms: &Terms) -> Vec<Demand> {
        demands_with(&terms.demands, &terms.budget, &terms.sla, self.shared())
    }

    /// The demand of the chain's end, for which replacements are elected.
    pub fn tail_demand(&self) -> Demand {
        let last = self.degree() - 1;
        demand_at(last, &self.demands, &self.budget, &self.sla, self.shared())
    }

    /// The shared guarantee of its project, if there is one.
    pub fn shared(&self) -> Option<SharedGuarantee> {
        SharedGuarantee::of(ProjectId(self.project_id), self.shared_tokens_per_s)
    }

    /// Tokens of a guarantee that a request costs, in thousandths.
    pub fn request_guarantee_milli(&self) -> u64 {
        self.budget.guarantee_tokens_milli(self.degree())
    }

    /// Tokens of a guarantee that its own rate is worth each second.
    pub fn own_guarantee_tokens(&self) -> u64 {
        self.budget.reserved_guarantee_tokens(self.degree())
    }

    /// Whether anybody may join or leave, if not for the loss of its data. While the group is quarantined as a whole, its
    /// members wait for the release: those of them that are sound hold all there is, also while their servers are away.
    pub fn may_change_members(&self) -> bool {
        !self.quarantine.is_whole()
    }

    /// Whether the server takes part in the group: its replica is not in quarantine, and it is alive.
    pub fn is_well(&self, server: ServerId, is_alive: impl Fn(ServerId) -> bool) -> bool {
        is_alive(server) && !self.quarantine.servers.contains(&server)
    }

    /// Whether a replacement should be elected: a replica is missing and none is on its way.
    pub fn wants_learner(&self) -> bool {
        !self.is_deleting()
            && self.may_change_members()
            && !self.chain.is_empty()
            && self.learner.is_none()
            && self.chain.len() < self.degree()
    }

    /// Whether offsets have come so near the ceiling that it must be raised.
    pub fn nears_ceiling(&self, commit_offset: Offset) -> bool {
        commit_offset.saturating_add(RESET_GAP_OFFSETS / 2) > self.offset_ceiling
    }

    /// Whole, all of it alive, and nobody is learning: a replica may move.
    pub fn is_settled(&self, is_alive: impl Fn(ServerId) -> bool) -> bool {
        let is_whole = self.learner.is_none() && self.chain.len() == self.degree();
        is_whole && self.may_change_members() && self.chain.iter().all(|server| is_alive(*server))
    }

    /// Whether it may lose a replica and still commit.
    pub fn can_spare_one(&self) -> bool {
        self.chain.len() > usize::from(self.sla.min_replicas())
    }

    /// Whether the group could change to this SLA where it is.
    pub fn keeps_place_with(&self, sla: &Sla) -> bool {
        (sla.durability, sla.replication_degree, &sla.region)
            == (self.sla.durability, self.sla.replication_degree, &self.sla.region)
    }

    /// Whether a member's report that it applied this epoch changes anything.
    pub fn awaits_applied(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && (!self.formed || !self.returned.is_empty())
    }

    pub fn status_with(&self, alive: impl Fn(ServerId) -> bool) -> GroupStatus {
        let down = self.chain.iter().filter(|server| !alive(**server)).count();
        if self.is_deleting() {
            GroupStatus::Deleting
        } else if self.lost || (down == self.chain.len() && !self.is_persistent()) {
            GroupStatus::Lost
        } else if down > 0 || self.quarantine.is_whole() {
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

    /// The chain in the order of its members' logs: of those that lived on, and those that members returned with.
    pub fn chain_by_logs(&self, is_alive: impl Fn(ServerId) -> bool) -> ByLogs {
        order_by_logs(&self.chain, &self.returned, is_alive)
    }

    pub fn membership(&self) -> Membership {
        Membership {
            chain: self.chain.clone(),
            learner: self.learner,
            leaving: self.leaving,
            relieved: self.relieved,
        }
    }
}

/// Transitions. Handlers reach them through the table of groups.
impl Group {
    /// A group in epoch 1, whose replicas have yet to apply it.
    pub fn admitted(
        (group_id, project_id): (GroupId, Uuid),
        sla: &Sla,
        (demands, budget): (RoleDemands, Budget),
        chain: Vec<ServerId>,
        now_ms: u64,
    ) -> Self {
        Self {
            group_id,
            project_id,
            sla: sla.clone(),
            demands,
            budget,
            shared_tokens_per_s: 0,
            partition: None,
            sla_revision: first_revision(),
            sla_since_ms: None,
            epoch: 1,
            chain,
            learner: None,
            formed: false,
            applied: BTreeSet::new(),
            lost: false,
            last_chain: BTreeSet::new(),
            returned: BTreeMap::new(),
            leaving: None,
            relieved: None,
            relocation: None,
            beginning: None,
            offset_ceiling: first_ceiling(),
            dropping: None,
            quarantine: Quarantine::default(),
            access: Access::Full,
            status: GroupStatus::Provisioning,
            created_at_ms: now_ms,
        }
    }

    /// The next epoch, with these members.
    pub fn enter_epoch(&mut self, members: Membership) {
        self.epoch += 1;
        (self.chain, self.learner) = (members.chain, members.learner);
        (self.leaving, self.relieved) = (members.leaving, members.relieved);
        self.applied.clear();
        self.returned.retain(|server, _| self.chain.contains(server));
        self.follow_relocation();
    }

    fn follow_relocation(&mut self) {
        let degree = self.degree();
        if let Some(relocation) = &mut self.relocation {
            relocation.follow(&self.chain, self.learner, degree);
        }
    }

    /// Forgets moves that the members of this epoch rule out. A replica leaves when a learner joins, so without one there
    /// is no move; a slow one was relieved while the chain is short.
    pub fn settle_departures(&mut self) {
        let moving = |leaving: &ServerId| self.learner.is_some() && self.chain.contains(leaving);
        self.leaving = self.leaving.filter(moving);
        let short = self.chain.len() < self.degree();
        self.relieved = self.relieved.filter(|slow| short && !self.chain.contains(slow));
    }

    /// The last epoch of a group that is deleted: nobody is a member, and nobody has confirmed anything.
    pub fn dissolve(&mut self) {
        self.epoch += 1;
        self.chain.clear();
        self.applied.clear();
        self.returned.clear();
        self.learner = None;
        (self.leaving, self.relieved, self.relocation) = (None, None, None);
        self.dropping = Some(BTreeSet::new());
    }

    /// The next epoch with another chain and an empty log, which begins at the ceiling.
    pub fn reset(&mut self, chain: Vec<ServerId>, entries_before: u64, bytes_before: u64) {
        self.epoch += 1;
        let offset = self.offset_ceiling;
        self.beginning = Some(Beginning {
            epoch: self.epoch,
            offset,
            entries_before,
            bytes_before,
        });
        self.offset_ceiling = offset + RESET_GAP_OFFSETS;
        (self.chain, self.learner, self.leaving, self.relieved) = (chain, None, None, None);
        (self.lost, self.formed) = (false, false);
        // The new chain was placed anew.
        if let Some(relocation) = &mut self.relocation {
            relocation.moves.clear();
        }
        self.applied.clear();
        self.returned.clear();
        self.last_chain.clear();
        self.quarantine = Quarantine::default();
    }

    /// A member applied the present epoch; the group is formed when all of its chain have.
    pub fn confirm_applied(&mut self, server: ServerId) {
        self.applied.insert(server);
        if self.chain.iter().all(|member| self.applied.contains(member)) {
            self.formed = true;
            self.applied.clear();
            self.returned.clear();
        }
    }

    /// A member of the chain is back with this log. Reports older than the epoch of its last committed batch are
    /// forgotten. A chain of that epoch or a later one committed the batch, so all of that chain had it. Those members have
    /// more by now than they returned with, though their `applied` may not have arrived.
    pub fn note_returned(&mut self, server: ServerId, returned: Returned) {
        let committed: (Epoch, Index) = returned.committed;
        self.returned.retain(|_, one| committed.0 <= one.until);
        self.returned.insert(server, returned);
    }

    /// Raises the ceiling by at least one gap above these offsets.
    pub fn raise_ceiling(&mut self, commit_offset: Offset) {
        let steps = commit_offset / RESET_GAP_OFFSETS + 2;
        self.offset_ceiling = self.offset_ceiling.max(steps.saturating_mul(RESET_GAP_OFFSETS));
    }

    /// The status as an event is about to name it. A lost group remembers its chain; one that commits has no need to.
    pub fn set_status(&mut self, status: GroupStatus) {
        self.status = status;
        match status {
            GroupStatus::Lost => self.last_chain.extend(self.chain.iter().copied()),
            GroupStatus::Active | GroupStatus::Degraded => self.last_chain.clear(),
            GroupStatus::Provisioning | GroupStatus::Paused | GroupStatus::Deleting => {}
        }
    }
}
