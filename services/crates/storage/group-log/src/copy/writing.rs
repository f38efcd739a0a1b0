//! The files that a copy pass writes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use quorate_journal::Lsn;
use quorate_types::GroupId;

use crate::copy::pending::{Pending, Spare};
use crate::core::Core;
use crate::format::{self, FILE_HEAD_BYTES, Header, LogLocation};
use crate::group_files::GroupFiles;

/// Records on their way into files, and the files to sync.
pub(crate) struct Writing<'a> {
    core: &'a Core,
    pending: BTreeMap<GroupId, Pending>,
    pending_bytes: usize,
    pub spare: Spare,
    dirty: BTreeSet<(GroupId, u32)>,
    new_files: BTreeSet<GroupId>,
    /// Full files, with their lengths.
    closed: Vec<(GroupId, u32, u32)>,
    pub written_bytes: u64,
    pub moved: BTreeMap<GroupId, Vec<(Lsn, LogLocation)>>,
}

/// One record to copy.
pub(crate) struct Copied<'a> {
    pub lsn: Lsn,
    pub kind: u8,
    pub head: &'a [u8],
    pub payload: &'a [u8],
    pub payload_crc: u32,
}

impl<'a> Writing<'a> {
    pub fn new(core: &'a Core, spare: Spare) -> Self {
        Self {
            core,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            spare,
            dirty: BTreeSet::new(),
            new_files: BTreeSet::new(),
            closed: Vec::new(),
            written_bytes: 0,
            moved: BTreeMap::new(),
        }
    }

    pub fn has_pending(&self, group: GroupId) -> bool {
        self.pending.contains_key(&group)
    }

    pub fn append(
        &mut self,
        group: GroupId,
        files: &mut GroupFiles,
        copied: &Copied<'_>,
        index: u64,
    ) -> io::Result<()> {
        let Copied { head, payload, .. } = *copied;
        let body_len = (head.len() + payload.len()) as u32;
        let end = u64::from(files.end) + u64::from(format::stride(body_len));
        let is_full = end > u64::from(self.core.options.file_bytes) && files.end > FILE_HEAD_BYTES;
        if files.files.is_empty() || is_full {
            self.flush_group(group)?;
            if let Some(full) = files.files.back() {
                self.closed.push((group, full.number, files.end));
            }
            self.begin_file(group, files);
        }
        let file = files.files.back_mut().expect("there is a file");
        let header = Header {
            lsn: copied.lsn,
            body_len,
            payload_crc: copied.payload_crc,
            position: files.end,
            head_len: head.len() as u16,
            kind: copied.kind,
        };
        let pending = match self.pending.entry(group) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(none) => {
                self.dirty.insert((group, file.number));
                none.insert(Pending::new(file.number, self.spare.image(files.end)))
            }
        };
        let header_bytes = header.encode(&self.core.seal(group, file.number), head, payload);
        for part in [&header_bytes[..], head, payload] {
            pending.image.push(part);
        }
        files.end += format::stride(body_len);
        pending.image.pad_to(u64::from(files.end));
        pending.moved.push((copied.lsn, header.place(file.number)));
        let is_long = pending.image.is_full();
        self.pending_bytes += format::stride(body_len) as usize;
        file.last_lsn = copied.lsn;
        file.last_index = file.last_index.max(index);
        if self.pending_bytes > self.core.options.pending_bytes {
            self.flush()?;
        } else if is_long {
            self.flush_group(group)?;
        }
        Ok(())
    }

    pub fn begin_file(&mut self, group: GroupId, files: &mut GroupFiles) {
        let number = files.begin_file();
        let mut image = self.spare.image(0);
        image.push(&format::encode_file_head(self.core.salt, group, number));
        let pending = Pending::new(number, image);
        self.pending_bytes += pending.bytes();
        self.pending.insert(group, pending);
        self.dirty.insert((group, number));
        self.new_files.insert(group);
    }

    /// The group's files so far are void.
    pub fn forget(&mut self, group: GroupId) {
        self.moved.remove(&group);
        if let Some(pending) = self.pending.remove(&group) {
            self.pending_bytes -= pending.bytes();
        }
        self.dirty.retain(|(of, _)| *of != group);
        self.closed.retain(|(of, ..)| *of != group);
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(group) = self.pending.keys().next().copied() {
            self.flush_group(group)?;
        }
        Ok(())
    }

    fn flush_group(&mut self, group: GroupId) -> io::Result<()> {
        let Some(mut pending) = self.pending.remove(&group) else {
            return Ok(());
        };
        self.pending_bytes -= pending.bytes();
        self.written_bytes += pending.bytes() as u64;
        let disk = &self.core.disk;
        if pending.image.written() == 0 {
            disk.make_dir(&disk.group_dir(group))?;
        }
        let path = disk.path(group, pending.file);
        {
            let _alone = self.core.pages.lock().expect("pages");
            disk.write_image(&path, &mut pending.image)?;
        }
        self.moved.entry(group).or_default().append(&mut pending.moved);
        self.spare.put_back(pending.image);
        Ok(())
    }

    /// Writes everything pending and makes it durable: contents first, then the folders' entries.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let disk = &self.core.disk;
        for (group, file, end) in &self.closed {
            // Whole pages were written, and an earlier attempt at this pass may have written further.
            disk.truncate(&disk.path(*group, *file), u64::from(*end))?;
            // Its length must be durable, even with nothing new in it: the manifest no longer states it.
            self.dirty.insert((*group, *file));
        }
        for (group, file) in &self.dirty {
            disk.sync(&disk.path(*group, *file))?;
        }
        for group in &self.new_files {
            if disk.group_dir(*group).exists() {
                disk.sync_dir(&disk.group_dir(*group))?;
            }
        }
        if self.new_files.is_empty() {
            Ok(())
        } else {
            disk.sync_dir(&disk.dir)
        }
    }
}
