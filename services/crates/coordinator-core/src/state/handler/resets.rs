//! A lost group is reset when its owner asks for it (`docs/internals/coordinator.md`, "Lost").

use quorate_placement::Profile;
use quorate_types::limits::RESET_OFFSET_MAX;
use quorate_types::{Epoch, GroupId};

use super::epochs::Epochs;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, GroupStatus};

/// May begin the log of a lost group again, through epochs; reads the profile.
#[derive(Debug)]
pub struct Resets<'a> {
    epochs: Epochs<'a>,
    profile: &'a Profile,
}

impl<'a> Resets<'a> {
    pub fn new(epochs: Epochs<'a>, profile: &'a Profile) -> Self {
        Self { epochs, profile }
    }

    /// `lost_in`: the epoch in which the owner saw the group lost.
    pub fn reset(&mut self, group_id: GroupId, lost_in: Epoch, entries_before: u64, bytes_before: u64) {
        let reply = match self.known_answer(group_id, lost_in) {
            Some(reply) => reply,
            None => self.reset_lost(group_id, entries_before, bytes_before),
        };
        self.epochs.out().reply(reply);
    }

    /// The answer where there is nothing to be done.
    fn known_answer(&self, group_id: GroupId, lost_in: Epoch) -> Option<Reply> {
        let conflict = |code, message: &str| {
            Some(Reply::Conflict {
                code,
                message: message.into(),
            })
        };
        let Some(group) = self.epochs.groups().get(&group_id) else {
            return Some(Reply::Unknown);
        };
        if group.beginning.is_some_and(|beginning| beginning.epoch > lost_in) {
            return Some(Reply::Done);
        }
        if group.status != GroupStatus::Lost {
            let message = "The group is not lost: it keeps its log, and needs no reset.";
            return conflict("group_not_lost", message);
        }
        if group.offset_ceiling > RESET_OFFSET_MAX {
            let message = "The group was reset so often that it has no offsets left; use a new group.";
            return conflict("too_many_resets", message);
        }
        None
    }

    fn reset_lost(&mut self, group_id: GroupId, entries_before: u64, bytes_before: u64) -> Reply {
        let reset = (self.epochs).reset(group_id, self.profile, entries_before, bytes_before);
        let (offset, before) = match reset {
            Ok(reset) => reset,
            Err(refusal) => return Reply::Refused(refusal),
        };
        let epoch = self.epochs.groups()[&group_id].epoch;
        let message = format!(
            "The group was reset: its log begins at offset {offset}, and its former entries are gone."
        );
        let subject = EventSubject::Group(group_id, Some(epoch), None);
        self.epochs.out().event(EventKind::GroupReset, subject, message);
        self.epochs.announce_reset(group_id, &before);
        Reply::Done
    }
}
