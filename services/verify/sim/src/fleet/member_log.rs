//! A member's log, as bytes on a disk: writes are done and synced in order, and perhaps torn by a crash.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_coordinator_core::coordinator::{SnapshotDue, decode_batch, read_state};
use quorate_coordinator_core::log::{
    Base, Contents, MemberDisk, Replay, encode_base, encode_base_of, encode_state, encode_writes, scan,
};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_quorum::{Content, Members, Point, Position, Snapshot, Write, WriteId};
use rand::Rng;
use rand::rngs::SmallRng;

#[derive(Debug, Clone)]
pub struct MemberLog {
    /// The bytes on stable storage.
    bytes: Vec<u8>,
    /// Writes that are under way, in order.
    pending: VecDeque<Pending>,
    snapshot_bytes: usize,
}

#[derive(Debug, Clone)]
enum Pending {
    Append(Box<Write>),
    /// A snapshot of the own state in the place of what it covers. The entries behind stay.
    Snapshot {
        point: Point,
        members: Members,
        state: Arc<[u8]>,
    },
}

/// A write that has ended.
#[derive(Debug, Clone, Copy)]
pub enum Synced {
    Write(WriteId),
    Snapshot(Position),
}

impl MemberLog {
    /// A log that begins with this state. None: of a member that waits to be taken in.
    pub fn new(base: &Base, state: Option<&CoordinatorState>) -> Self {
        let bytes = encode_base(base, state);
        Self {
            snapshot_bytes: bytes.len(),
            bytes,
            pending: VecDeque::new(),
        }
    }

    pub fn wants_snapshot(&self, snapshot_bytes_min: usize) -> bool {
        let is_under_way = self
            .pending
            .iter()
            .any(|pending| matches!(pending, Pending::Snapshot { .. }));
        !is_under_way && self.bytes.len() > snapshot_bytes_min.max(2 * self.snapshot_bytes)
    }

    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn write(&mut self, write: Write) {
        self.pending.push_back(Pending::Append(Box::new(write)));
    }

    pub fn compact(&mut self, due: &SnapshotDue<'_>) {
        self.pending.push_back(Pending::Snapshot {
            point: due.point,
            members: due.members.clone(),
            state: encode_state(due.state),
        });
    }

    /// The first write is on stable storage.
    pub fn synced(&mut self) -> Option<Synced> {
        let pending = self.pending.pop_front()?;
        let (bytes, is_whole, synced) = self.after(&pending);
        if is_whole {
            self.snapshot_bytes = bytes.len();
            self.bytes = bytes;
        } else {
            self.bytes.extend_from_slice(&bytes);
        }
        Some(synced)
    }

    /// A crash keeps any part of what was being written; of a file that replaces another, all or nothing.
    pub fn crash(&mut self, rng: &mut SmallRng) {
        while let Some(pending) = self.pending.pop_front() {
            let (bytes, is_whole, _) = self.after(&pending);
            if is_whole {
                if !rng.random_bool(0.5) {
                    break;
                }
                self.snapshot_bytes = bytes.len();
                self.bytes = bytes;
                continue;
            }
            let kept = match rng.random_bool(0.3) {
                true => bytes.len(),
                false => rng.random_range(0..=bytes.len()),
            };
            self.bytes.extend_from_slice(&bytes[..kept]);
            if kept < bytes.len() {
                // The rest of the page may have been allocated and hold zeros.
                if rng.random_bool(0.3) {
                    self.bytes.extend(std::iter::repeat_n(0, bytes.len() - kept));
                }
                break;
            }
        }
        self.pending.clear();
    }

    /// The bytes that a write adds, or that take the place of all.
    fn after(&self, pending: &Pending) -> (Vec<u8>, bool, Synced) {
        match pending {
            Pending::Append(write) => {
                let synced = Synced::Write(write.id);
                match &write.snapshot {
                    None => (encode_writes([&**write]), false, synced),
                    Some(snapshot) => (self.installed(write, snapshot), true, synced),
                }
            }
            Pending::Snapshot {
                point,
                members,
                state,
            } => {
                let disk = self.disk();
                let base = Base {
                    vote: disk.vote,
                    point: *point,
                    members: members.clone(),
                    ..disk.base
                };
                let mut bytes = encode_base_of(&base, state);
                let behind: Vec<_> = disk
                    .entries
                    .into_iter()
                    .filter(|entry| entry.position > point.position)
                    .collect();
                if !behind.is_empty() {
                    let write = Write {
                        id: WriteId(0),
                        vote: None,
                        snapshot: None,
                        cut_after: None,
                        entries: behind,
                    };
                    bytes.extend(encode_writes([&write]));
                }
                (bytes, true, Synced::Snapshot(point.position))
            }
        }
    }

    /// A leader's snapshot in the place of everything.
    fn installed(&self, write: &Write, snapshot: &Snapshot) -> Vec<u8> {
        let disk = self.disk();
        let base = Base {
            vote: write.vote.unwrap_or(disk.vote),
            point: snapshot.base,
            members: snapshot.members.clone(),
            ..disk.base
        };
        encode_base_of(&base, &snapshot.contents)
    }

    /// Flips a bit ahead of the last record. A damaged end may have been torn, and its beginning says nothing. False: there is
    /// one record alone.
    pub fn damage(&mut self, rng: &mut SmallRng) -> bool {
        let end_of = |bytes: &[u8]| scan(bytes).ok().map(|scanned| scanned.end as usize);
        let end = end_of(&self.bytes).expect("a crash tears only the end of the log");
        let Some(last) = end_of(&self.bytes[..end - 1]) else {
            return false;
        };
        let at = rng.random_range(0..last);
        self.bytes[at] ^= 1 << rng.random_range(0..8);
        assert!(scan(&self.bytes).is_err(), "a flipped bit is found");
        true
    }

    /// The bytes on stable storage.
    pub fn copy(&self) -> Self {
        Self {
            pending: VecDeque::new(),
            ..self.clone()
        }
    }

    /// Reads the log as the coordinator does at its start.
    pub fn recover(&mut self) -> MemberDisk {
        let scanned = scan(&self.bytes).expect("a crash tears only the end of the log");
        self.bytes.truncate(scanned.end as usize);
        match scanned.contents {
            Contents::Member(disk) => disk,
            other => unreachable!("it begins with a base: {other:?}"),
        }
    }

    /// The snapshot that the disk has.
    pub fn newest_snapshot(&self) -> Arc<Snapshot> {
        let disk = self.disk();
        Arc::new(Snapshot {
            base: disk.base.point,
            members: disk.base.members,
            contents: disk.state.expect("a log that leads has a state"),
        })
    }

    fn disk(&self) -> MemberDisk {
        self.copy().recover()
    }

    /// The state that it leads to, if all that it has is agreed.
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
