//! The owner lets clients use another part of a group's service (`docs/internals/coordinator.md`, "Access").

use quorate_types::{Access, GroupId};

use super::epochs::Epochs;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, Group};

/// May change the access of groups, through epochs.
#[derive(Debug)]
pub struct Accesses<'a> {
    epochs: Epochs<'a>,
}

impl<'a> Accesses<'a> {
    pub fn new(epochs: Epochs<'a>) -> Self {
        Self { epochs }
    }

    pub fn set(&mut self, group_id: GroupId, access: Access) {
        let reply = match self.epochs.groups().get(&group_id) {
            None => Reply::Unknown,
            Some(group) if group.is_deleting() => Reply::Conflict {
                code: "group_deleted",
                message: "The group is being deleted.".into(),
            },
            Some(group) if group.access == access => Reply::Done,
            Some(group) => {
                let may_enter = may_enter_epoch(group);
                self.change(group_id, access, may_enter)
            }
        };
        self.epochs.out().reply(reply);
    }

    fn change(&mut self, group_id: GroupId, access: Access, may_enter_epoch: bool) -> Reply {
        let message = match access {
            Access::Full => "Clients have the reservation again, and burst capacity.",
            Access::Reserved => "Clients have the reservation alone.",
            Access::Suspended => "The group is suspended: clients can neither append nor read.",
        };
        if may_enter_epoch {
            self.epochs.set_access(group_id, access);
        } else {
            self.epochs.note_access(group_id, access);
        }
        let epoch = self.epochs.groups()[&group_id].epoch;
        let subject = EventSubject::Group(group_id, Some(epoch), None);
        self.epochs
            .out()
            .event(EventKind::GroupAccess, subject, message.into());
        Reply::Done
    }
}

/// A group that is lost, or quarantined as a whole, takes no requests anyway.
fn may_enter_epoch(group: &Group) -> bool {
    !group.chain.is_empty() && group.may_change_members()
}
