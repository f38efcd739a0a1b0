//! Reading the log back: what is whole, what is torn, what is damaged.

use quorate_records::HEADER_BYTES;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;

use super::{Record, Recovered};
use crate::state::State;

/// What a log holds, and where it goes on.
pub struct Scanned {
    pub recovered: Recovered,
    /// Where the next record goes.
    pub end: u64,
    pub snapshot_bytes: u64,
}

/// Reads a whole log, or says at which byte it is damaged, and how.
pub fn scan(bytes: &[u8]) -> Result<Scanned, (usize, String)> {
    if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES] != super::header() {
        return Err((0, "it does not begin as a coordinator log of version 1".into()));
    }
    let records = quorate_records::scan(bytes, COORDINATOR_RECORD_BYTES_MAX)
        .map_err(|damage| (damage.offset, damage.to_string()))?;
    let mut scanned = Scanned {
        recovered: Recovered::default(),
        end: records.end as u64,
        snapshot_bytes: 0,
    };
    let mut at = HEADER_BYTES;
    for payload in records.payloads {
        let next = payload.end;
        let record: Record<State> = serde_json::from_slice(&bytes[payload]).map_err(|e| {
            (
                at,
                format!("a record cannot be understood ({e}); was it written by a newer version?"),
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
