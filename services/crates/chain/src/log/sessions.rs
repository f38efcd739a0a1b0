//! The session table: it knows which batches of which client are in the log, so no retry is ordered twice.
//!
//! The table is a function of the log alone. Every replica applies the same headers in the same order, so any of them
//! can take over as head. The table is bounded: a new session's first batch pushes out the session that was used least
//! recently *by index*. The floor makes forgetting safe (`sdk/contract/wire.md`): a session that may have been forgotten
//! is refused, never taken for new.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, BytesMut};
use quorate_types::ids::IdMap;
use quorate_types::limits::{SESSION_WINDOW_BATCHES, SESSIONS_PER_GROUP_MAX};
use quorate_types::planted::{self, Bug};
use quorate_types::{Index, Offset};
use quorate_wire::BatchHeader;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    table: IdMap<u64, SessionRecord>,
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
        }
        session.recent.push_back(Placed::of(header));
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
        self.table.remove(&id);
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
        for _ in 0..count {
            let id = bytes.try_get_u64_le().ok()?;
            let last_seq = bytes.try_get_u64_le().ok()?;
            let last_index = bytes.try_get_u64_le().ok()?;
            let placed = bytes.try_get_u32_le().ok()?;
            let mut recent = VecDeque::new();
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
            forgotten_through,
            fence,
        })
    }
}
