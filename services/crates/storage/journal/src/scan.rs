//! Reading a journal back: every intact record in order, damage distinguished from a torn end.
//!
//! A record states the lsn that was durable when it was written. A segment begins only after the one before it was
//! synced. A hole below such a proof is damage to acknowledged records. A hole above every proof was in the last,
//! unfinished write: no record from there on was ever acknowledged.
//!
//! Pure over a [`Source`] of bytes: the journal's files, a simulated disk's, a fuzzer's. Any bytes are valid input.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use quorate_types::planted::{self, Bug};

use crate::record::{self, JournalRecord, Location, Lsn, SEGMENT_HEAD_BYTES, SegmentHead};
use crate::source::{Source, read_around};

/// Findings of opening a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Intact records that were yielded, without marks.
    pub records: u64,
    /// The lsn of the next record to be submitted.
    pub next_lsn: Lsn,
    /// Acknowledged records that cannot be read: fetch them from another replica.
    pub damages: Vec<Damage>,
    /// The unacknowledged end that was truncated, if the last write was interrupted.
    pub torn: Option<Torn>,
}

/// Records lost to a faulty disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub segment: u32,
    pub bytes: Range<u64>,
    pub first_lsn: Lsn,
    /// Exclusive; `None`: unknown, the last segment's head is gone.
    pub end_lsn: Option<Lsn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    pub segment: u32,
    pub position: u64,
    /// Whole records that were truncated, never acknowledged.
    pub records_truncated: u64,
}

/// A segment file; `number` is the one in its name.
#[derive(Debug, Clone)]
pub struct SegmentFile<S> {
    pub number: u32,
    pub source: S,
}

/// Result of [`scan`] besides the records.
#[derive(Debug, Clone)]
pub struct Scanned {
    pub recovery: Recovery,
    /// For each segment given.
    pub heads: Vec<Head>,
    /// Place of the next write; `None`: a new segment.
    pub end: Option<End>,
}

/// State of a segment file by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    Begun(SegmentHead),
    /// Prepared, without a write in this use.
    Unused,
    /// Neither copy is readable.
    Lost,
}

/// Place of the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub segment: u32,
    pub position: u64,
    /// End of an unfinished write's remains behind `position`, which are wiped before the next write.
    pub wipe_to: u64,
    /// Up to here a record behind proves that all was synced. The rest may lie in the page cache alone, and be taken there
    /// for written: a sync may have failed.
    pub proven_to: u64,
}

fn read_head(number: u32, source: &impl Source) -> io::Result<Head> {
    let mut pages = vec![0; SEGMENT_HEAD_BYTES.min(source.bytes()) as usize];
    read_around(source, &mut pages, 0)?;
    let copies = SegmentHead::decode_copies(&pages);
    let mut sound = copies.iter().flatten();
    Ok(match sound.clone().find(|head| head.segment == number) {
        Some(head) => Head::Begun(*head),
        None if sound.next().is_some() || pages.iter().all(|byte| *byte == 0) => Head::Unused,
        None => Head::Lost,
    })
}

/// Yields the intact records of `segments`, given in order of their numbers. Each segment is read whole.
pub fn scan<S: Source>(
    segments: &[SegmentFile<S>],
    visit: &mut dyn FnMut(JournalRecord<'_>),
) -> io::Result<Scanned> {
    let heads: Vec<Head> = segments
        .iter()
        .map(|file| read_head(file.number, &file.source))
        .collect::<io::Result<_>>()?;
    let mut walk = Walk {
        visit,
        recovery: Recovery {
            next_lsn: 1,
            ..Recovery::default()
        },
        end: None,
    };
    let used: Vec<_> = segments
        .iter()
        .zip(&heads)
        .filter(|(_, head)| **head != Head::Unused)
        .collect();
    let mut buffer = Vec::new();
    for (index, (file, head)) in used.iter().enumerate() {
        let next_first_lsn = used[index + 1..].iter().find_map(|(_, head)| match head {
            Head::Begun(head) => Some(head.first_lsn),
            _ => None,
        });
        let Head::Begun(head) = head else {
            walk.lost_segment(file.number, file.source.bytes(), next_first_lsn);
            continue;
        };
        if index == 0 {
            walk.recovery.next_lsn = head.first_lsn;
        }
        buffer.resize(file.source.bytes() as usize, 0);
        read_around(&file.source, &mut buffer, 0)?;
        walk.segment(&buffer, *head, next_first_lsn);
    }
    // The number of records lost at the end is unknown. Skipping one number shows later starts that some were lost.
    let is_open = |damage: &Damage| damage.end_lsn.is_none();
    walk.recovery.next_lsn += u64::from(walk.recovery.damages.last().is_some_and(is_open));
    Ok(Scanned {
        recovery: walk.recovery,
        heads,
        end: walk.end,
    })
}

struct Walk<'v> {
    visit: &'v mut dyn FnMut(JournalRecord<'_>),
    recovery: Recovery,
    end: Option<End>,
}

