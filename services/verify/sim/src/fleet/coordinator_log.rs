//! A member's log, as bytes on a disk: a write is done and synced, and perhaps torn by a crash.

use quorate_coordinator_core::coordinator::{decode_batch, read_state};
use quorate_coordinator_core::log::{Base, Contents, MemberDisk, Replay, encode_base, encode_writes, scan};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_quorum::{Content, Members, Point, Position, Write, WriteId};
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
    Append(WriteId, Vec<u8>),
    /// A whole new file, renamed over the old one, with everything up to there.
    Replace(Position, Vec<u8>),
}

/// A write that has ended.
#[derive(Debug, Clone, Copy)]
pub enum Synced {
    Write(WriteId),
    Snapshot(Position),
}

impl CoordinatorLog {
    /// A log that begins with this state.
    pub fn new(base: &Base, state: &CoordinatorState) -> Self {
        let bytes = encode_base(base, Some(state));
        Self {
            snapshot_bytes: bytes.len(),
            bytes,
            pending: None,
        }
    }

    pub fn wants_snapshot(&self, snapshot_bytes_min: usize) -> bool {
        self.bytes.len() > snapshot_bytes_min.max(2 * self.snapshot_bytes)
    }

    pub fn write(&mut self, write: &Write) {
        assert!(self.pending.is_none(), "a leader alone has one batch at a time");
        self.pending = Some(Pending::Append(write.id, encode_writes([write])));
    }

    /// Writes a snapshot of the state there, behind which the log has nothing.
    pub fn rewrite(&mut self, point: Point, members: Members, state: &CoordinatorState) {
        let disk = self.disk();
        let base = Base {
            vote: disk.vote,
            point,
            members,
            ..disk.base
        };
        self.pending = Some(Pending::Replace(point.position, encode_base(&base, Some(state))));
    }

    pub fn synced(&mut self) -> Option<Synced> {
        self.pending.take().map(|pending| match pending {
            Pending::Append(id, bytes) => {
                self.bytes.extend_from_slice(&bytes);
                Synced::Write(id)
            }
            Pending::Replace(position, bytes) => {
                self.snapshot_bytes = bytes.len();
                self.bytes = bytes;
                Synced::Snapshot(position)
            }
        })
    }

    /// A crash keeps any part of what was being written; of a file that replaces another, all or nothing.
    pub fn crash(&mut self, rng: &mut SmallRng) {
        match self.pending.take() {
            Some(Pending::Append(_, bytes)) => {
                let kept = rng.random_range(0..=bytes.len());
                self.bytes.extend_from_slice(&bytes[..kept]);
                // The rest of the page may have been allocated and hold zeros.
                if rng.random_bool(0.3) {
                    self.bytes.extend(std::iter::repeat_n(0, bytes.len() - kept));
                }
            }
            Some(Pending::Replace(_, bytes)) if rng.random_bool(0.5) => {
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
    pub fn recover(&mut self) -> MemberDisk {
        let scanned = scan(&self.bytes).expect("a crash tears only the end of the log");
        self.bytes.truncate(scanned.end as usize);
        match scanned.contents {
            Contents::Member(disk) => disk,
            other => unreachable!("it begins with a state: {other:?}"),
        }
    }

    fn disk(&self) -> MemberDisk {
        self.clone().recover()
    }

    /// The state that it leads to: a member that decides alone has agreed to all that it has.
    pub fn state(&self) -> CoordinatorState {
        let disk = self.disk();
        let contents = disk.state.expect("it begins with a state");
        let mut state = read_state(&contents).expect("the coordinator's state is sound");
        let mut replay = Replay::default();
        for entry in disk.entries {
            if let Content::Payload(payload) = entry.content {
                let batch = decode_batch(&payload).expect("one release reads alike");
                replay
                    .apply(&mut state, &batch)
                    .expect("one release decides alike");
            }
        }
        *state
    }
}
