//! Files past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::pages::{PAGE, Pages};
use crate::record::PAGE_BYTES;

/// A file that is written past the page cache, if the file system allows it.
///
/// Its bytes are written once and hardly ever read: in the page cache they would only cost memory and a copy.
pub struct DirectFile {
    direct: File,
    /// For reads of any length, through the page cache; the kernel keeps both views the same.
    cached: File,
}

impl DirectFile {
    pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<DirectFile> {
        let cached = options.open(path)?;
        let flag = rustix::fs::OFlags::DIRECT.bits() as i32;
        let direct = match options.truncate(false).custom_flags(flag).open(path) {
            // The file system has no direct writes.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => cached.try_clone()?,
            opened => opened?,
        };
        Ok(DirectFile { direct, cached })
    }

    /// Takes the blocks of `bytes` from the free space.
    pub fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.direct, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            // Without allocation, a full disk is noticed when zeros are written; still before any record.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn sync(&self) -> io::Result<()> {
        self.direct.sync_data()
    }

    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.direct.metadata()?.len())
    }

    /// Position, length and memory address of `pages` must be multiples of a page.
    pub fn write_pages(&self, pages: &[u8], position: u64) -> io::Result<()> {
        assert!(is_whole(pages, position), "whole pages are written");
        self.direct.write_all_at(pages, position)
    }

    /// Reads the pages around `bytes`, and writes them with `bytes` in them. The caller excludes other writers of them.
    pub fn patch(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let start = position - position % PAGE_BYTES;
        let end = (position + bytes.len() as u64).next_multiple_of(PAGE_BYTES);
        let mut pages = Pages::new();
        pages.resize((end - start) as usize, 0);
        // Only the edges are read: the device may be unable to read the pages in between.
        let there = end.min(self.bytes()?);
        let edges = [start, end - PAGE_BYTES];
        for edge in &edges[usize::from(edges[0] == edges[1])..] {
            let len = there.saturating_sub(*edge).min(PAGE_BYTES) as usize;
            let from = (*edge - start) as usize;
            self.read_at(&mut pages[from..from + len], *edge)?;
        }
        let from = (position - start) as usize;
        pages[from..from + bytes.len()].copy_from_slice(bytes);
        self.write_pages(&pages, start)
    }

    pub fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        let file = if is_whole(buffer, position) {
            &self.direct
        } else {
            &self.cached
        };
        file.read_exact_at(buffer, position)
    }
}

fn is_whole(bytes: &[u8], position: u64) -> bool {
    let aligned = bytes.as_ptr().addr().is_multiple_of(PAGE);
    aligned && bytes.len().is_multiple_of(PAGE) && position.is_multiple_of(PAGE_BYTES)
}