impl Walk<'_> {
    fn lost_segment(&mut self, number: u32, bytes: u64, next_first_lsn: Option<Lsn>) {
        let first_lsn = self.recovery.next_lsn;
        let end_lsn = next_first_lsn.filter(|end| *end >= first_lsn);
        self.damage(number, 0..bytes, first_lsn, end_lsn);
        self.end = None;
    }

    fn damage(&mut self, segment: u32, bytes: Range<u64>, first_lsn: Lsn, end_lsn: Option<Lsn>) {
        self.recovery.damages.push(Damage {
            segment,
            bytes,
            first_lsn,
            end_lsn,
        });
        if let Some(end_lsn) = end_lsn {
            assert!(end_lsn >= first_lsn, "damage from {first_lsn} to {end_lsn}");
            self.recovery.next_lsn = end_lsn;
        }
    }

    /// `end_lsn`: the first lsn of the next segment, whose existence proves that all before it was synced.
    fn segment(&mut self, bytes: &[u8], head: SegmentHead, end_lsn: Option<Lsn>) {
        if head.first_lsn > self.recovery.next_lsn {
            self.damage(head.segment, 0..0, self.recovery.next_lsn, Some(head.first_lsn));
        }
        let mut position = SEGMENT_HEAD_BYTES as usize;
        let mut wipe_to = position as u64;
        let mut unproven = Unproven::default();
        while end_lsn.is_none_or(|end| self.recovery.next_lsn < end) {
            let expected = self.recovery.next_lsn;
            if let Some((stride, synced_lsn)) = self.record(bytes, position, head, expected) {
                unproven.note(expected, position as u64, synced_lsn);
                position += stride;
                continue;
            }
            let behind = Behind::of(bytes, position, head, expected, end_lsn);
            match behind.first {
                Some((at, lsn))
                    if (end_lsn.is_some() || behind.synced_lsn >= expected)
                        && !planted::on(Bug::DamageTruncated) =>
                {
                    self.damage(head.segment, position as u64..at as u64, expected, Some(lsn));
                    position = at;
                }
                None if end_lsn.is_some() => {
                    self.damage(
                        head.segment,
                        position as u64..bytes.len() as u64,
                        expected,
                        end_lsn,
                    );
                }
                first => {
                    if first.is_some() || begins_record(bytes, position, head, expected) {
                        // At least the header, so that the next start does not find the torn end again.
                        wipe_to = behind.end.max((position + record::HEADER_BYTES).min(bytes.len())) as u64;
                        let torn = Torn {
                            segment: head.segment,
                            position: position as u64,
                            records_truncated: behind.count,
                        };
                        self.recovery.torn = Some(torn);
                    }
                    break;
                }
            }
        }
        let position = position as u64;
        self.end = Some(End {
            segment: head.segment,
            position,
            wipe_to: wipe_to.max(position),
            proven_to: unproven.begin(position),
        });
    }

    /// Yields the record if it is intact and the expected one; answers its stride, and the lsn that it states as durable.
    fn record(
        &mut self,
        bytes: &[u8],
        position: usize,
        head: SegmentHead,
        expected: Lsn,
    ) -> Option<(usize, Lsn)> {
        let (header, record_head, payload) = record::parse(bytes.get(position..)?, head.segment, head.salt)?;
        if header.lsn != expected {
            return None;
        }
        let len = (record::HEADER_BYTES + header.body_len as usize) as u32;
        let location = Location {
            segment: head.segment,
            position: position as u32,
            len,
        };
        (self.visit)(JournalRecord {
            lsn: header.lsn,
            kind: header.kind,
            head: record_head,
            payload,
            location,
        });
        self.recovery.records += u64::from(header.kind != record::KIND_MARK);
        self.recovery.next_lsn += 1;
        Some((record::stride(header.body_len as usize), header.synced_lsn()))
    }
}

/// The last records of a segment, as far as none behind them states that they were durable.
#[derive(Default)]
struct Unproven {
    records: VecDeque<(Lsn, u64)>,
    /// A record of the segment was proved: its head was synced with that.
    is_head_proven: bool,
}

impl Unproven {
    fn note(&mut self, lsn: Lsn, position: u64, synced_lsn: Lsn) {
        self.records.push_back((lsn, position));
        while self.records.pop_front_if(|(lsn, _)| *lsn <= synced_lsn).is_some() {
            self.is_head_proven = true;
        }
    }

    /// Where they begin, in a segment whose records end here: with its head, if nothing shows that this is on the disk.
    fn begin(&self, end: u64) -> u64 {
        match self.records.front() {
            _ if !self.is_head_proven => 0,
            Some((_, position)) => *position,
            None => end,
        }
    }
}

/// The intact records behind a hole.
struct Behind {
    first: Option<(usize, Lsn)>,
    count: u64,
    /// The highest lsn that one of them states as durable.
    synced_lsn: Lsn,
    /// End of the last of them.
    end: usize,
}

impl Behind {
    fn of(bytes: &[u8], hole: usize, head: SegmentHead, expected: Lsn, end_lsn: Option<Lsn>) -> Behind {
        let mut behind = Behind {
            first: None,
            count: 0,
            synced_lsn: 0,
            end: hole,
        };
        let mut position = hole;
        let mut least = expected;
        while position + record::HEADER_BYTES <= bytes.len() {
            match record::parse(&bytes[position..], head.segment, head.salt) {
                Some((header, ..)) if header.lsn >= least && end_lsn.is_none_or(|end| header.lsn < end) => {
                    behind.first = behind.first.or(Some((position, header.lsn)));
                    behind.count += 1;
                    behind.synced_lsn = behind.synced_lsn.max(header.synced_lsn());
                    least = header.lsn + 1;
                    position += record::stride(header.body_len as usize);
                    behind.end = position;
                }
                _ => position += record::ALIGN_BYTES,
            }
        }
        behind
    }
}

/// Whether a record was begun here: a header without its whole body, or part of a header at the end of the file.
fn begins_record(bytes: &[u8], position: usize, head: SegmentHead, expected: Lsn) -> bool {
    let rest = bytes.get(position..).unwrap_or(&[]);
    if rest.len() < record::HEADER_BYTES {
        return rest.iter().any(|byte| *byte != 0);
    }
    record::Header::decode(rest).is_some_and(|h| h.segment == head.segment && h.lsn == expected)
}
