//! The session table: it knows which batches of which client are in the log, so no retry is ordered twice.
//!
//! The table is a function of the log alone. Every replica applies the same headers in the same order, so any of them
//! can take over as head. The table is bounded: a new session's first batch pushes out the session that was used least
//! recently *by index*. The floor makes forgetting safe (`sdk/contract/wire.md`): a session that may have been forgotten
//! is refused, never taken for new.
//!
//! The places of batches are an addition: without one, a retry is recognised all the same, and its outcome is unknown to
//! the client. So each replica may forget places as its memory demands, those of the least recently used sessions first.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, BytesMut};
use quorate_types::ids::IdMap;
use quorate_types::limits::{
    SESSION_MEMORY_BYTES, SESSION_PLACE_BYTES, SESSION_WINDOW_BATCHES, SESSIONS_PER_GROUP_MAX,
};
use quorate_types::planted::{self, Bug};
use quorate_types::{Index, Offset};
use quorate_wire::BatchHeader;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    table: IdMap<u64, SessionRecord>,
    /// In all of the table.
    places: u64,
    /// Greatest `last_index` of any session forgotten so far.
    forgotten_through: Index,
    /// Highest fencing token that any batch carried.
    fence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionRecord {
    last_seq: u64,
    last_index: Index,
    /// The last batches, oldest first; their seqs are consecutive and end at `last_seq`.
    recent: VecDeque<Placed>,
}

/// A batch's place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub index: Index,
    pub base_offset: Offset,
    pub entry_count: u32,
}

impl Placed {
    pub fn of(header: &BatchHeader) -> Self {
        Self {
            index: header.index,
            base_offset: header.base_offset,
            entry_count: header.entry_count,
        }
    }
}

/// The table's answer for (session, seq).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Next,
    /// Ordered before. `None`: so long ago that its place is forgotten.
    Ordered(Option<Placed>),
    Gap {
        next_seq: u64,
    },
    Expired,
}

impl Sessions {
    pub fn judge(&self, session: u64, seq: u64, floor_index: Index) -> Verdict {
        let Some(known) = self.table.get(&session) else {
            // A batch of the session can only have been ordered behind its floor. If all forgotten sessions lie before
            // the floor, there was none.
            return match seq {
                _ if floor_index < self.forgotten_through && !planted::on(Bug::FloorIgnored) => {
                    Verdict::Expired
                }
                1 => Verdict::Next,
                _ => Verdict::Gap { next_seq: 1 },
            };
        };
        if seq == known.last_seq + 1 {
            Verdict::Next
        } else if seq > known.last_seq {
            Verdict::Gap {
                next_seq: known.last_seq + 1,
            }
        } else {
            let age = (known.last_seq - seq) as usize;
            let at = known.recent.len().checked_sub(age + 1);
            Verdict::Ordered(at.map(|at| known.recent[at]))
        }
    }

    /// The seq that the session's next batch must have.
    pub fn next_seq(&self, session: u64) -> u64 {
        self.table.get(&session).map_or(1, |s| s.last_seq + 1)
    }

