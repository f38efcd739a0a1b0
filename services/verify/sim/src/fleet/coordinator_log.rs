//! The coordinator's log, as bytes on a disk: a batch is written, synced, and perhaps torn by a crash.

use quorate_coordinator_core::command::Timed;
use quorate_coordinator_core::log::{encode_batch, encode_snapshot, header, replay, scan};
use quorate_coordinator_core::state::CoordinatorState;
use rand::Rng;
use rand::rngs::SmallRng;

#[derive(Debug, Clone)]
pub struct CoordinatorLog {
    /// The bytes on stable storage.
    bytes: Vec<u8>,
    /// The write that is under way.
    pending: Option<Pending>,
    snapshot_bytes: usize,
}

#[derive(Debug, Clone)]
enum Pending {
    Append(Vec<u8>),
    /// A whole new file, renamed over the old one.
    Replace(Vec<u8>),
}

impl CoordinatorLog {
    /// A log that begins with this state.
    pub fn new(state: &CoordinatorState) -> Self {
        let _header_alone_is_a_log = header();
        let bytes = encode_snapshot(state);
        Self {
            snapshot_bytes: bytes.len(),
            bytes,
            pending: None,
        }
    }

    pub fn wants_snapshot(&self, snapshot_bytes_min: usize) -> bool {
        self.bytes.len() > snapshot_bytes_min.max(2 * self.snapshot_bytes)
    }

    pub fn append(&mut self, batch: Vec<Timed>) {
        self.pending = Some(Pending::Append(encode_batch(batch)));
    }

    pub fn rewrite(&mut self, state: &CoordinatorState) {
        self.pending = Some(Pending::Replace(encode_snapshot(state)));
    }

    pub fn synced(&mut self) {
        match self.pending.take() {
            Some(Pending::Append(bytes)) => self.bytes.extend_from_slice(&bytes),
            Some(Pending::Replace(bytes)) => {
                self.snapshot_bytes = bytes.len();
                self.bytes = bytes;
            }
            None => {}
        }
    }

    /// A crash keeps any part of what was being written; of a file that replaces another, all or nothing.
    pub fn crash(&mut self, rng: &mut SmallRng) {
        match self.pending.take() {
            Some(Pending::Append(bytes)) => {
                let kept = rng.random_range(0..=bytes.len());
                self.bytes.extend_from_slice(&bytes[..kept]);
                // The rest of the page may have been allocated and hold zeros.
                if rng.random_bool(0.3) {
                    self.bytes.extend(std::iter::repeat_n(0, bytes.len() - kept));
                }
            }
            Some(Pending::Replace(bytes)) if rng.random_bool(0.5) => {
                self.snapshot_bytes = bytes.len();
                self.bytes = bytes;
            }
            _ => {}
        }
    }

    /// The bytes on stable storage.
    pub fn copy(&self) -> Self {
        Self {
            pending: None,
            ..self.clone()
        }
    }

    /// Reads the log as the coordinator does at its start.
    pub fn recover(&mut self) -> CoordinatorState {
        let scanned = scan(&self.bytes).expect("a crash tears only the end of the log");
        self.bytes.truncate(scanned.end as usize);
        let begin = || unreachable!("it begins with a snapshot");
        replay(scanned.recovered, begin).expect("one release decides alike")
    }
}
