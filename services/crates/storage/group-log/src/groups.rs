//! Files and bases of all groups: what was copied, and what no group needs any more.

use std::collections::BTreeMap;

use quorate_journal::{Lsn, Reach, Sealed};
use quorate_types::{GroupId, Index};
use uuid::Uuid;

use crate::group_files::GroupFiles;
use crate::manifest::Entry;

pub(crate) struct Groups {
    pub files: BTreeMap<GroupId, GroupFiles>,
    /// The last durable base of each group: index, and lsn of its record.
    bases: BTreeMap<GroupId, (Index, Lsn)>,
}

/// Files of some groups as they were before a copy pass.
pub(crate) type Before = BTreeMap<GroupId, Option<GroupFiles>>;

impl Groups {
    pub fn new(files: BTreeMap<GroupId, GroupFiles>) -> Self {
        Self {
            files,
            bases: BTreeMap::new(),
        }
    }

    /// Notes a durable base; answers the numbers of the files that can go.
    pub fn trim(&mut self, group: GroupId, index: Index, lsn: Lsn) -> Vec<u32> {
        let base = self.bases.entry(group).or_insert((index, lsn));
        if base.1 <= lsn {
            *base = (index, lsn);
        }
        let files = self.files.get_mut(&group);
        files.map_or_else(Vec::new, |files| files.trim(index, lsn))
    }

    pub fn forget_base(&mut self, group: GroupId) {
        self.bases.remove(&group);
    }

    /// Whether a durable base covers this record, and everything before it in the group's log. The log then begins
    /// later, as it does when files are trimmed. `index`: of a batch, else 0.
    pub fn is_trimmed(&self, group: GroupId, index: Index, lsn: Lsn) -> bool {
        let Some((base_index, base_lsn)) = self.bases.get(&group).copied() else {
            return false;
        };
        let is_covered = |files: &GroupFiles| files.is_covered(base_index, base_lsn);
        index <= base_index && lsn < base_lsn && self.files.get(&group).is_none_or(is_covered)
    }

    /// The groups of a segment that no group needs any more; `None`: the segment must be copied.
    pub fn trimmed_segment(&self, segment: &Sealed) -> Option<Vec<GroupId>> {
        let reaches = segment.reaches()?;
        let group_of = |owner: u128| GroupId(Uuid::from_u128(owner));
        let is_trimmed = |(owner, reach): &(u128, Reach)| {
            self.is_trimmed(group_of(*owner), reach.last_place, reach.last_lsn)
        };
        let owners = reaches.iter().map(|(owner, _)| group_of(*owner));
        reaches.iter().all(is_trimmed).then(|| owners.collect())
    }

    pub fn manifest_entries(&self) -> Vec<Entry> {
        let entry = |(group, files): (&GroupId, &GroupFiles)| {
            let (first, last) = (files.files.front()?, files.files.back()?);
            Some(Entry {
                group: *group,
                first_file: first.number,
                last_file: last.number,
                end: files.end,
            })
        };
        self.files.iter().filter_map(entry).collect()
    }

    /// Removes and answers the groups without a file.
    pub fn take_empty(&mut self) -> Vec<GroupId> {
        let is_empty = |(_, files): &(&GroupId, &GroupFiles)| files.files.is_empty();
        let empty: Vec<GroupId> = self.files.iter().filter(is_empty).map(|(id, _)| *id).collect();
        for group in &empty {
            self.files.remove(group);
        }
        empty
    }

    /// Undoes a copy pass.
    pub fn restore(&mut self, before: Before) {
        for (group, files) in before {
            match files {
                Some(files) => self.files.insert(group, files),
                None => self.files.remove(&group),
            };
        }
    }
}
