//! Logs of version 1: of a coordinator that decided alone, before the quorum. They are read, and never written.
//!
//! ```text
//! {"snapshot": CoordinatorState}                   first record only
//! {"commands": [{"at_ms": …, "command": …}, …]}   one batch, synced as one
//! ```

use quorate_record_file::HEADER_BYTES;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;
use serde::Deserialize;

use super::format::{MAGIC, unreadable};
use super::replay::{Difference, Replay};
use crate::command::Timed;
use crate::state::CoordinatorState;

const VERSION: u32 = 1;

/// The contents of such a log.
#[derive(Debug, Default)]
pub struct Former {
    /// As it was serialised: call [`CoordinatorState::restore`] on it.
    snapshot: Option<Box<CoordinatorState>>,
    pub commands: Vec<Timed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Snapshot(Box<CoordinatorState>),
    Commands(Vec<Timed>),
}

impl Former {
    /// The state that it leads to. `begin` is the state before the first command of a log without a snapshot.
    ///
    /// Commands of releases that did not log what followed from them are believed.
    pub fn replay(self, begin: impl FnOnce() -> CoordinatorState) -> Result<CoordinatorState, Difference> {
        let mut state = self.snapshot.map_or_else(begin, |state| *state);
        state.restore();
        Replay::default().apply(&mut state, &self.commands)?;
        Ok(state)
    }
}

pub(super) fn is_its_header(bytes: &[u8]) -> bool {
    bytes.starts_with(&quorate_record_file::header(MAGIC, VERSION))
}

/// The contents, if it has any, and the position of the next record.
pub(super) fn scan(bytes: &[u8]) -> Result<(Option<Former>, usize), (usize, String)> {
    let records = quorate_record_file::scan(bytes, COORDINATOR_RECORD_BYTES_MAX)
        .map_err(|damage| (damage.offset, damage.to_string()))?;
    let mut former = Former::default();
    let mut at = HEADER_BYTES;
    for payload in records.payloads {
        let next = payload.end;
        let record: Record = serde_json::from_slice(&bytes[payload]).map_err(|e| (at, unreadable(&e)))?;
        match record {
            Record::Snapshot(_) if at != HEADER_BYTES => {
                return Err((at, "a snapshot is not at the beginning".into()));
            }
            Record::Snapshot(state) => {
                former.snapshot = Some(state);
            }
            Record::Commands(commands) => former.commands.extend(commands),
        }
        at = next;
    }
    let is_empty = former.snapshot.is_none() && former.commands.is_empty();
    Ok(((!is_empty).then_some(former), at))
}
