//! The format of `coordinator.log`.
//!
//! The framing is that of `quorate_record_file`, with the magic "QRTCLOG\0" and version 1; payloads are JSON:
//!
//! ```text
//! {"snapshot": CoordinatorState}                   first record only
//! {"commands": [{"at_ms": …, "command": …}, …]}   one batch, synced as one
//! ```

use quorate_record_file::HEADER_BYTES;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;
use serde::{Deserialize, Serialize};

use crate::command::Timed;
use crate::state::CoordinatorState;

const MAGIC: &[u8; 8] = b"QRTCLOG\0";
const VERSION: u32 = 1;

/// One record. Its snapshot is a reference when it is written, and a value when it is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record<S> {
    Snapshot(S),
    Commands(Vec<Timed>),
}

/// A whole log that contains this state and nothing else.
pub fn encode_snapshot(state: &CoordinatorState) -> Vec<u8> {
    let mut contents = header().to_vec();
    contents.extend_from_slice(&encode(&Record::Snapshot(state)));
    contents
}

/// The record of one batch.
pub fn encode_batch(batch: Vec<Timed>) -> Vec<u8> {
    encode(&Record::<CoordinatorState>::Commands(batch))
}

/// The first bytes of every log.
pub fn header() -> [u8; HEADER_BYTES] {
    quorate_record_file::header(MAGIC, VERSION)
}

fn encode<S: Serialize>(record: &Record<S>) -> Vec<u8> {
    let payload = serde_json::to_vec(record).expect("commands and state serialise");
    assert!(
        payload.len() as u64 <= COORDINATOR_RECORD_BYTES_MAX,
        "a record of {} bytes",
        payload.len()
    );
    quorate_record_file::encode(&payload)
}