    pub fn fence(&self) -> u64 {
        self.fence
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Takes in the next batch of the log.
    pub fn apply(&mut self, header: &BatchHeader) {
        self.fence = self.fence.max(header.fencing_token);
        let session = match self.table.get_mut(&header.session) {
            Some(session) => session,
            None => {
                self.make_room();
                self.table.entry(header.session).or_insert_with(|| SessionRecord {
                    last_seq: header.seq - 1,
                    last_index: 0,
                    recent: VecDeque::new(),
                })
            }
        };
        assert_eq!(
            header.seq,
            session.last_seq + 1,
            "batch {} skips a seq of its session",
            header.index
        );
        session.last_seq = header.seq;
        session.last_index = header.index;
        if session.recent.len() == SESSION_WINDOW_BATCHES as usize {
            session.recent.pop_front();
            self.places -= 1;
        }
        if session.recent.len() == session.recent.capacity() {
            session.recent.reserve_exact(session.recent.len() / 4 + 1);
        }
        session.recent.push_back(Placed::of(header));
        self.places += 1;
    }

    /// Forgets places, those of whole sessions, until an eighth less than this many are left. The session that was used
    /// last keeps its own.
    pub fn forget_places(&mut self, places_max: u64) {
        if self.places <= places_max {
            return;
        }
        let mut by_use: Vec<(Index, u64)> = self.table.iter().map(|(id, s)| (s.last_index, *id)).collect();
        by_use.sort_unstable();
        by_use.pop();
        for (_, id) in by_use {
            if self.places <= places_max - places_max / 8 {
                return;
            }
            let session = self.table.get_mut(&id).expect("it is in the table");
            self.places -= session.recent.len() as u64;
            session.recent = VecDeque::new();
        }
    }

    /// Memory that the table holds, as admission counts it.
    pub fn held_bytes(&self) -> u64 {
        self.table.len() as u64 * SESSION_MEMORY_BYTES + self.places * SESSION_PLACE_BYTES
    }

    fn make_room(&mut self) {
        if self.table.len() < SESSIONS_PER_GROUP_MAX {
            return;
        }
        let oldest = self
            .table
            .iter()
            .min_by_key(|(_, s)| s.last_index)
            .map(|(id, s)| (*id, s.last_index));
        let (id, last_index) = oldest.expect("a full table has an oldest session");
        if let Some(forgotten) = self.table.remove(&id) {
            self.places -= forgotten.recent.len() as u64;
        }
        self.forgotten_through = self.forgotten_through.max(last_index);
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.forgotten_through);
        out.put_u64_le(self.fence);
        out.put_u32_le(self.table.len() as u32);
        let mut ids: Vec<_> = self.table.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let session = &self.table[&id];
            out.put_u64_le(id);
            out.put_u64_le(session.last_seq);
            out.put_u64_le(session.last_index);
            out.put_u32_le(session.recent.len() as u32);
            for placed in &session.recent {
                out.put_u64_le(placed.index);
                out.put_u64_le(placed.base_offset);
                out.put_u32_le(placed.entry_count);
            }
        }
    }

    /// `None`: the bytes end too early.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let forgotten_through = bytes.try_get_u64_le().ok()?;
        let fence = bytes.try_get_u64_le().ok()?;
        let count = bytes.try_get_u32_le().ok()?;
        let mut table = IdMap::default();
        let mut places = 0;
        for _ in 0..count {
            let id = bytes.try_get_u64_le().ok()?;
            let last_seq = bytes.try_get_u64_le().ok()?;
            let last_index = bytes.try_get_u64_le().ok()?;
            let placed = bytes.try_get_u32_le().ok()?;
            let mut recent = VecDeque::new();
            places += u64::from(placed);
            for _ in 0..placed {
                recent.push_back(Placed {
                    index: bytes.try_get_u64_le().ok()?,
                    base_offset: bytes.try_get_u64_le().ok()?,
                    entry_count: bytes.try_get_u32_le().ok()?,
                });
            }
            table.insert(
                id,
                SessionRecord {
                    last_seq,
                    last_index,
                    recent,
                },
            );
        }
        Some(Self {
            table,
            places,
            forgotten_through,
            fence,
        })
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use quorate_types::limits::SESSION_PLACES_MIN;
    use uuid::Uuid;

    use super::*;

    /// The next batch of a session, at this index.
    fn batch(index: Index, session: u64, seq: u64) -> BatchHeader {
        BatchHeader {
            group_id: GroupId(Uuid::from_u128(7)),
            epoch: 1,
            index,
            base_offset: index,
            cumulative_bytes: 0,
            session,
            seq,
            timestamp_us: 0,
            fencing_token: 0,
            entry_count: 1,
            payload_len: 5,
            payload_crc: 0,
        }
    }

    fn allocated_bytes(sessions: &Sessions) -> u64 {
        // A bucket for each of a power of two, of which seven eighths may be used; and what the allocator adds.
        let buckets = (sessions.table.capacity() * 8 / 7).next_power_of_two();
        let records = buckets * (size_of::<(u64, SessionRecord)>() + 1);
        let rings = sessions
            .table
            .values()
            .map(|s| s.recent.capacity() * size_of::<Placed>() + 16);
        (records + rings.sum::<usize>()) as u64
    }

    /// Tables of any shape take no more memory than is counted, beyond that of a few sessions.
    #[test]
    fn a_table_takes_no_more_memory_than_is_counted_for_it() {
        for (count, each) in [
            (1, 1),
            (3, 256),
            (57, 2),
            (897, 1),
            (1_024, 3),
            (64, 256),
            (1_024, 40),
        ] {
            let mut sessions = Sessions::default();
            let mut index = 0;
            for seq in 1..=each {
                for session in 0..count {
                    index += 1;
                    sessions.apply(&batch(index, session, seq));
                }
            }
            let (taken, counted) = (allocated_bytes(&sessions), sessions.held_bytes());
            assert!(
                taken <= counted + 1_024,
                "{count} sessions of {each}: {taken} of {counted}"
            );
        }
    }

    #[test]
    fn places_are_forgotten_and_batches_are_not() {
        let mut sessions = Sessions::default();
        let mut index = 0;
        for seq in 1..=u64::from(SESSION_WINDOW_BATCHES) {
            for session in 1..=5 {
                index += 1;
                sessions.apply(&batch(index, session, seq));
                sessions.forget_places(SESSION_PLACES_MIN);
                assert!(sessions.places <= SESSION_PLACES_MIN);
            }
        }
        let placed = |sessions: &Sessions, session| match sessions.judge(session, 256, 0) {
            Verdict::Ordered(placed) => placed.map(|placed| placed.index),
            other => panic!("it was ordered: {other:?}"),
        };
        assert_eq!(placed(&sessions, 5), Some(index), "the last one keeps its places");
        let is_kept = |session, seq| matches!(sessions.judge(session, seq, 0), Verdict::Ordered(Some(_)));
        let kept = (1..=5).map(|session| (1..=256).filter(|seq| is_kept(session, *seq)).count() as u64);
        assert_eq!(kept.sum::<u64>(), sessions.places);
        assert!(sessions.places > SESSION_PLACES_MIN / 2);
        assert!((1..=5).all(|session| sessions.judge(session, 257, 0) == Verdict::Next));
        let mut bytes = BytesMut::new();
        sessions.encode(&mut bytes);
        assert_eq!(Sessions::decode(&mut &bytes[..]), Some(sessions));
    }
}
