//! Groups are admitted, formed and deleted.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::Fleet;
use quorate_types::limits::DELETED_GROUPS_MAX;
use quorate_types::sla::{Refusal, RefusalReason, ScarceResource, Sla};
use quorate_types::{Epoch, GroupId, ServerId};
use uuid::Uuid;

use super::command::{Effect, Reply};
use super::event::EventKind;
use super::group::{Group, GroupStatus, first_ceiling, first_revision};
use super::{Change, State, Subject};

impl Change<'_> {
    pub(super) fn admit(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla) {
        let reply = self.admission(group_id, project_id, sla);
        self.effects.push(Effect::Reply(reply));
    }

    fn admission(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla) -> Reply {
        if let Some(group) = self.state.groups.get(&group_id) {
            if group.is_deleting() {
                return conflict("group_deleted", "The group is being deleted; use a new id.");
            }
            if group.sla != *sla || group.project_id != project_id {
                let message = "A group with this id exists with another SLA or project; use a new id.";
                return conflict("group_exists", message);
            }
            return Reply::Admitted { created: false };
        }
        if self.state.derived.deleted.contains(&group_id) {
            return conflict("group_deleted", "A group with this id was deleted; use a new id.");
        }
        if let Err((field, problem)) = sla.validate() {
            return Reply::Conflict {
                code: "invalid_sla",
                message: format!("{field} {problem}"),
            };
        }
        match self.place(sla) {
            Ok(chain) => {
                self.begin(group_id, project_id, sla, chain);
                Reply::Admitted { created: true }
            }
            Err(refusal) => {
                let subject = Subject::Group(group_id, None, None);
                self.event(EventKind::GroupRefused, subject, refusal.message.clone());
                Reply::Refused(refusal)
            }
        }
    }

    fn place(&mut self, sla: &Sla) -> Result<Vec<ServerId>, Refusal> {
        if let Some(refusal) = unknown_region(self.state, sla) {
            return Err(refusal);
        }
        let mut none = Fleet::default();
        let fleet = self
            .state
            .derived
            .fleets
            .get_mut(&sla.region)
            .unwrap_or(&mut none);
        quorate_placement::admit(fleet, &self.state.profile, sla)
    }

    /// Epoch 1, with the chain in placement order; the servers are charged already.
    fn begin(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla, chain: Vec<ServerId>) {
        for server in &chain {
            self.state
                .derived
                .groups_of
                .entry(*server)
                .or_default()
                .insert(group_id);
        }
        let profile = &self.state.profile;
        let group = Group {
            group_id,
            project_id,
            sla: sla.clone(),
            demands: profile.demands(sla),
            budget: profile.budget(sla),
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
            beginning: None,
            offset_ceiling: first_ceiling(),
            dropping: None,
            status: GroupStatus::Provisioning,
            created_at_ms: self.now_ms,
        };
        self.state.derived.meet(&group);
        self.state.groups.insert(group_id, group);
        let message = format!(
            "Admitted: {} appends/s of {} bytes on {} replicas.",
            sla.rate_per_s, sla.request_size_bytes, sla.replication_degree
        );
        let subject = Subject::Group(group_id, Some(1), Some(GroupStatus::Provisioning));
        self.event(EventKind::GroupAdmitted, subject, message);
        self.announce(group_id);
    }

    pub(super) fn applied(&mut self, server: ServerId, group_id: GroupId, epoch: Epoch) {
        let Some(group) = self.state.groups.get_mut(&group_id) else {
            return;
        };
        if !group.awaits_applied(epoch) || !group.chain.contains(&server) {
            return;
        }
        group.applied.insert(server);
        if group.chain.iter().all(|member| group.applied.contains(member)) {
            group.formed = true;
            group.applied.clear();
            group.returned.clear();
        }
        self.refresh_status(group_id);
    }

    fn remember_deleted(&mut self, group_id: GroupId) {
        if !self.state.derived.deleted.insert(group_id) {
            return;
        }
        self.state.deleted.push_back(group_id);
        if self.state.deleted.len() > DELETED_GROUPS_MAX
            && let Some(oldest) = self.state.deleted.pop_front()
        {
            self.state.derived.deleted.remove(&oldest);
        }
    }

    pub(super) fn delete(&mut self, group_id: GroupId) {
        self.effects.push(Effect::Reply(Reply::Deleted));
        let deletable = self
            .state
            .groups
            .get(&group_id)
            .is_some_and(|group| !group.is_deleting());
        if !deletable {
            // Unknown: a deletion may overtake its admission, which must then not come into effect.
            if !self.state.groups.contains_key(&group_id) {
                self.remember_deleted(group_id);
            }
            return;
        }
        let mut group = self.state.groups.remove(&group_id).expect("looked up above");
        // Those that held it last may still tell clients that it is lost.
        let told_lost: Vec<ServerId> = group.last_chain.iter().copied().filter(|_| group.lost).collect();
        let members: Vec<ServerId> = group.members().chain(told_lost).collect();
        self.uncharge(&group);
        group.epoch += 1;
        group.chain.clear();
        group.learner = None;
        (group.leaving, group.relieved) = (None, None);
        group.dropping = Some(BTreeSet::new());
        self.state.groups.insert(group_id, group);
        self.settle_want(group_id);
        self.state.derived.lost.remove(&group_id);
        self.note_departures(group_id, &members);
        // Also servers that left the chain before: all that are there must say that they dropped it.
        let holding = self
            .state
            .servers
            .values()
            .filter(|s| s.alive && s.to_drop.contains_key(&group_id));
        let holding = holding.map(|server| server.server_id).collect();
        self.state
            .groups
            .get_mut(&group_id)
            .expect("inserted above")
            .dropping = Some(holding);
        self.refresh_status(group_id);
        self.send_due_drops(group_id);
        self.finish_deletion(group_id);
    }

    pub(super) fn dropped(&mut self, server: ServerId, group_id: GroupId) {
        // A member's word is about a drop from before it was asked to learn the group anew.
        if self.state.forget_drop(server, group_id) {
            self.stop_waiting_for_drop(group_id, server);
        }
    }

    /// A server that is gone drops when it returns; deletions do not wait for it.
    pub(super) fn stop_waiting_for_drops(&mut self, server: ServerId) {
        for group_id in self.state.servers[&server]
            .to_drop
            .keys()
            .copied()
            .collect::<Vec<_>>()
        {
            self.stop_waiting_for_drop(group_id, server);
        }
    }

    fn stop_waiting_for_drop(&mut self, group_id: GroupId, server: ServerId) {
        if let Some(dropping) = self
            .state
            .groups
            .get_mut(&group_id)
            .and_then(|group| group.dropping.as_mut())
        {
            dropping.remove(&server);
            self.finish_deletion(group_id);
        }
    }

    fn finish_deletion(&mut self, group_id: GroupId) {
        let done = self.state.groups[&group_id]
            .dropping
            .as_ref()
            .is_some_and(BTreeSet::is_empty);
        if !done {
            return;
        }
        self.state.groups.remove(&group_id);
        self.remember_deleted(group_id);
        let message = "The group is deleted and its data dropped.".to_string();
        self.event(
            EventKind::GroupDeleted,
            Subject::Group(group_id, None, None),
            message,
        );
    }
}

/// No server ever registered in that region, though some did elsewhere.
pub(super) fn unknown_region(state: &State, sla: &Sla) -> Option<Refusal> {
    if state.servers.is_empty() || state.fleet(&sla.region).is_some() {
        return None;
    }
    let known: BTreeSet<&str> = state
        .servers
        .values()
        .map(|server| server.region.as_str())
        .collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Some(Refusal {
        reason: RefusalReason::UnknownRegion,
        scarce_resource: ScarceResource::Servers,
        message: format!("There is no region {:?}; there is {known}.", sla.region),
        largest_sla_that_fits: None,
    })
}

fn conflict(code: &'static str, message: &str) -> Reply {
    Reply::Conflict {
        code,
        message: message.into(),
    }
}
