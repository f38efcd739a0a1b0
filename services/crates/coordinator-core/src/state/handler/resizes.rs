//! A group gets another SLA where it is (`docs/internals/coordinator.md`, "Resize").

use quorate_placement::Profile;
use quorate_types::GroupId;
use quorate_types::sla::Sla;

use super::epochs::{Epochs, Terms};
use super::guarantees::beyond_max;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, GroupStatus};
use crate::state::table::Guarantees;

/// May change the SLA of groups, through epochs; reads the profile and the guarantees.
#[derive(Debug)]
pub struct Resizes<'a> {
    epochs: Epochs<'a>,
    profile: &'a Profile,
    guarantees: &'a Guarantees,
}

impl<'a> Resizes<'a> {
    pub fn new(epochs: Epochs<'a>, profile: &'a Profile, guarantees: &'a Guarantees) -> Self {
        Self {
            epochs,
            profile,
            guarantees,
        }
    }

    pub fn resize(&mut self, group_id: GroupId, sla: &Sla, revision: u64) {
        let reply = match self.known_answer(group_id, sla, revision) {
            Some(reply) => reply,
            None => self.resize_if_it_fits(group_id, sla, revision),
        };
        self.epochs.out().reply(reply);
    }

    /// The answer where no room is to be looked for.
    fn known_answer(&self, group_id: GroupId, sla: &Sla, revision: u64) -> Option<Reply> {
        let Some(group) = self.epochs.groups().get(&group_id) else {
            return Some(Reply::Unknown);
        };
        if group.is_deleting() {
            return conflict("group_deleted", "The group is being deleted.".into());
        }
        if group.partition.is_some() {
            let message = "The group has partitions: change all of them at once.";
            return conflict("group_partitioned", message.into());
        }
        if revision == group.sla_revision && *sla == group.sla {
            return Some(Reply::Done); // asked for again: the first answer was lost
        }
        if revision != group.sla_revision + 1 {
            let message = format!(
                "The SLA has revision {} by now; ask for the next one.",
                group.sla_revision
            );
            return conflict("sla_revision", message);
        }
        if let Err((field, problem)) = sla.validate() {
            return conflict("invalid_sla", format!("{field} {problem}"));
        }
        if !group.keeps_place_with(sla) {
            let message =
                "Durability, replication degree and region stay as they are for the life of a group.";
            return conflict("not_in_place", message.into());
        }
        if group.status == GroupStatus::Lost {
            return conflict("group_lost", "The group is lost: reset it first.".into());
        }
        if !group.may_change_members() {
            // It would need an epoch.
            let message =
                "The group is quarantined as a whole, and keeps its SLA until an operator releases it.";
            return conflict("group_quarantined", message.into());
        }
        None
    }

    /// Issues an epoch with the same members and other charges, or changes nothing.
    fn resize_if_it_fits(&mut self, group_id: GroupId, sla: &Sla, revision: u64) -> Reply {
        let groups = self.epochs.groups();
        let project_id = groups[&group_id].project_id;
        let instead = (Some(group_id), sla, 1);
        let beyond = beyond_max(self.guarantees, groups, self.profile, project_id, instead);
        let refusal = beyond.or_else(|| self.epochs.dry_run(self.profile).refusal_in_place(group_id, sla));
        if let Some(refusal) = refusal {
            return Reply::Refused(refusal);
        }
        let before = &self.epochs.groups()[&group_id].sla;
        let message = format!(
            "Resized: {}; it was {}.",
            sla.rates_in_words(),
            before.rates_in_words(),
        );
        let terms = Terms {
            sla: sla.clone(),
            demands: self.profile.demands(sla),
            budget: self.profile.budget(sla),
            partition: None,
            revision,
        };
        self.epochs.resize(group_id, terms);
        let epoch = self.epochs.groups()[&group_id].epoch;
        let subject = EventSubject::Group(group_id, Some(epoch), None);
        self.epochs.out().event(EventKind::GroupResized, subject, message);
        // `min_replicas` may have changed, and with it whether the chain is long enough.
        self.epochs.configs().refresh_status(group_id);
        Reply::Done
    }
}

fn conflict(code: &'static str, message: String) -> Option<Reply> {
    Some(Reply::Conflict { code, message })
}
