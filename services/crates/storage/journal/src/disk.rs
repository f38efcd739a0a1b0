//! The journal's calls to the file system, each behind the fault hook of tests.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::direct::DirectFile;
use crate::pages::{PAGE, Pages};
use crate::record::PAGE_BYTES;

/// An operation on the disk that is about to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Writes records.
    Write {
        bytes: usize,
    },
    /// Syncs records.
    Sync,
    /// Writes and syncs zeros, or syncs the directory, around a segment's use.
    Prepare,
    Allocate {
        bytes: u64,
    },
    Rename,
    Read,
}

/// For tests: the operation fails with the error returned here.
pub trait Faults: Send + Sync {
    fn before(&self, operation: Operation) -> io::Result<()>;
}

/// A directory, through the fault hook.
#[derive(Clone)]
pub(crate) struct Disk {
    pub dir: PathBuf,
    faults: Option<Arc<dyn Faults>>,
}

const FILL_BYTES: usize = 1 << 20;

impl Disk {
    pub fn new(dir: &Path, faults: Option<Arc<dyn Faults>>) -> Self {
        Self {
            dir: dir.to_owned(),
            faults,
        }
    }

    fn check(&self, operation: Operation) -> io::Result<()> {
        self.faults
            .as_ref()
            .map_or(Ok(()), |faults| faults.before(operation))
    }

    pub fn open(&self, name: &str) -> io::Result<DirectFile> {
        let mut options = OpenOptions::new();
        DirectFile::open(options.read(true).write(true), &self.dir.join(name))
    }

    /// A new file of `bytes` whose blocks are taken from the free space.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<DirectFile> {
        self.check(Operation::Allocate { bytes })?;
        let path = self.dir.join(name);
        File::create(&path)?;
        let file = DirectFile::open(OpenOptions::new().read(true).write(true), &path)?;
        file.allocate(bytes)?;
        Ok(file)
    }

    /// Writes zeros over `range` and syncs them; overwriting written blocks needs no metadata in a later sync.
    pub fn fill(&self, file: &DirectFile, range: Range<u64>) -> io::Result<()> {
        self.check(Operation::Prepare)?;
        let mut zeros = Pages::new();
        zeros.resize(FILL_BYTES, 0);
        let whole = range.start.next_multiple_of(PAGE_BYTES).min(range.end);
        file.patch(&zeros[..(whole - range.start) as usize], range.start)?;
        let mut at = whole;
        while range.end - at >= PAGE_BYTES {
            let len = (range.end - at).min(FILL_BYTES as u64) as usize;
            let len = len - len % PAGE;
            file.write_pages(&zeros[..len], at)?;
            at += len as u64;
        }
        file.patch(&zeros[..(range.end - at) as usize], at)?;
        file.sync()
    }

    /// Writes whole pages of records.
    pub fn write_pages(&self, file: &DirectFile, pages: &[u8], position: u64) -> io::Result<()> {
        self.check(Operation::Write { bytes: pages.len() })?;
        file.write_pages(pages, position)
    }

    /// Writes bytes of records that share their pages with other records.
    pub fn patch(&self, file: &DirectFile, bytes: &[u8], position: u64) -> io::Result<()> {
        self.check(Operation::Write { bytes: bytes.len() })?;
        file.patch(bytes, position)
    }

    pub fn read_at(&self, file: &DirectFile, buffer: &mut [u8], position: u64) -> io::Result<()> {
        self.check(Operation::Read)?;
        file.read_at(buffer, position)
    }

    pub fn sync(&self, file: &DirectFile) -> io::Result<()> {
        self.check(Operation::Sync)?;
        file.sync()
    }

    /// Makes renames and creations in the directory durable.
    pub fn sync_dir(&self) -> io::Result<()> {
        self.check(Operation::Prepare)?;
        File::open(&self.dir)?.sync_all()
    }

    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check(Operation::Rename)?;
        std::fs::rename(self.dir.join(from), self.dir.join(to))
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.dir.join(name))
    }

    /// Bytes free to this user on the directory's file system.
    pub fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.dir)
    }
}

/// Bytes free to this user on a directory's file system.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
