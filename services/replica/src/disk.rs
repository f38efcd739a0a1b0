//! The journal as the replica uses it: records of groups, their way to stable storage, recovery at start.
//!
//! Records (`docs/internals/journal.md` has the framing):
//!
//! | kind | head | payload |
//! | --- | --- | --- |
//! | 1 batch | the 96-byte batch header | the entries |
//! | 2 base | group[16] | an encoded base: the log begins behind it |
//! | 4 cut | group[16], u64 index | empty: the group's log ends at the index; what lay behind it was never committed |
//! | 5 trim | group[16], u64 index | empty: clients trimmed the group's log up to the index, and were told |
//! | 3 dropped | group[16] | empty: all records of the group before this one mean nothing |

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use quorate_chain::{Base, Replica};
use quorate_journal::{Event, Journal, Location, Lsn, Record, Submission, SubmitError, Submitter};
use quorate_types::limits::JOURNAL_BUFFER_BYTES_MAX;
use quorate_types::{Durability, Epoch, GroupId, Index, ServerId};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

pub const KIND_BATCH: u8 = 1;
pub const KIND_BASE: u8 = 2;
pub const KIND_DROPPED: u8 = 3;
pub const KIND_CUT: u8 = 4;
pub const KIND_TRIM: u8 = 5;

/// Records offered to the journal at once: a refusal costs no more than that many built in vain.
const SUBMIT_RECORDS_MAX: usize = 1_024;

/// One shard's port to the journal. Records that the journal does not take yet wait here, in order.
pub struct JournalPort {
    journal: Arc<Journal>,
    submitter: Submitter,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    next_tag: u64,
    /// Submitted, by tag: what becomes durable with it.
    in_flight: VecDeque<(u64, Durable)>,
}

struct Waiting {
    kind: u8,
    head: Vec<u8>,
    payload: Bytes,
    durable: Durable,
}

/// What a record's completion means for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub group_id: GroupId,
    pub index: Index,
    /// Of the batch or base; the number of a cut.
    pub epoch: Epoch,
    pub kind: u8,
}

/// Where a record lies, for its group's book.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub durable: Durable,
    pub lsn: Lsn,
    pub location: Location,
}

impl JournalPort {
    pub fn new(journal: Arc<Journal>, completion: impl Fn(Event) + Send + Sync + 'static) -> Self {
        let submitter = journal.submitter(Arc::new(completion));
        Self {
            journal,
            submitter,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            next_tag: 1,
            in_flight: VecDeque::new(),
        }
    }

    pub fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    pub fn batch(&mut self, batch: &Batch) {
        let header = &batch.header;
        let durable = Durable {
            group_id: header.group_id,
            index: header.index,
            epoch: header.epoch,
            kind: KIND_BATCH,
        };
        self.push(
            KIND_BATCH,
            header.encode().to_vec(),
            batch.payload.clone(),
            durable,
        );
    }

    pub fn base(&mut self, group_id: GroupId, base: Bytes, index: Index, epoch: Epoch) {
        let durable = Durable {
            group_id,
            index,
            epoch,
            kind: KIND_BASE,
        };
        self.push(KIND_BASE, group_id.0.as_bytes().to_vec(), base, durable);
    }

    pub fn cut(&mut self, group_id: GroupId, index: Index, number: u64) {
        let durable = Durable {
            group_id,
            index,
            epoch: number,
            kind: KIND_CUT,
        };
        let head = group_and_index(group_id, index);
        self.push(KIND_CUT, head, Bytes::new(), durable);
    }

    pub fn trim(&mut self, group_id: GroupId, index: Index) {
        let durable = Durable {
            group_id,
            index,
            epoch: 0,
            kind: KIND_TRIM,
        };
        let head = group_and_index(group_id, index);
        self.push(KIND_TRIM, head, Bytes::new(), durable);
    }

    pub fn dropped(&mut self, group_id: GroupId) {
        let durable = Durable {
            group_id,
            index: 0,
            epoch: 0,
            kind: KIND_DROPPED,
        };
        self.push(
            KIND_DROPPED,
            group_id.0.as_bytes().to_vec(),
            Bytes::new(),
            durable,
        );
    }

    fn push(&mut self, kind: u8, head: Vec<u8>, payload: Bytes, durable: Durable) {
        self.waiting_bytes += head.len() + payload.len();
        self.waiting.push_back(Waiting {
            kind,
            head,
            payload,
            durable,
        });
    }

    /// Whether heads should stop ordering for a while: the disk is behind.
    pub fn is_crowded(&self) -> bool {
        self.waiting_bytes > JOURNAL_BUFFER_BYTES_MAX / 4
    }

    /// Hands over what waits, as far as the journal takes it; tells where each record will lie.
    pub fn submit(&mut self) -> (Vec<Placed>, Option<SubmitError>) {
        let mut placed = Vec::new();
        while !self.waiting.is_empty() {
            if let Err(refusal) = self.submit_slice(&mut placed) {
                return (placed, Some(refusal));
            }
        }
        (placed, None)
    }

    fn submit_slice(&mut self, placed: &mut Vec<Placed>) -> Result<(), SubmitError> {
        let submissions: Vec<Submission<'_>> = self
            .waiting
            .iter()
            .take(SUBMIT_RECORDS_MAX)
            .zip(self.next_tag..)
            .map(|(waiting, tag)| Submission {
                kind: waiting.kind,
                head: &waiting.head,
                payload: &waiting.payload,
                tag,
                reserved: waiting.kind != KIND_BATCH,
            })
            .collect();
        let mut places = Vec::with_capacity(submissions.len());
        let outcome = self
            .submitter
            .submit_many(&submissions, |at| places.push((at.lsn, at.location)));
        for (lsn, location) in places {
            let record = self.waiting.pop_front().expect("only what waited was taken");
            self.waiting_bytes -= record.head.len() + record.payload.len();
            self.in_flight.push_back((self.next_tag, record.durable));
            self.next_tag += 1;
            placed.push(Placed {
                durable: record.durable,
                lsn,
                location,
            });
        }
        outcome
    }

