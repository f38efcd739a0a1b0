//! Recovery: the state as the log has it, under the profile and the policy of this start.

use std::path::Path;

use quorate_placement::Profile;
use tracing::{error, info, warn};

use super::profile_file::ProfileSource;
use super::task::{notes, unix_ms};
use crate::exit::Failure;
use crate::log_file::DurableLog;
use quorate_coordinator_core::command::{Command, PlacementPolicy, Timed};
use quorate_coordinator_core::log::Recovered;
use quorate_coordinator_core::state::{CoordinatorState, apply};

/// The log, and the state that it leads to, with the profile and policy in use. A long log is rewritten as a snapshot.
pub fn recover(
    data_dir: &Path,
    profile: Profile,
    profiles: &ProfileSource,
    policy: PlacementPolicy,
) -> Result<(DurableLog, CoordinatorState), Failure> {
    let (mut log, recovered) = DurableLog::open(data_dir)?;
    let is_fresh = recovered.snapshot.is_none() && recovered.commands.is_empty();
    let commands = recovered.commands.len();
    let mut state = replay(data_dir, recovered, &profile)?;
    let profile = match profiles.check(&profile, &state) {
        Ok(()) => profile,
        Err(failure) => {
            error!("{}; the profile in use stays", failure.message);
            state.profile.clone()
        }
    };
    notes::profile(&profile);
    let mut changes = Vec::new();
    if is_fresh || state.profile != profile {
        changes.push(Command::UseProfile {
            profile: Box::new(profile),
        });
    }
    if state.policy != policy {
        changes.push(Command::UsePlacement { policy });
    }
    for command in changes {
        let at_ms = unix_ms();
        apply(&mut state, at_ms, &command);
        log.append(vec![Timed { at_ms, command }])?;
    }
    for server in state.servers.values().filter(|server| server.alive) {
        if let Some(how) = state.refused_mismatch(server) {
            notes::mismatch(server.server_id, &how, true);
        }
    }
    if log.wants_snapshot() {
        log.rewrite(&state)?;
    }
    let (servers, groups) = (state.servers.len(), state.groups.len());
    info!(commands, servers, groups, "recovered");
    Ok((log, state))
}

/// Replays the commands under the profiles of their time: the first one is in the log as well.
fn replay(data_dir: &Path, recovered: Recovered, profile: &Profile) -> Result<CoordinatorState, Failure> {
    let begin = || CoordinatorState::new(profile.clone());
    let mut state = recovered.snapshot.unwrap_or_else(begin);
    state.restore();
    for Timed { at_ms, command } in &recovered.commands {
        apply(&mut state, *at_ms, command);
    }
    state.validate().map_err(|problem| {
        Failure::disk(format!(
            "the state in {} contradicts itself: {problem}",
            data_dir.display()
        ))
    })?;
    if recovered.cut_bytes > 0 {
        warn!(
            bytes = recovered.cut_bytes,
            "truncated a torn record at the end of the log: nothing had followed from it"
        );
    }
    Ok(state)
}
