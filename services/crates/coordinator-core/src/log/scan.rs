//! The log is read back: whole records, a torn end, damage.

use std::sync::Arc;

use quorate_quorum::{Disk, Entry, Point, Vote, Write};
use quorate_record_file::HEADER_BYTES;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;
use serde_json::value::RawValue;

use super::format::{Base, Record, header, unreadable};
use super::former::{self, Former};

/// The contents of a log, and where it goes on.
#[derive(Debug)]
pub struct Scanned {
    pub contents: Contents,
    /// The position of the next record.
    pub end: u64,
    pub snapshot_bytes: u64,
    /// Bytes of a torn last record that are to be truncated.
    pub cut_bytes: u64,
}

#[derive(Debug)]
pub enum Contents {
    /// A header alone: its beginning was never written.
    Nothing,
    /// The log of a coordinator that decided alone, of a release before the quorum.
    Former(Former),
    Member(MemberDisk),
}

/// A member's disk.
#[derive(Debug)]
pub struct MemberDisk {
    /// As the log begins.
    pub base: Base,
    /// The snapshot's contents: a state in JSON. None: an empty disk.
    pub state: Option<Arc<[u8]>>,
    /// The last one.
    pub vote: Vote,
    pub entries: Vec<Entry>,
}

impl MemberDisk {
    pub fn to_quorum(&self) -> Disk {
        Disk {
            vote: self.vote,
            base: self.base.point,
            members: self.base.members.clone(),
            entries: self.entries.clone(),
        }
    }

    /// The end of the entries.
    pub fn last(&self) -> Point {
        self.entries.last().map_or(self.base.point, Entry::point)
    }

    fn take(&mut self, write: Write) -> Result<(), String> {
        self.vote = write.vote.unwrap_or(self.vote);
        if let Some(after) = write.cut_after {
            self.entries.retain(|entry| entry.position <= after);
        }
        for entry in write.entries {
            let last = self.last();
            let follows = entry.position == last.position.next() && entry.term >= last.term;
            if !follows {
                return Err(format!("an entry at {} does not follow {last}", entry.point()));
            }
            self.entries.push(entry);
        }
        let last = self.last();
        if last.term > self.vote.term {
            return Err(format!("an entry at {last} is of a term that was not begun"));
        }
        Ok(())
    }
}

/// Reads a whole log. The error names the first damaged byte, and the damage.
pub fn scan(bytes: &[u8]) -> Result<Scanned, (usize, String)> {
    if former::is_its_header(bytes) {
        let (former, end) = former::scan(bytes)?;
        return Ok(Scanned {
            contents: former.map_or(Contents::Nothing, Contents::Former),
            end: end as u64,
            snapshot_bytes: 0,
            cut_bytes: (bytes.len() - end) as u64,
        });
    }
    if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES] != header() {
        return Err((
            0,
            "its first bytes are not those of a coordinator log of version 1 or 2".into(),
        ));
    }
    let records = quorate_record_file::scan(bytes, COORDINATOR_RECORD_BYTES_MAX)
        .map_err(|damage| (damage.offset, damage.to_string()))?;
    let mut disk: Option<MemberDisk> = None;
    let mut snapshot_bytes = 0;
    let mut at = HEADER_BYTES;
    for payload in records.payloads {
        let next = payload.end;
        let record: Record<Box<RawValue>> =
            serde_json::from_slice(&bytes[payload]).map_err(|e| (at, unreadable(&e)))?;
        let taken = match (record, &mut disk) {
            (Record::Base(record), None) => record.base().map(|base| {
                let state = record.state.get();
                snapshot_bytes = next as u64;
                disk = Some(MemberDisk {
                    vote: base.vote,
                    base,
                    state: (state != "null").then(|| state.as_bytes().into()),
                    entries: Vec::new(),
                });
            }),
            (Record::Writes(records), Some(disk)) => {
                let mut writes = records.into_iter();
                writes.try_for_each(|record| disk.take(record.write()?))
            }
            (Record::Base(_), Some(_)) => Err("a second beginning".into()),
            (Record::Writes(_), None) => Err("a write before the beginning".into()),
        };
        taken.map_err(|problem| (at, problem))?;
        at = next;
    }
    Ok(Scanned {
        contents: disk.map_or(Contents::Nothing, Contents::Member),
        end: at as u64,
        snapshot_bytes,
        cut_bytes: (bytes.len() - at) as u64,
    })
}
