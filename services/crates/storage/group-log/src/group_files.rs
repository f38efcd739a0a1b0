//! Files of one group.

use std::collections::VecDeque;

use quorate_journal::Lsn;
use quorate_types::Index;

use crate::format::FILE_HEAD_BYTES;

/// A group's files, oldest first. Their numbers are dense and never used twice while the group exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFiles {
    pub files: VecDeque<FileReach>,
    /// Position of the next record in the last file.
    pub end: u32,
    pub next_number: u32,
}

/// The last records of a file, which decide when it can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileReach {
    pub number: u32,
    pub last_index: Index,
    pub last_lsn: Lsn,
}

impl Default for GroupFiles {
    fn default() -> Self {
        Self {
            files: VecDeque::new(),
            end: FILE_HEAD_BYTES,
            next_number: 1,
        }
    }
}

impl GroupFiles {
    pub fn begin_file(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.end = FILE_HEAD_BYTES;
        self.files.push_back(FileReach {
            number,
            last_index: 0,
            last_lsn: 0,
        });
        number
    }

    /// Removes the files that a base at `index`, with the record `lsn`, makes unnecessary; never the last.
    pub fn trim(&mut self, index: Index, lsn: Lsn) -> Vec<u32> {
        let mut freed = Vec::new();
        while self.files.len() > 1 {
            let oldest = self.files[0];
            if oldest.last_index > index || oldest.last_lsn >= lsn {
                break;
            }
            self.files.pop_front();
            freed.push(oldest.number);
        }
        freed
    }

    /// Whether a base at `index`, with the record `lsn`, makes all files unnecessary.
    pub fn is_covered(&self, index: Index, lsn: Lsn) -> bool {
        let is_covered = |file: &FileReach| file.last_index <= index && file.last_lsn < lsn;
        self.files.iter().all(is_covered)
    }

    /// Whether there is one file, without a record.
    pub fn is_blank(&self) -> bool {
        self.files.len() == 1 && self.end == FILE_HEAD_BYTES
    }

    /// Removes all files and answers their numbers; the next file has a new number.
    pub fn clear(&mut self) -> Vec<u32> {
        self.end = FILE_HEAD_BYTES;
        self.files.drain(..).map(|file| file.number).collect()
    }
}
