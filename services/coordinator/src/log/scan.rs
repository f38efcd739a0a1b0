//! Reading the log back: what is whole, what is torn, what is damaged.

use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;

use super::{HEADER_BYTES, MARKER, RECORD_HEADER_BYTES, Record, Recovered, record_crc};
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
    let mut scanned = Scanned {
        recovered: Recovered::default(),
        end: HEADER_BYTES as u64,
        snapshot_bytes: 0,
    };
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        let Some(payload) = record_at(bytes, at) else {
            if let Some(later) = next_record(bytes, at + 1) {
                return Err((
                    at,
                    format!("a record does not match its checksum, and a good one follows at {later}"),
                ));
            }
            scanned.recovered.cut_bytes = (bytes.len() - at) as u64;
            break;
        };
        let next = at + RECORD_HEADER_BYTES + payload.len();
        let record: Record<State> = serde_json::from_slice(payload).map_err(|e| {
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
        scanned.end = at as u64;
    }
    Ok(scanned)
}

/// The payload of the record that begins at `at`, if one does and it matches its checksum.
fn record_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let head = bytes.get(at..at + RECORD_HEADER_BYTES)?;
    if &head[..4] != MARKER {
        return None;
    }
    let length = u32::from_le_bytes(head[4..8].try_into().ok()?);
    if u64::from(length) > COORDINATOR_RECORD_BYTES_MAX {
        return None;
    }
    let start = at + RECORD_HEADER_BYTES;
    let payload = bytes.get(start..start.checked_add(length as usize)?)?;
    let crc = u32::from_le_bytes(head[8..12].try_into().ok()?);
    (record_crc(&head[4..8], payload) == crc).then_some(payload)
}

fn next_record(bytes: &[u8], from: usize) -> Option<usize> {
    let starts = bytes
        .get(from..)?
        .windows(MARKER.len())
        .enumerate()
        .filter(|(_, window)| window == MARKER);
    starts
        .map(|(offset, _)| from + offset)
        .find(|at| record_at(bytes, *at).is_some())
}
