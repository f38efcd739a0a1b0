//! Reading a journal back: every intact record in order, damage told apart from a torn end.
//!
//! A record says which lsn was durable when it was written, and a segment begins only after the one before it was
//! synced. So a hole below such a mark is damage to something acknowledged; a hole above every mark was in the
//! last, unfinished write, and all from there on was never acknowledged.

use std::fs::File;
use std::ops::Range;

use crate::disk::Disk;
use crate::record::{self, Location, Lsn, Record, SEGMENT_HEAD_BYTES, SegmentHead};

/// What opening a journal found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Intact records that were yielded.
    pub records: u64,
    /// The lsn of the next record to be submitted.
    pub next_lsn: Lsn,
    /// Acknowledged records that cannot be read: fetch them from another replica.
    pub damages: Vec<Damage>,
    /// The unacknowledged end that was cut, if the last write was interrupted.
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
    /// Whole records behind the cut, never acknowledged.
    pub records_cut: u64,
}

/// A segment file as it was found.
pub(crate) struct Found {
    pub number: u32,
    pub file: File,
    pub bytes: u64,
    pub head: Head,
}

pub(crate) enum Head {
    Begun(SegmentHead),
    /// Prepared and not yet written to in this use.
    Unused,
    /// Neither copy is readable.
    Lost,
}

/// Where writing goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub segment: u32,
    pub position: u64,
    /// Remains of an unfinished write behind `position`, to be wiped before anything is written.
    pub wipe_to: u64,
}

pub(crate) fn read_head(disk: &Disk, number: u32, file: &File, bytes: u64) -> std::io::Result<Head> {
    let mut page = vec![0; SEGMENT_HEAD_BYTES.min(bytes) as usize];
    disk.read_at(file, &mut page, 0)?;
    Ok(match SegmentHead::decode(&page) {
        Some(head) if head.segment == number => Head::Begun(head),
        Some(_) => Head::Unused,
        None if page.iter().all(|byte| *byte == 0) => Head::Unused,
        None => Head::Lost,
    })
}

/// Yields the intact records of `found`, which is in order of use. The last begun segment is where writing goes on.
pub(crate) fn scan(
    disk: &Disk,
    found: &[Found],
    visit: &mut dyn FnMut(Record<'_>),
) -> std::io::Result<(Recovery, Option<End>)> {
    let mut walk = Walk {
        visit,
        recovery: Recovery {
            next_lsn: 1,
            ..Recovery::default()
        },
        end: None,
    };
    let used: Vec<&Found> = found.iter().filter(|f| !matches!(f.head, Head::Unused)).collect();
    let mut buffer = Vec::new();
    for (index, file) in used.iter().enumerate() {
        let next_first_lsn = used[index + 1..].iter().find_map(|f| match f.head {
            Head::Begun(head) => Some(head.first_lsn),
            _ => None,
        });
        let Head::Begun(head) = file.head else {
            walk.lost_segment(file, next_first_lsn);
            continue;
        };
        if index == 0 {
            walk.recovery.next_lsn = head.first_lsn;
        }
        buffer.resize(file.bytes as usize, 0);
        disk.read_at(&file.file, &mut buffer, 0)?;
        walk.segment(&buffer, head, next_first_lsn);
    }
    Ok((walk.recovery, walk.end))
}

struct Walk<'v> {
    visit: &'v mut dyn FnMut(Record<'_>),
    recovery: Recovery,
    end: Option<End>,
}

impl Walk<'_> {
    fn lost_segment(&mut self, file: &Found, next_first_lsn: Option<Lsn>) {
        let first_lsn = self.recovery.next_lsn;
        let end_lsn = next_first_lsn.filter(|end| *end >= first_lsn);
        self.damage(file.number, 0..file.bytes, first_lsn, end_lsn);
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

    /// `end_lsn`: the first lsn of the next segment, whose existence proves that all before it had been synced.
    fn segment(&mut self, bytes: &[u8], head: SegmentHead, end_lsn: Option<Lsn>) {
        if head.first_lsn > self.recovery.next_lsn {
            self.damage(head.segment, 0..0, self.recovery.next_lsn, Some(head.first_lsn));
        }
        let mut position = SEGMENT_HEAD_BYTES as usize;
        let mut wipe_to = position as u64;
        while end_lsn.is_none_or(|end| self.recovery.next_lsn < end) {
            let expected = self.recovery.next_lsn;
            if let Some(stride) = self.record(bytes, position, head, expected) {
                position += stride;
                continue;
            }
            let behind = Behind::of(bytes, position, head, expected, end_lsn);
            match behind.first {
                Some((at, lsn)) if end_lsn.is_some() || behind.synced_lsn >= expected => {
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
                        // At least the header, so that the cut is not found again.
                        wipe_to = behind.end.max((position + record::HEADER_BYTES).min(bytes.len())) as u64;
                        let torn = Torn {
                            segment: head.segment,
                            position: position as u64,
                            records_cut: behind.count,
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
        });
    }

    /// Yields the record if it is intact and the expected one; answers its stride.
    fn record(&mut self, bytes: &[u8], position: usize, head: SegmentHead, expected: Lsn) -> Option<usize> {
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
        (self.visit)(Record {
            lsn: header.lsn,
            kind: header.kind,
            head: record_head,
            payload,
            location,
        });
        self.recovery.records += 1;
        self.recovery.next_lsn += 1;
        Some(record::stride(header.body_len as usize))
    }
}

/// The intact records behind a hole.
struct Behind {
    first: Option<(usize, Lsn)>,
    count: u64,
    /// The highest lsn that one of them says was durable.
    synced_lsn: Lsn,
    /// Where the last of them ends.
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

/// Whether a record was begun here: its header, or a part of it at the end of the file, without its whole body.
fn begins_record(bytes: &[u8], position: usize, head: SegmentHead, expected: Lsn) -> bool {
    let rest = bytes.get(position..).unwrap_or(&[]);
    if rest.len() < record::HEADER_BYTES {
        return rest.iter().any(|byte| *byte != 0);
    }
    record::Header::decode(rest).is_some_and(|h| h.segment == head.segment && h.lsn == expected)
}
