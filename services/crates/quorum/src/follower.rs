//! A member that takes the leader's entries.

use std::sync::Arc;

use quorate_types::planted::{self, Bug};

use crate::entry::Entry;
use crate::ids::{MemberId, Point, Position};
use crate::io::Snapshot;
use crate::kept::Kept;
use crate::limits::SNAPSHOT_BYTES_MAX;
use crate::members::Members;
use crate::message::Body;

#[derive(Debug)]
pub struct Follower {
    pub leader: Option<MemberId>,
    /// The time at which the leader was heard last.
    pub heard_ms: u64,
    pub deadline_ms: u64,
    arriving: Option<Arriving>,
}

/// A snapshot of which some pieces are there.
#[derive(Debug)]
struct Arriving {
    base: Point,
    total_bytes: u64,
    contents: Vec<u8>,
}

/// A piece of a snapshot, as its message has it.
#[derive(Debug)]
pub struct Piece {
    pub base: Point,
    pub members: Members,
    pub total_bytes: u64,
    pub from_byte: u64,
    pub bytes: Arc<[u8]>,
}

impl Follower {
    pub fn new(leader: Option<MemberId>, heard_ms: u64, deadline_ms: u64) -> Self {
        Self {
            leader,
            heard_ms,
            deadline_ms,
            arriving: None,
        }
    }

    /// Takes entries behind `previous`, and answers.
    pub fn append(
        kept: &mut Kept,
        leader: MemberId,
        previous: Point,
        entries: Vec<Entry>,
        committed: Position,
        round: u64,
    ) {
        let (previous, entries) = behind_base(kept, previous, entries);
        let is_unchecked =
            planted::on(Bug::QuorumPreviousUnchecked) && kept.log().term_at(previous.position).is_some();
        if !kept.log().has(previous) && !is_unchecked {
            let hint = kept.log().hint(previous);
            return kept.send(
                leader,
                Body::Diverged {
                    previous,
                    hint,
                    round,
                },
            );
        }
        let last = entries.last().map_or(previous.position, |entry| entry.position);
        let new = match planted::on(Bug::QuorumLaterEntriesCut) {
            true => 0,
            false => first_new(kept, &entries),
        };
        let written = (new < entries.len()).then(|| {
            let after = entries[new].position.before();
            kept.append(after, entries[new..].to_vec())
        });
        kept.commit(committed.min(last).max(kept.committed()));
        match written {
            Some(write) => kept.send_after(write, leader, Body::Appended { matched: last, round }),
            // The round need not wait for entries that are being written.
            None => {
                let matched = if planted::on(Bug::QuorumAnswersBeforeSync) {
                    last
                } else {
                    last.min(kept.durable())
                };
                kept.send(leader, Body::Appended { matched, round });
            }
        }
    }

    /// Takes a piece of a snapshot, and the snapshot once all are there.
    pub fn snapshot(&mut self, kept: &mut Kept, leader: MemberId, piece: Piece, round: u64) {
        let base = piece.base;
        let is_cut = planted::on(Bug::QuorumSnapshotCutsLog) && kept.committed() < base.position;
        if !is_cut && (kept.committed() >= base.position || kept.log().has(base)) {
            // Its own entries tell the same. It may have told the leader of later ones, so they stay.
            self.arriving = None;
            kept.commit(base.position.max(kept.committed()));
            let matched = base.position.min(kept.durable());
            return kept.send(leader, Body::Appended { matched, round });
        }
        let bytes = self.take_piece(&piece);
        if bytes < piece.total_bytes {
            return kept.send(leader, Body::Pieces { base, bytes, round });
        }
        let arrived = self.arriving.take().expect("all pieces are there");
        let write = kept.install(Arc::new(Snapshot {
            base,
            members: piece.members,
            contents: arrived.contents.into(),
        }));
        let matched = base.position;
        kept.send_after(write, leader, Body::Appended { matched, round });
    }

    /// The bytes that are there, without a gap.
    fn take_piece(&mut self, piece: &Piece) -> u64 {
        if piece.total_bytes > SNAPSHOT_BYTES_MAX {
            return 0;
        }
        let is_same =
            |arriving: &Arriving| (arriving.base, arriving.total_bytes) == (piece.base, piece.total_bytes);
        if !self.arriving.as_ref().is_some_and(is_same) {
            self.arriving = Some(Arriving {
                base: piece.base,
                total_bytes: piece.total_bytes,
                contents: Vec::new(),
            });
        }
        let contents = &mut self.arriving.as_mut().expect("it was begun").contents;
        let end = piece.from_byte.saturating_add(piece.bytes.len() as u64);
        if piece.from_byte == contents.len() as u64 && end <= piece.total_bytes {
            contents.extend_from_slice(&piece.bytes);
        }
        contents.len() as u64
    }
}

/// Entries up to the base are agreed: the rest of the message begins there.
fn behind_base(kept: &Kept, previous: Point, mut entries: Vec<Entry>) -> (Point, Vec<Entry>) {
    let base = kept.log().base();
    if previous.position >= base.position {
        return (previous, entries);
    }
    entries.retain(|entry| entry.position > base.position);
    (base, entries)
}

/// The number of leading entries that the log has already.
fn first_new(kept: &Kept, entries: &[Entry]) -> usize {
    let known = |entry: &&Entry| kept.log().has(entry.point());
    entries.iter().take_while(known).count()
}
