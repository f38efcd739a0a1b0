//! Groups are admitted, or refused with a reason.

use quorate_placement::{Asked, Profile};
use quorate_types::sla::{Refusal, Sla};
use quorate_types::{GroupId, ServerId};
use uuid::Uuid;

use super::dry_run::unknown_region;
use super::epochs::Epochs;
use super::guarantees::beyond_max;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, Group, GroupStatus};
use crate::state::table::{DeletedGroups, Guarantees};

/// May add groups, through epochs; reads the profile, the guarantees and the ids of deleted groups.
#[derive(Debug)]
pub struct Admissions<'a> {
    epochs: Epochs<'a>,
    deleted: &'a DeletedGroups,
    profile: &'a Profile,
    guarantees: &'a Guarantees,
}

impl<'a> Admissions<'a> {
    pub fn new(
        epochs: Epochs<'a>,
        deleted: &'a DeletedGroups,
        profile: &'a Profile,
        guarantees: &'a Guarantees,
    ) -> Self {
        Self {
            epochs,
            deleted,
            profile,
            guarantees,
        }
    }

    pub fn admit(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla) {
        let reply = match self.known_answer(group_id, project_id, sla) {
            Some(reply) => reply,
            None => self.admit_new(group_id, project_id, sla),
        };
        self.epochs.out().reply(reply);
    }

    /// The answer where nothing is to be placed.
    fn known_answer(&self, group_id: GroupId, project_id: Uuid, sla: &Sla) -> Option<Reply> {
        if let Some(group) = self.epochs.groups().get(&group_id) {
            if group.is_deleting() {
                return Some(conflict(
                    "group_deleted",
                    "The group is being deleted; use a new id.",
                ));
            }
            if group.sla != *sla || group.project_id != project_id {
                let message = "A group with this id exists with another SLA or project; use a new id.";
                return Some(conflict("group_exists", message));
            }
            return Some(Reply::Admitted { created: false });
        }
        if self.deleted.contains(group_id) {
            let message = "A group with this id was deleted; use a new id.";
            return Some(conflict("group_deleted", message));
        }
        let (field, problem) = sla.validate().err()?;
        Some(conflict("invalid_sla", &format!("{field} {problem}")))
    }

    fn admit_new(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla) -> Reply {
        match self.place(project_id, sla) {
            Ok(chain) => {
                self.begin(group_id, project_id, sla, chain);
                Reply::Admitted { created: true }
            }
            Err(refusal) => {
                let subject = EventSubject::Group(group_id, None, None);
                let message = refusal.message.clone();
                self.epochs.out().event(EventKind::GroupRefused, subject, message);
                Reply::Refused(refusal)
            }
        }
    }

    fn place(&mut self, project_id: Uuid, sla: &Sla) -> Result<Vec<ServerId>, Refusal> {
        let (guarantees, groups) = (self.guarantees, self.epochs.groups());
        let beyond = || beyond_max(guarantees, groups, self.profile, project_id, (None, sla, 1));
        match unknown_region(self.epochs.servers(), self.epochs.fleets(), sla).or_else(beyond) {
            Some(refusal) => Err(refusal),
            None => {
                let shared = guarantees.shared(project_id);
                self.epochs.place(self.profile, Asked { sla, shared })
            }
        }
    }

    /// Epoch 1, with the chain in placement order; the servers are charged already.
    fn begin(&mut self, group_id: GroupId, project_id: Uuid, sla: &Sla, chain: Vec<ServerId>) {
        let cost = (self.profile.demands(sla), self.profile.budget(sla));
        let now_ms = self.epochs.out().now_ms();
        self.epochs.found(Group {
            shared_tokens_per_s: self.guarantees.shared_tokens_per_s(project_id),
            ..Group::admitted((group_id, project_id), sla, cost, chain, now_ms)
        });
        let message = format!(
            "Admitted: {} on {} replicas.",
            sla.rates_in_words(),
            sla.replication_degree
        );
        let subject = EventSubject::Group(group_id, Some(1), Some(GroupStatus::Provisioning));
        self.epochs
            .out()
            .event(EventKind::GroupAdmitted, subject, message);
        self.epochs.announce(group_id);
    }
}

fn conflict(code: &'static str, message: &str) -> Reply {
    Reply::Conflict {
        code,
        message: message.into(),
    }
}
