//! Commands of the log as one entry of the quorum: JSON, so that logs can be read by people.

use std::sync::Arc;

use crate::command::Timed;
use crate::state::CoordinatorState;

pub fn encode_batch(batch: &[Timed]) -> Arc<[u8]> {
    serde_json::to_vec(batch).expect("commands serialise").into()
}

pub fn decode_batch(payload: &[u8]) -> Result<Vec<Timed>, String> {
    let unreadable = |e| format!("an agreed entry is unreadable ({e}): it is a newer release's");
    serde_json::from_slice(payload).map_err(unreadable)
}

/// The state that a snapshot contains. It is checked, since a member starts with it.
pub fn read_state(contents: &[u8]) -> Result<Box<CoordinatorState>, String> {
    let unreadable = |e| format!("the snapshot is unreadable ({e}): it is a newer release's");
    let mut state: Box<CoordinatorState> = serde_json::from_slice(contents).map_err(unreadable)?;
    state.restore();
    state
        .validate()
        .map_err(|problem| format!("the state contradicts itself: {problem}"))?;
    Ok(state)
}
