//! The journal's calls to the file system, each behind the fault hook of tests.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the journal is about to do to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Of records.
    Write {
        bytes: usize,
    },
    /// Of records.
    Sync,
    /// Zeros written and synced, or the directory synced, around a segment's use.
    Prepare,
    Allocate {
        bytes: u64,
    },
    Rename,
    Read,
}

/// For tests: an error returned here is what the operation fails with.
pub trait Faults: Send + Sync {
    fn before(&self, operation: Operation) -> io::Result<()>;
}

/// A directory, through the fault hook.
#[derive(Clone)]
pub(crate) struct Disk {
    pub dir: PathBuf,
    faults: Option<Arc<dyn Faults>>,
}

/// Pieces of one `pwritev`; the kernel's IOV_MAX.
const SLICES_MAX: usize = 1024;
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

    pub fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.dir.join(name))
    }

    /// A new file of `bytes` whose blocks are taken from the free space.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<File> {
        self.check(Operation::Allocate { bytes })?;
        let path = self.dir.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            // Without it a full disk is met later, when zeros are written; still before any record.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(file),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes zeros over `range` and syncs them; overwriting written blocks needs no metadata in a later sync.
    pub fn fill(&self, file: &File, range: std::ops::Range<u64>) -> io::Result<()> {
        self.check(Operation::Prepare)?;
        let zeros = vec![0; FILL_BYTES];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(FILL_BYTES as u64) as usize;
            write_all(file, &mut [IoSlice::new(&zeros[..len])], at)?;
            at += len as u64;
        }
        file.sync_data()
    }

    pub fn write_at(&self, file: &File, slices: &mut [IoSlice<'_>], position: u64) -> io::Result<()> {
        let bytes = slices.iter().map(|s| s.len()).sum();
        self.check(Operation::Write { bytes })?;
        write_all(file, slices, position)
    }

    pub fn read_at(&self, file: &File, buffer: &mut [u8], position: u64) -> io::Result<()> {
        self.check(Operation::Read)?;
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
    }

    pub fn sync(&self, file: &File) -> io::Result<()> {
        self.check(Operation::Sync)?;
        file.sync_data()
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

    /// Bytes that this user may still write on the directory's file system.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

fn write_all(file: &File, mut slices: &mut [IoSlice<'_>], mut position: u64) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let some = slices.len().min(SLICES_MAX);
        match rustix::io::pwritev(file, &slices[..some], position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                position += n as u64;
                IoSlice::advance_slices(&mut slices, n);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
