//! Reading full segments and deciding what of them is copied.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use quorate_journal::record::KIND_MARK;
use quorate_journal::{JournalRecord, Lsn, Sealed, Step};
use quorate_types::GroupId;

use crate::copy::pace::Pace;
use crate::copy::pending::Spare;
use crate::copy::rescue;
use crate::copy::writing::{Copied, Writing};
use crate::core::Core;
use crate::events::Listener;
use crate::format::{KIND_HOLE, LogLocation};
use crate::group_files::GroupFiles;
use crate::groups::{Before, Groups};
use crate::options::Meaning;

/// A copy pass under way.
pub(crate) struct Pass<'a> {
    core: &'a Core,
    events: &'a Listener,
    /// Holes of the journal that its groups know of.
    known_holes: &'a [Range<Lsn>],
    groups: &'a mut Groups,
    writing: Writing<'a>,
    pace: Pace,
    read_bytes: u64,
    report: CopyReport,
}

/// Result of a copy pass. It counts once the manifest names it.
#[derive(Default)]
pub(crate) struct CopyReport {
    /// The last record that was copied or skipped.
    pub through: Lsn,
    pub records: u64,
    pub written_bytes: u64,
    pub moved: BTreeMap<GroupId, Vec<(Lsn, LogLocation)>>,
    /// Files whose group was dropped in this pass.
    pub void: Vec<(GroupId, u32)>,
    pub before: Before,
    pub is_incomplete: bool,
    pub spare: Spare,
}

impl<'a> Pass<'a> {
    pub fn new(
        core: &'a Core,
        events: &'a Listener,
        known_holes: &'a [Range<Lsn>],
        groups: &'a mut Groups,
        segments_due: usize,
        spare: Spare,
    ) -> Self {
        Self {
            core,
            events,
            known_holes,
            groups,
            writing: Writing::new(core, spare),
            pace: Pace::new(core.options.copy_bytes_per_s, segments_due),
            read_bytes: 0,
            report: CopyReport::default(),
        }
    }

    /// Copies the records of `sealed` behind `copied_lsn`, up to the bounds of a pass, and syncs them.
    pub fn run(mut self, copied_lsn: Lsn, sealed: Vec<Sealed>) -> (io::Result<()>, CopyReport) {
        self.report.through = copied_lsn;
        let outcome = self.copy(sealed).and_then(|()| self.writing.sync());
        let Writing {
            moved,
            written_bytes,
            spare,
            ..
        } = self.writing;
        let report = CopyReport {
            moved,
            written_bytes,
            spare,
            ..self.report
        };
        (outcome, report)
    }

