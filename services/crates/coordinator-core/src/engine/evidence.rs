//! Evidence that the log is behind its servers: they were told what it does not contain. It was restored from a copy, or
//! its last records are gone. To go on would issue epochs a second time, with other members.

use quorate_types::control::GroupReport;
use quorate_types::planted::{self, Bug};
use quorate_types::{ConfigDigest, Epoch, GroupId, ServerId};

use super::io::{Behind, Candidate};
use crate::command::Proof;
use crate::state::CoordinatorState;

/// The evidence in a registration. Only the word of a server counts: it shows a credential of this fleet, or, where it
/// joined after the copy was made, a certificate of the fleet's authority.
pub fn in_registration(state: &CoordinatorState, candidate: &Candidate) -> Option<Behind> {
    let holder = holder_of(state, candidate);
    if holder.is_none() && !candidate.is_certified {
        return None;
    }
    let register = &candidate.register;
    let name: String = register.name.chars().take(64).collect();
    let history = &state.history;
    if let Some(place) = register.place
        && !history.contains(place)
        && !planted::on(Bug::PlaceIgnored)
    {
        let (position, end) = (place.position, history.position());
        let evidence = format!(
            "server {name} was told of command {position} of a start that this log, of {end} commands, lacks"
        );
        return Some(Behind { evidence });
    }
    let newer = |group_id: GroupId, epoch: Epoch| later_epoch(state, &name, group_id, epoch);
    let held = register.held.iter();
    held.map(|held| (held.group_id, held.epoch.max(held.committed_epoch)))
        .find_map(|(group_id, epoch)| newer(group_id, epoch))
}

/// The server whose credential the candidate shows.
pub fn holder_of(state: &CoordinatorState, candidate: &Candidate) -> Option<ServerId> {
    match candidate.proof.as_ref()? {
        Proof::Credential(digest) => state.servers.with_credential(digest),
        Proof::JoinToken { .. } => None,
    }
}

/// The evidence in a heartbeat.
pub fn in_heartbeat(state: &CoordinatorState, server: ServerId, reports: &[GroupReport]) -> Option<Behind> {
    let later = |report: &GroupReport| {
        let known = state.groups.get(&report.group_id);
        known.is_some_and(|group| report.epoch > group.epoch)
    };
    let report = reports.iter().find(|report| later(report))?;
    later_epoch(
        state,
        &state.servers.name_of(server),
        report.group_id,
        report.epoch,
    )
}

/// The evidence in a confirmation: of an epoch that this log does not have, or of another configuration of one.
pub fn in_applied(
    state: &CoordinatorState,
    server: ServerId,
    (group_id, epoch): (GroupId, Epoch),
    digest: Option<ConfigDigest>,
) -> Option<Behind> {
    let name = state.servers.name_of(server);
    if let Some(behind) = later_epoch(state, &name, group_id, epoch) {
        return Some(behind);
    }
    let group = state.groups.get(&group_id).filter(|group| group.epoch == epoch)?;
    let is_other = digest? != ConfigDigest::of(&state.config_of(group));
    (is_other && !group.is_deleting() && !planted::on(Bug::DigestIgnored)).then(|| Behind {
        evidence: format!(
            "server {name} has another configuration of group {group_id} in epoch {epoch} than this log"
        ),
    })
}

fn later_epoch(state: &CoordinatorState, name: &str, group_id: GroupId, epoch: Epoch) -> Option<Behind> {
    let known = state.groups.get(&group_id)?.epoch;
    (epoch > known && !planted::on(Bug::PlaceIgnored)).then(|| Behind {
        evidence: format!(
            "server {name} knows epoch {epoch} of group {group_id}, of which this log has {known}"
        ),
    })
}
