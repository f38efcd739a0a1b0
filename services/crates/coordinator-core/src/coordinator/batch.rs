//! Commands of the log as one entry of the quorum: JSON, so that logs can be read by people.

use std::sync::Arc;

use quorate_quorum::{Content, Entry};
use quorate_types::versions;

use crate::command::{Command, FleetSecrets, Timed};
use crate::state::CoordinatorState;

pub fn encode_batch(batch: &[Timed]) -> Arc<[u8]> {
    serde_json::to_vec(batch).expect("commands serialise").into()
}

pub fn decode_batch(payload: &[u8]) -> Result<Vec<Timed>, String> {
    let unreadable = |e| format!("an agreed entry is unreadable ({e}): it is a newer release's");
    let batch: Vec<Timed> = serde_json::from_slice(payload).map_err(unreadable)?;
    for timed in &batch {
        if let Command::RaiseFleetVersion { to } = timed.command {
            check_fleet_version(to)?;
        }
    }
    Ok(batch)
}

/// Whether this release can be part of a fleet of this version.
fn check_fleet_version(version: u16) -> Result<(), String> {
    let reads = versions::FLEET;
    if reads.has(version) {
        return Ok(());
    }
    let next = match version > reads.newest {
        true => "install the newer release",
        false => "raise the fleet's version with the release before, and come back",
    };
    Err(format!(
        "the fleet has version {version}, and this release reads {reads}: {next}"
    ))
}

/// The fleet's keys in entries behind a snapshot, agreed or not: one of them may be in use.
pub fn secrets_in(entries: &[Entry]) -> Vec<FleetSecrets> {
    let payloads = entries.iter().filter_map(|entry| match &entry.content {
        Content::Payload(payload) => Some(payload),
        _ => None,
    });
    let batches = payloads.filter_map(|payload| decode_batch(payload).ok());
    let commands = batches.flatten().map(|timed| timed.command);
    commands
        .filter_map(|command| match command {
            Command::UseSecrets { secrets } => Some(*secrets),
            _ => None,
        })
        .collect()
}

/// The state that a snapshot contains. It is checked, since a member starts with it.
pub fn read_state(contents: &[u8]) -> Result<Box<CoordinatorState>, String> {
    let unreadable = |e| format!("the snapshot is unreadable ({e}): it is a newer release's");
    let mut state: Box<CoordinatorState> = serde_json::from_slice(contents).map_err(unreadable)?;
    check_fleet_version(state.fleet_version)?;
    state.restore();
    state
        .validate()
        .map_err(|problem| format!("the state contradicts itself: {problem}"))?;
    Ok(state)
}