    fn copy(&mut self, sealed: Vec<Sealed>) -> io::Result<()> {
        for segment in sealed {
            if self.skip(&segment) {
                continue;
            }
            let mut walk = segment.walk();
            while let Some(step) = walk.next()? {
                let next_lsn = match &step {
                    Step::Record(record) => record.lsn,
                    Step::Hole { first_lsn, .. } => *first_lsn,
                };
                // A hole between segments: one of them is lost, or a lost journal was begun behind its last record.
                if self.report.through > 0 && next_lsn > self.report.through + 1 {
                    self.cross_hole(self.report.through + 1..next_lsn)?;
                }
                match step {
                    Step::Record(record) if record.lsn <= self.report.through => {}
                    Step::Record(record) if record.kind == KIND_MARK => self.report.through = record.lsn,
                    Step::Record(record) => {
                        self.copy_record(&record)?;
                        self.report.through = record.lsn;
                        self.read_bytes += u64::from(record.location.len);
                        self.pace.keep(self.core, u64::from(record.location.len))?;
                    }
                    Step::Hole { end_lsn, .. } if end_lsn <= self.report.through + 1 => {}
                    Step::Hole { first_lsn, end_lsn } => {
                        self.cross_hole(first_lsn.max(self.report.through + 1)..end_lsn)?;
                    }
                }
                let options = &self.core.options;
                let is_full = self.read_bytes >= options.pass_bytes
                    || self.report.records >= options.pass_records as u64;
                if is_full {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Skips a segment that no group needs any more, without reading it; answers whether it did.
    fn skip(&mut self, segment: &Sealed) -> bool {
        let follows = segment.first_lsn <= self.report.through + 1;
        let Some(groups) = self.groups.trimmed_segment(segment).filter(|_| follows) else {
            return false;
        };
        for group in groups {
            self.reset(group);
        }
        self.report.through = segment.end_lsn - 1;
        true
    }

    /// Crosses a hole of the journal. A hole known from the start is marked in every log. For another, the records are
    /// asked for.
    fn cross_hole(&mut self, lsns: Range<Lsn>) -> io::Result<()> {
        let through = lsns.end - 1;
        let is_same = |known: &Range<Lsn>| known.start < lsns.end && lsns.start < known.end;
        if self.known_holes.iter().any(is_same) {
            let groups: Vec<GroupId> = self.groups.files.keys().copied().collect();
            self.mark_hole(groups, lsns.start)?;
        } else {
            self.rescue(lsns)?;
        }
        self.report.through = through;
        Ok(())
    }

    fn mark_hole(&mut self, groups: impl IntoIterator<Item = GroupId>, lsn: Lsn) -> io::Result<()> {
        for group in groups {
            let hole = Copied {
                lsn,
                kind: KIND_HOLE,
                head: &[],
                payload: &[],
                payload_crc: 0,
            };
            self.append(group, &hole)?;
        }
        Ok(())
    }

    fn rescue(&mut self, lsns: Range<Lsn>) -> io::Result<()> {
        tracing::error!(
            ?lsns,
            "the journal is damaged in a segment due for copying; asking for the lost records"
        );
        let rescued = rescue::collect(self.core, self.events, lsns.clone())?;
        let is_incomplete = (rescued.records.len() as u64) < lsns.end - lsns.start;
        self.report.is_incomplete |= is_incomplete;
        if is_incomplete {
            // Others state anew how far their logs are good.
            self.mark_hole(rescued.stopped, lsns.start)?;
        }
        for one in &rescued.records {
            let missing;
            let (payload, payload_crc) = match &one.payload {
                Ok(payload) => (&payload[..], crc32fast::hash(payload)),
                Err(len) => {
                    missing = vec![0; *len as usize];
                    // A wrong checksum: every reader sees that this is not the payload.
                    (&missing[..], !crc32fast::hash(&missing))
                }
            };
            let copied = Copied {
                lsn: one.lsn,
                kind: one.kind,
                head: &one.head,
                payload,
                payload_crc,
            };
            self.append(one.group, &copied)?;
        }
        Ok(())
    }

    fn copy_record(&mut self, record: &JournalRecord<'_>) -> io::Result<()> {
        let Some((group, meaning)) = (self.core.options.classify)(record.kind, record.head) else {
            return Err(io::Error::other(format!(
                "record {} of the journal, of kind {}, is not one of this version",
                record.lsn, record.kind
            )));
        };
        let index = match meaning {
            Meaning::Batch { index } => index,
            Meaning::Other => 0,
            Meaning::Dropped => {
                self.groups.forget_base(group);
                self.drop_group(group);
                return Ok(());
            }
        };
        if self.groups.is_trimmed(group, index, record.lsn) {
            self.reset(group);
            return Ok(());
        }
        let copied = Copied {
            lsn: record.lsn,
            kind: record.kind,
            head: record.head,
            payload: record.payload,
            payload_crc: crc32fast::hash(record.payload),
        };
        self.append(group, &copied)
    }

    fn append(&mut self, group: GroupId, copied: &Copied<'_>) -> io::Result<()> {
        let index = match (self.core.options.classify)(copied.kind, copied.head) {
            Some((_, Meaning::Batch { index })) => index,
            _ => 0,
        };
        if !self.writing.has_pending(group) {
            let before = || self.groups.files.get(&group).cloned();
            self.report.before.entry(group).or_insert_with(before);
        }
        let files = self.groups.files.entry(group).or_default();
        self.writing.append(group, files, copied, index)?;
        self.report.records += 1;
        Ok(())
    }

    /// The group's log so far is unnecessary. It continues in a new file: numbers are never used twice.
    fn reset(&mut self, group: GroupId) {
        if self.groups.files.get(&group).is_none_or(GroupFiles::is_blank) {
            return;
        }
        self.drop_group(group);
        let files = self.groups.files.get_mut(&group).expect("looked up above");
        self.writing.begin_file(group, files);
    }

    fn drop_group(&mut self, group: GroupId) {
        let Some(files) = self.groups.files.get_mut(&group) else {
            return;
        };
        let before = || Some(files.clone());
        self.report.before.entry(group).or_insert_with(before);
        let void = files.clear().into_iter().map(|number| (group, number));
        self.report.void.extend(void);
        self.writing.forget(group);
    }
}
