//! The manifest: the files of the group logs that count. There are two copies, each replaced whole; the sound one with
//! the greater generation counts.

use std::io;

use quorate_journal::Lsn;
use quorate_types::GroupId;
use uuid::Uuid;

use crate::disk::Disk;

const MAGIC: [u8; 8] = *b"QGLOGM01";
const HEAD_BYTES: usize = 40;
const ENTRY_BYTES: usize = 32;
pub const NAMES: [&str; 2] = ["manifest-a", "manifest-b"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    pub generation: u64,
    pub salt: u64,
    /// The journal's records up to this one are in the group logs.
    pub copied_lsn: Lsn,
    pub groups: Vec<Entry>,
}

/// The durable part of one group's log: files `first_file..=last_file`, the last one up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub group: GroupId,
    pub first_file: u32,
    pub last_file: u32,
    pub end: u32,
}

impl Manifest {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + ENTRY_BYTES * self.groups.len() + 4);
        out.extend_from_slice(&MAGIC);
        for field in [self.generation, self.salt, self.copied_lsn] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&(self.groups.len() as u64).to_le_bytes());
        for entry in &self.groups {
            out.extend_from_slice(entry.group.0.as_bytes());
            for field in [entry.first_file, entry.last_file, entry.end, 0] {
                out.extend_from_slice(&field.to_le_bytes());
            }
        }
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if body.len() < HEAD_BYTES || body[..8] != MAGIC || crc32fast::hash(body).to_le_bytes() != crc {
            return None;
        }
        let u64_at = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("eight bytes"));
        let entries = body[HEAD_BYTES..].chunks_exact(ENTRY_BYTES);
        if entries.len() as u64 != u64_at(32) || !entries.remainder().is_empty() {
            return None;
        }
        let entry = |bytes: &[u8]| {
            let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            Entry {
                group: GroupId(Uuid::from_slice(&bytes[..16]).expect("sixteen bytes")),
                first_file: u32_at(16),
                last_file: u32_at(20),
                end: u32_at(24),
            }
        };
        Some(Self {
            generation: u64_at(8),
            salt: u64_at(16),
            copied_lsn: u64_at(24),
            groups: entries.map(entry).collect(),
        })
    }

    /// The manifest of the directory, or why it has none.
    pub fn load(disk: &Disk) -> io::Result<Result<Manifest, Absent>> {
        let mut is_there = false;
        let mut best: Option<Manifest> = None;
        for name in NAMES {
            match std::fs::read(disk.dir.join(name)) {
                Ok(bytes) => {
                    is_there = true;
                    let sound = Manifest::decode(&bytes);
                    if sound.is_none() {
                        tracing::error!(name, "a copy of the group logs' manifest is damaged");
                    }
                    let newer = sound.filter(|m| best.as_ref().is_none_or(|b| b.generation < m.generation));
                    best = newer.or(best);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let absent = if is_there { Absent::Damaged } else { Absent::New };
        Ok(best.ok_or(absent))
    }

    /// Replaces both copies, one after the other: one of them is whole at any moment.
    pub fn store(&self, disk: &Disk) -> io::Result<()> {
        let bytes = self.encode();
        for name in NAMES {
            let new = disk.dir.join("manifest-new");
            disk.write(&new, &bytes)?;
            disk.sync(&new)?;
            disk.rename(&new, &disk.dir.join(name))?;
            disk.sync_dir(&disk.dir)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    New,
    /// Both copies are damaged.
    Damaged,
}
