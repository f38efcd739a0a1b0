//! Questions of the planner: commands to propose, messages to send again.

use std::collections::{BTreeMap, BTreeSet};

use quorate_guarantees::{Guarantee, GuaranteedGroup, GuaranteedProject};
use quorate_placement::{Amounts, Fleet};
use quorate_types::control::{GroupReport, ToServer};
use quorate_types::{Epoch, GroupId, Offset, ProjectId, ServerId};
use uuid::Uuid;

use super::handler::drops::{drop_order, may_drop};
use super::handler::guarantees::own_tokens_per_s;
use super::handler::vetting::Vetting;
use super::machine::CoordinatorState;
use crate::command::{Refused, Registration};

impl CoordinatorState {
    /// Whether a registration would be accepted. Asked before it reaches the log.
    pub fn vet(&self, registration: &Registration, now_ms: u64) -> Result<(), Refused> {
        let vetting = Vetting {
            servers: &self.servers,
            tokens: self.join_tokens(),
            groups: &self.groups,
            now_ms,
        };
        vetting.vet(registration)
    }

    /// Failed servers that are still in a chain of which another is alive: they went down with the whole chain and have
    /// not returned. They are spliced out when they do not follow within a lease. A group that is quarantined as a whole
    /// waits for its own.
    pub fn laggards(&self) -> BTreeSet<ServerId> {
        let dead = self.servers.values().filter(|server| !server.alive);
        dead.filter(|server| {
            let mut groups = self.groups.on(server.server_id);
            groups.any(|id| {
                let group = &self.groups[&id];
                group.may_change_members() && group.chain.iter().any(|other| self.is_alive(*other))
            })
        })
        .map(|server| server.server_id)
        .collect()
    }

    /// Projects with guarantees, as the coordinators divide them each interval. Groups without any replica are left out.
    pub fn guaranteed_projects(&self) -> Vec<GuaranteedProject> {
        let project = |(project_id, guarantee): (Uuid, &Guarantee)| {
            let heads = self.groups.of_project(project_id);
            let groups = heads.filter_map(|group| {
                Some(GuaranteedGroup {
                    group_id: group.group_id,
                    head: *group.chain.first()?,
                    request_milli: group.request_guarantee_milli(),
                })
            });
            let own = own_tokens_per_s(&self.groups, project_id, |_| true);
            let shared_tokens_per_s = guarantee.shared_tokens_per_s;
            let beside = |max: u64| max.saturating_sub(own).saturating_sub(shared_tokens_per_s);
            GuaranteedProject {
                project: ProjectId(project_id),
                shared_tokens_per_s,
                idle_tokens_per_s: guarantee.max_tokens_per_s.map(beside),
                policy: guarantee.policy.clone(),
                groups: groups.collect(),
            }
        };
        self.guarantees.iter().map(project).collect()
    }

    /// The number of groups in projects with guarantees. A deletion changes it, and no epoch.
    pub fn guaranteed_groups(&self) -> usize {
        let projects = self.guarantees.iter();
        projects
            .map(|(project_id, _)| self.groups.count_of_project(project_id))
            .sum()
    }

    /// Reserved for shared guarantees on each server that reserves something, in thousandths of tokens each second.
    pub fn shared_reservations(&self) -> BTreeMap<ServerId, [u64; 3]> {
        let of_regions = self.fleets().iter().flat_map(Fleet::shared_reservations);
        let milli = |(server, amounts): (ServerId, Amounts)| {
            (server, amounts.rates().map(|tokens| tokens.saturating_mul(1_000)))
        };
        of_regions.map(milli).collect()
    }

    /// Messages that a server may have missed, by the epochs that it reported. Each is idempotent, so one too many does
    /// no harm.
    pub fn corrections(
        &self,
        server: ServerId,
        reported: impl Fn(GroupId) -> Option<Epoch>,
    ) -> Vec<ToServer> {
        let members = self.groups.on(server);
        let members = members.filter(|id| !self.groups[id].quarantine.servers.contains(&server));
        let behind = members.filter(|id| reported(*id).is_none_or(|epoch| epoch < self.groups[id].epoch));
        let configure = behind.map(|id| ToServer::Configure {
            config: self.config_of(&self.groups[&id]),
        });
        // A server that was away when a group went on without it, and whose data is kept for now, takes itself for a
        // member: it would report its old successor as slow for ever.
        let is_former = |id: &GroupId| {
            let here = reported(*id).zip(self.groups.get(id));
            here.is_some_and(|(epoch, group)| epoch < group.epoch && !group.is_member(server))
        };
        let kept = self.servers[&server].to_drop.keys().copied();
        let kept = kept.filter(|id| !may_drop(&self.groups, &self.servers, *id));
        let depose = kept.filter(is_former).map(|id| ToServer::Configure {
            config: self.config_of(&self.groups[&id]),
        });
        let due = self.servers[&server]
            .to_drop
            .iter()
            .filter(|(id, _)| may_drop(&self.groups, &self.servers, **id));
        let drop = due.map(|(group_id, epoch)| drop_order(&self.groups, *group_id, *epoch));
        configure.chain(depose).chain(drop).collect()
    }

    /// Groups whose offset ceiling must be raised, by a server's report (`Command::OffsetsReached`).
    pub fn offsets_due(&self, server: ServerId, reports: &[GroupReport]) -> Vec<(GroupId, Offset)> {
        let nears = |report: &&GroupReport| {
            let group = self.groups.get(&report.group_id);
            group.is_some_and(|group| group.is_member(server) && group.nears_ceiling(report.commit_offset))
        };
        let due = reports.iter().filter(nears);
        due.map(|report| (report.group_id, report.commit_offset))
            .collect()
    }
}
