//! The log is read back: whole records, a torn end, damage.

use quorate_record_file::HEADER_BYTES;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;

use super::format::{Record, header};
use crate::command::Timed;
use crate::state::CoordinatorState;

/// The contents of a log.
#[derive(Debug, Default)]
pub struct Recovered {
    /// As it was serialised: call [`CoordinatorState::restore`] on it.
    pub snapshot: Option<CoordinatorState>,
    pub commands: Vec<Timed>,
    /// Bytes of a torn last record that were truncated.
    pub cut_bytes: u64,
}

/// The contents of a log, and where it goes on.
pub struct Scanned {
    pub recovered: Recovered,
    /// The position of the next record.
    pub end: u64,
    pub snapshot_bytes: u64,
}

/// Reads a whole log. The error names the first damaged byte, and the damage.
pub fn scan(bytes: &[u8]) -> Result<Scanned, (usize, String)> {
    if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES] != header() {
        return Err((
            0,
            "its first bytes are not those of a coordinator log of version 1".into(),
        ));
    }
    let records = quorate_record_file::scan(bytes, COORDINATOR_RECORD_BYTES_MAX)
        .map_err(|damage| (damage.offset, damage.to_string()))?;
    let mut scanned = Scanned {
        recovered: Recovered::default(),
        end: records.end as u64,
        snapshot_bytes: 0,
    };
    let mut at = HEADER_BYTES;
    for payload in records.payloads {
        let next = payload.end;
        let record: Record<CoordinatorState> = serde_json::from_slice(&bytes[payload]).map_err(|e| {
            (
                at,
                format!("a record is unreadable ({e}); was it written by a newer version?"),
            )
        })?;
        match record {
            Record::Snapshot(_) if at != HEADER_BYTES => {
                return Err((at, "a snapshot is not at the beginning".into()));
            }
            Record::Snapshot(state) => {
                scanned.recovered.snapshot = Some(state);
                scanned.snapshot_bytes = next as u64;
            }
            Record::Commands(commands) => scanned.recovered.commands.extend(commands),
        }
        at = next;
    }
    scanned.recovered.cut_bytes = (bytes.len() - at) as u64;
    Ok(scanned)
}
