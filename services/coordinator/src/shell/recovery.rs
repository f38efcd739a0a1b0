//! Recovery: the state as the log has it, under the profile and the policy of this start.

use std::path::Path;

use quorate_placement::Profile;
use quorate_types::RunId;
use tracing::{error, info, warn};

use super::profile_file::ProfileSource;
use super::task::{notes, unix_ms};
use crate::exit::Failure;
use crate::log_file::DurableLog;
use quorate_coordinator_core::command::{Command, PlacementPolicy, Timed};
use quorate_coordinator_core::log::{Recovered, replay};
use quorate_coordinator_core::state::{CoordinatorState, applied};

/// A log that was read, and what it leads to.
pub struct Recovery {
    pub log: DurableLog,
    pub state: CoordinatorState,
    /// Commands of this start that may issue epochs: the engine gives them their place after the roll call.
    pub first: Vec<Command>,
}

/// Reads the log and begins a run on it, with the profile and policy in use. A long log is rewritten as a snapshot.
pub fn recover(
    data_dir: &Path,
    profile: Profile,
    profiles: &ProfileSource,
    policy: PlacementPolicy,
) -> Result<Recovery, Failure> {
    let (mut log, recovered) = DurableLog::open(data_dir)?;
    let is_fresh = recovered.snapshot.is_none() && recovered.commands.is_empty();
    let commands = recovered.commands.len();
    let mut state = replayed(data_dir, recovered, &profile)?;
    let profile = match profiles.check(&profile, &state) {
        Ok(()) => profile,
        Err(failure) => {
            error!("{}; the profile in use stays", failure.message);
            state.profile.clone()
        }
    };
    notes::profile(&profile);
    let mut begin = vec![Command::BeginRun {
        run: RunId(rand::random()),
        release: env!("CARGO_PKG_VERSION").to_string(),
    }];
    let mut first = Vec::new();
    if is_fresh || state.profile != profile {
        first.push(Command::UseProfile {
            profile: Box::new(profile),
        });
    }
    if state.policy != policy {
        first.push(Command::UsePlacement { policy });
    }
    if state.servers.is_empty() {
        // Nothing can follow from them, and the first calls already see them.
        begin.append(&mut first);
    }
    log.append(
        begin
            .into_iter()
            .map(|command| logged(&mut state, command))
            .collect(),
    )?;
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
    Ok(Recovery { log, state, first })
}

fn logged(state: &mut CoordinatorState, command: Command) -> Timed {
    let at_ms = unix_ms();
    let (_, issued) = applied(state, at_ms, &command);
    Timed {
        at_ms,
        command,
        issued: Some(issued),
    }
}

/// Replays the commands under the profiles of their time: the first one is in the log as well.
fn replayed(data_dir: &Path, recovered: Recovered, profile: &Profile) -> Result<CoordinatorState, Failure> {
    let cut_bytes = recovered.cut_bytes;
    let begin = || CoordinatorState::new(profile.clone());
    let state =
        replay(recovered, begin).map_err(|difference| Failure::decided_otherwise(data_dir, &difference))?;
    state.validate().map_err(|problem| {
        Failure::disk(format!(
            "the state in {} contradicts itself: {problem}",
            data_dir.display()
        ))
    })?;
    if cut_bytes > 0 {
        warn!(
            bytes = cut_bytes,
            "truncated a torn record at the end of the log: nothing had followed from it"
        );
    }
    Ok(state)
}