    /// What became durable with `tag`: the last record of each group and kind, in order.
    pub fn completed(&mut self, tag: u64) -> Vec<Durable> {
        let mut done: Vec<Durable> = Vec::new();
        while self.in_flight.front().is_some_and(|(t, _)| *t <= tag) {
            let (_, durable) = self.in_flight.pop_front().expect("there is a front");
            match done.last_mut() {
                Some(last) if last.group_id == durable.group_id && last.kind == durable.kind => {
                    *last = durable
                }
                _ => done.push(durable),
            }
        }
        done
    }
}

/// A group found in the journal.
pub struct Recovered {
    pub replica: Replica,
    pub places: Places,
}

/// Where a group's records lie: batches from `first_index` on, and its base.
#[derive(Debug, Default)]
pub struct Places {
    first_index: Index,
    batches: VecDeque<(Lsn, Location)>,
    pub base_lsn: Option<Lsn>,
}

impl Places {
    /// Notes a batch; one at an index that is there already replaces it and all behind it.
    pub fn note(&mut self, index: Index, lsn: Lsn, location: Location) {
        if self.batches.is_empty() {
            self.first_index = index;
        }
        let Some(at) = index.checked_sub(self.first_index) else {
            return;
        };
        self.batches.truncate(at as usize);
        if self.batches.len() as u64 != at {
            // A gap: the log began anew behind a base.
            self.batches.clear();
            self.first_index = index;
        }
        self.batches.push_back((lsn, location));
    }

    pub fn get(&self, index: Index) -> Option<Location> {
        let at = index.checked_sub(self.first_index)?;
        self.batches.get(at as usize).map(|(_, location)| *location)
    }

    /// A base at `index` is durable: what lies at or before it is not needed.
    pub fn forget_through(&mut self, index: Index) {
        while self.first_index <= index && !self.batches.is_empty() {
            self.batches.pop_front();
            self.first_index += 1;
        }
    }

    /// The oldest record that the group needs.
    pub fn oldest_lsn(&self) -> Option<Lsn> {
        let first = self.batches.front().map(|(lsn, _)| *lsn);
        match (first, self.base_lsn) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// What the scan at start found. A group whose records have a hole is damaged: it is given up here and
/// learned anew from the other replicas.
#[derive(Default)]
pub struct Scan {
    pub groups: HashMap<GroupId, Recovered>,
    pub damaged: HashMap<GroupId, String>,
}

impl Scan {
    /// To be called behind the last record: a group of whose log a part is missing is damaged.
    pub fn finish(&mut self) {
        for (group_id, recovered) in &mut self.groups {
            if let Err(hole) = recovered.replica.recovered_all() {
                self.damaged.entry(*group_id).or_insert_with(|| hole.to_string());
            }
        }
    }

    /// Takes in one record. An error means that the journal is not one that this version can read.
    pub fn record(&mut self, me: ServerId, record: &Record<'_>) -> Result<(), String> {
        match record.kind {
            KIND_BATCH => {
                let header = BatchHeader::decode(record.head).map_err(|e| e.to_string())?;
                let batch = Batch {
                    header,
                    payload: Bytes::copy_from_slice(record.payload),
                    trace: None,
                };
                let recovered = group(&mut self.groups, me, header.group_id);
                recovered.places.note(header.index, record.lsn, record.location);
                recovered.replica.recover(batch);
            }
            KIND_BASE => {
                let group_id = group_id_of(record.head)?;
                let base = Base::decode(record.payload).ok_or("a base record is malformed")?;
                let recovered = group(&mut self.groups, me, group_id);
                recovered.places.forget_through(base.index);
                recovered.places.base_lsn = Some(record.lsn);
                recovered.replica.recover_base(base);
            }
            KIND_CUT => {
                let index = index_of(record.head)?;
                let recovered = group(&mut self.groups, me, group_id_of(record.head)?);
                recovered.replica.recover_cut(index);
            }
            KIND_TRIM => {
                let index = index_of(record.head)?;
                let recovered = group(&mut self.groups, me, group_id_of(record.head)?);
                recovered.replica.recover_trim(index);
            }
            KIND_DROPPED => {
                let group_id = group_id_of(record.head)?;
                self.groups.remove(&group_id);
            }
            unknown => return Err(format!("record kind {unknown} is of a later version")),
        }
        Ok(())
    }
}

fn group(groups: &mut HashMap<GroupId, Recovered>, me: ServerId, group_id: GroupId) -> &mut Recovered {
    groups.entry(group_id).or_insert_with(|| Recovered {
        replica: Replica::new(me, Durability::Persistent),
        places: Places::default(),
    })
}

fn group_and_index(group_id: GroupId, index: Index) -> Vec<u8> {
    let mut head = group_id.0.as_bytes().to_vec();
    head.extend_from_slice(&index.to_le_bytes());
    head
}

fn index_of(head: &[u8]) -> Result<Index, String> {
    let index: Option<&[u8; 8]> = head.get(16..).and_then(<[u8]>::first_chunk);
    index
        .map(|bytes| Index::from_le_bytes(*bytes))
        .ok_or_else(|| "a record is too short for an index".to_string())
}

fn group_id_of(body: &[u8]) -> Result<GroupId, String> {
    let bytes: &[u8; 16] = body.first_chunk().ok_or("a record is too short for a group")?;
    Ok(GroupId(Uuid::from_bytes(*bytes)))
}
