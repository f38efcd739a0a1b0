//! A group gets another SLA, where it is or after some of its replicas have moved (`docs/internals/coordinator.md`, "Resize").

use quorate_placement::Profile;
use quorate_types::GroupId;
use quorate_types::sla::Sla;

use super::guarantees::beyond_max;
use super::relocations::Relocations;
use crate::command::Reply;
use crate::state::entity::{Group, GroupStatus, Terms};
use crate::state::table::Guarantees;

/// May change the SLA of groups and move replicas, through epochs; reads the guarantees.
#[derive(Debug)]
pub struct Resizes<'a> {
    relocations: Relocations<'a>,
    guarantees: &'a Guarantees,
    /// The whole fleet knows relocations.
    may_move: bool,
}

impl<'a> Resizes<'a> {
    pub fn new(relocations: Relocations<'a>, guarantees: &'a Guarantees, may_move: bool) -> Self {
        Self {
            relocations,
            guarantees,
            may_move,
        }
    }

    pub fn resize(&mut self, group_id: GroupId, sla: &Sla, revision: u64) {
        let reply = match self.known_answer(group_id, sla, revision) {
            Some(reply) => reply,
            None => self.resize_if_it_fits(group_id, sla, revision),
        };
        self.relocations.epochs.out().reply(reply);
    }

    /// The answer where no room is to be looked for.
    fn known_answer(&self, group_id: GroupId, sla: &Sla, revision: u64) -> Option<Reply> {
        let Some(group) = self.relocations.epochs.groups().get(&group_id) else {
            return Some(Reply::Unknown);
        };
        if group.is_deleting() {
            return conflict("group_deleted", "The group is being deleted.".into());
        }
        if group.partition.is_some() {
            let message = "The group has partitions: change all of them at once.";
            return conflict("group_partitioned", message.into());
        }
        let (newest, asked_last) = last_asked(group);
        if revision == newest && *sla == *asked_last {
            return Some(Reply::Done); // asked for again: the first answer was lost
        }
        if revision != newest + 1 {
            let message = format!("The SLA has revision {newest} by now; ask for the next one.");
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

    /// Begins the SLA or the way to it, or changes nothing.
    fn resize_if_it_fits(&mut self, group_id: GroupId, sla: &Sla, revision: u64) -> Reply {
        let Relocations { epochs, profile } = &mut self.relocations;
        let profile: &Profile = profile;
        let (groups, instead) = (epochs.groups(), (Some(group_id), sla, 1));
        let project_id = groups[&group_id].project_id;
        if let Some(refusal) = beyond_max(self.guarantees, groups, profile, project_id, instead) {
            return Reply::Refused(refusal);
        }
        let next = Terms::of(profile, sla, revision);
        let mut dry_run = epochs.dry_run(profile);
        let Some(refusal) = dry_run.refusal_in_place(group_id, sla) else {
            self.relocations.resize(group_id, next);
            return Reply::Done;
        };
        if !self.may_move {
            return Reply::Refused(refusal);
        }
        match dry_run.moves_instead_of(refusal, group_id, sla) {
            Ok(moves) => {
                self.relocations.begin_resize(group_id, moves, next);
                Reply::Done
            }
            Err(refusal) => Reply::Refused(refusal),
        }
    }
}

/// The last SLA that was promised to the group, which may have yet to begin, and its revision.
fn last_asked(group: &Group) -> (u64, &Sla) {
    let next = group.relocation.as_ref().and_then(|one| one.next.as_ref());
    next.map_or((group.sla_revision, &group.sla), |next| {
        (next.revision, &next.sla)
    })
}

fn conflict(code: &'static str, message: String) -> Option<Reply> {
    Some(Reply::Conflict { code, message })
}
