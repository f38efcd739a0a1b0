//! Servers' messages. A message that changes nothing is kept from the log.

use quorate_types::control::{EstimatedCapacity, GroupReport, QuarantinedReplica, ToCoordinator, ToServer};
use quorate_types::limits::{QUARANTINE_REASON_CHARS_MAX, QUARANTINED_GROUPS_MAX, STORAGE_FAULT_CHARS_MAX};
use quorate_types::planted::{self, Bug};
use quorate_types::{ServerId, versions};

use crate::command::Command;
use crate::state::{CoordinatorState, Group};

/// The command that a message about a group leads to, if it changes anything.
pub fn proposal(state: &CoordinatorState, server: ServerId, message: &ToCoordinator) -> Option<Command> {
    match *message {
        // Only confirmations of the first chain, or of one that was down, change anything.
        ToCoordinator::Applied { group_id, epoch, .. } => {
            let matters = |group: &Group| group.awaits_applied(epoch);
            let command = Command::Applied {
                server,
                group_id,
                epoch,
            };
            state
                .groups
                .get(&group_id)
                .is_some_and(matters)
                .then_some(command)
        }
        ToCoordinator::LearnerCaughtUp {
            group_id,
            epoch,
            learner,
        } => {
            let is_current = |group: &Group| {
                (group.epoch == epoch || planted::on(Bug::StalePromotion))
                    && group.learner == Some(learner)
                    && group.may_change_members()
            };
            let command = Command::LearnerCaughtUp {
                server,
                group_id,
                epoch,
                learner,
            };
            state
                .groups
                .get(&group_id)
                .is_some_and(is_current)
                .then_some(command)
        }
        ToCoordinator::Dropped { group_id, epoch } => {
            // A report that waited for a connection may be of an earlier drop: the server learned the group again since.
            let noted = state.servers[&server].to_drop.get(&group_id).copied();
            let is_of_this = noted.is_some_and(|noted| epoch.is_none_or(|epoch| epoch >= noted));
            is_of_this.then_some(Command::Dropped { server, group_id })
        }
        ToCoordinator::LayoutSealed {
            group_id,
            layout,
            end_offset,
        } => {
            let is_head = |group: &&Group| group.chain.first() == Some(&server);
            let group = state.groups.get(&group_id).filter(is_head)?;
            let partition = group.partition.filter(|partition| partition.layout == layout)?;
            let awaited = state.partitions.get(&partition.of)?.awaits_seal(&partition);
            awaited.then_some(Command::LayoutSealed {
                group_id,
                layout,
                end_offset,
            })
        }
        ToCoordinator::Held { .. }
        | ToCoordinator::Register(_)
        | ToCoordinator::Heartbeat(_)
        | ToCoordinator::RenewCertificate { .. }
        | ToCoordinator::Sharing(_)
        | ToCoordinator::Flows(_) => None,
    }
}

/// The command that a heartbeat's storage fault leads to, if it is another than the known one.
///
/// The log and the events keep its text, so the text has a bound.
pub fn storage_fault(state: &CoordinatorState, server: ServerId, fault: Option<String>) -> Option<Command> {
    let fault = fault.map(|text| text.chars().take(STORAGE_FAULT_CHARS_MAX).collect());
    let is_other = state.servers[&server].storage_fault != fault;
    is_other.then_some(Command::StorageFault { server, fault })
}

/// The command that a heartbeat's estimates lead to, if admission is to go by others than the known ones. It waits until
/// all coordinators can read it.
pub fn estimated(
    state: &CoordinatorState,
    server: ServerId,
    estimated: Option<&EstimatedCapacity>,
) -> Option<Command> {
    let permille = estimated?.lasting_permille();
    let is_other = state.servers[&server].estimated_permille != permille;
    let can_be_read = state.fleet_version >= versions::FLEET_WITH_ESTIMATES;
    (is_other && can_be_read).then_some(Command::CapacityEstimated { server, permille })
}

/// The commands for replicas that a server reports in quarantine, if they are not known as such.
pub fn quarantined(
    state: &CoordinatorState,
    server: ServerId,
    reports: &[QuarantinedReplica],
) -> Vec<Command> {
    let is_new = |report: &&QuarantinedReplica| {
        let group = state.groups.get(&report.group_id);
        group.is_some_and(|group| group.is_member(server) && !group.quarantine.servers.contains(&server))
    };
    let new = reports.iter().take(QUARANTINED_GROUPS_MAX).filter(is_new);
    new.map(|report| Command::Quarantined {
        server,
        group_id: report.group_id,
        reason: report.reason.chars().take(QUARANTINE_REASON_CHARS_MAX).collect(),
    })
    .collect()
}

/// Messages about those of these groups that are quarantined as a whole: the server may have missed one.
pub fn quarantines_to_tell(state: &CoordinatorState, reports: &[QuarantinedReplica]) -> Vec<ToServer> {
    let known = reports
        .iter()
        .filter_map(|report| state.groups.get(&report.group_id));
    let whole = known.filter(|group| group.quarantine.is_whole());
    whole
        .map(|group| ToServer::Quarantined {
            group_id: group.group_id,
            epoch: group.epoch,
        })
        .collect()
}

/// The commands that raise offset ceilings before a heartbeat's commit offsets reach them.
pub fn offsets(state: &CoordinatorState, server: ServerId, reports: &[GroupReport]) -> Vec<Command> {
    let due = state.offsets_due(server, reports).into_iter();
    due.map(|(group_id, commit_offset)| Command::OffsetsReached {
        group_id,
        commit_offset,
    })
    .collect()
}
