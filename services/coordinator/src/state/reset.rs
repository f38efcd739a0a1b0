//! A lost group begins anew, when its owner says so (`docs/internals/coordinator.md`, "Lost").

use std::collections::BTreeSet;

use quorate_types::config::Beginning;
use quorate_types::control::{GroupReport, ToServer};
use quorate_types::limits::{RESET_GAP_OFFSETS, RESET_OFFSET_MAX};
use quorate_types::{Epoch, GroupId, Offset, ServerId};

use super::command::{Effect, Reply};
use super::event::EventKind;
use super::group::GroupStatus;
use super::{Change, State, Subject};

impl Change<'_> {
    pub(super) fn reset(
        &mut self,
        group_id: GroupId,
        lost_in: Epoch,
        entries_before: u64,
        bytes_before: u64,
    ) {
        let reply = self.begin_anew(group_id, lost_in, entries_before, bytes_before);
        self.effects.push(Effect::Reply(reply));
    }

    fn begin_anew(
        &mut self,
        group_id: GroupId,
        lost_in: Epoch,
        entries_before: u64,
        bytes_before: u64,
    ) -> Reply {
        if let Err(reply) = self.state.may_begin_anew(group_id, lost_in) {
            return reply;
        }
        // What the lost chain was charged is free for the new one.
        let mut group = self.state.groups.remove(&group_id).expect("looked up above");
        self.uncharge(&group);
        let fleet = self
            .state
            .derived
            .fleets
            .entry(group.sla.region.clone())
            .or_default();
        let placed = quorate_placement::place_again(fleet, &self.state.profile, &group.sla, &group.demands);
        let chain = match placed {
            Ok(chain) => chain,
            Err(refusal) => {
                self.charge(&group);
                self.state.groups.insert(group_id, group);
                return Reply::Refused(refusal);
            }
        };
        let before: BTreeSet<ServerId> = group.members().chain(group.last_chain.iter().copied()).collect();
        group.epoch += 1;
        let offset = group.offset_ceiling;
        group.beginning = Some(Beginning {
            epoch: group.epoch,
            offset,
            entries_before,
            bytes_before,
        });
        group.offset_ceiling = offset + RESET_GAP_OFFSETS;
        for server in &chain {
            self.state
                .derived
                .groups_of
                .entry(*server)
                .or_default()
                .insert(group_id);
        }
        (group.chain, group.learner, group.leaving, group.relieved) = (chain, None, None, None);
        (group.lost, group.formed) = (false, false);
        group.applied.clear();
        group.returned.clear();
        group.last_chain.clear();
        let epoch = group.epoch;
        self.state.derived.meet(&group);
        self.state.groups.insert(group_id, group);
        self.settle_want(group_id);
        self.state.derived.lost.remove(&group_id);
        let message = format!("The log begins anew at offset {offset}; what it held before is given up.");
        self.event(
            EventKind::GroupReset,
            Subject::Group(group_id, Some(epoch), None),
            message,
        );
        self.note_departures(group_id, &before.into_iter().collect::<Vec<_>>());
        self.announce(group_id);
        self.send_due_drops(group_id);
        Reply::Done
    }

    pub(super) fn offsets_reached(&mut self, group_id: GroupId, commit_offset: Offset) {
        if let Some(group) = self.state.groups.get_mut(&group_id)
            && group.nears_ceiling(commit_offset)
        {
            let steps = commit_offset / RESET_GAP_OFFSETS + 2;
            group.offset_ceiling = group.offset_ceiling.max(steps.saturating_mul(RESET_GAP_OFFSETS));
        }
    }

    /// Nothing of the group is left anywhere: who held it last tells its clients so.
    pub(super) fn tell_lost(&mut self, group_id: GroupId, server: ServerId) {
        if self.state.is_alive(server) {
            let message = ToServer::Lost { group_id };
            self.effects.push(Effect::Send { server, message });
        }
    }
}

impl State {
    /// The answer where there is nothing to be done.
    fn may_begin_anew(&self, group_id: GroupId, lost_in: Epoch) -> Result<(), Reply> {
        let conflict = |code, message: &str| {
            Err(Reply::Conflict {
                code,
                message: message.into(),
            })
        };
        let Some(group) = self.groups.get(&group_id) else {
            return Err(Reply::Unknown);
        };
        if group.beginning.is_some_and(|beginning| beginning.epoch > lost_in) {
            return Err(Reply::Done);
        }
        if group.status != GroupStatus::Lost {
            let message = "The group is not lost: it keeps its log, and there is nothing to begin anew.";
            return conflict("group_not_lost", message);
        }
        if group.offset_ceiling > RESET_OFFSET_MAX {
            let message =
                "The group has been begun anew so often that it has no offsets left; use a new group.";
            return conflict("too_many_resets", message);
        }
        Ok(())
    }

    /// Groups whose ceiling must be raised, by what a server reports (`Command::OffsetsReached`).
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
