//! Calls to the file system, each behind the fault hook of tests.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_journal::record::PAGE_BYTES;
use quorate_journal::{DirectFile, Faults, Image, Operation, Pages, Source};
use quorate_types::GroupId;

#[derive(Clone)]
pub struct Disk {
    pub dir: PathBuf,
    faults: Option<Arc<dyn Faults>>,
}

impl Disk {
    pub fn new(dir: &Path, faults: Option<Arc<dyn Faults>>) -> Self {
        Self {
            dir: dir.to_owned(),
            faults,
        }
    }

    pub fn check(&self, operation: Operation) -> io::Result<()> {
        self.faults
            .as_ref()
            .map_or(Ok(()), |faults| faults.before(operation))
    }

    pub fn group_dir(&self, group: GroupId) -> PathBuf {
        self.dir.join(group.0.to_string())
    }

    pub fn path(&self, group: GroupId, file: u32) -> PathBuf {
        self.group_dir(group).join(format!("{file:08x}"))
    }

    /// Writes a small file, new or over an old one.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.check(Operation::Write { bytes: bytes.len() })?;
        std::fs::write(path, bytes)
    }

    /// Writes the image's new bytes behind the file's; the file is created if the image begins at 0.
    pub fn write_image(&self, path: &Path, image: &mut Image) -> io::Result<()> {
        let written = image.written();
        self.check(Operation::Write {
            bytes: (image.end() - written) as usize,
        })?;
        let is_new = written == 0;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(is_new).truncate(is_new);
        let file = DirectFile::open(&mut options, path)?;
        let tail_len = (written % PAGE_BYTES) as usize;
        if tail_len > 0 {
            let mut page = Pages::new();
            page.resize(PAGE_BYTES as usize, 0);
            let page_at = written - tail_len as u64;
            // A file of an earlier version ends within the page: no whole page can be read.
            if file.read_at(&mut page, page_at).is_err() {
                file.read_at(&mut page[..tail_len], page_at)?;
            }
            image.set_before(&page[..tail_len]);
        }
        image.write(|pages, position| file.write_pages(pages, position))
    }

    /// Writes over bytes in the middle of a file, and no others. A full file ends with its last record, and a whole page
    /// would extend it. So the bytes go through the page cache, and are written before the next write past it.
    pub fn patch(&self, path: &Path, bytes: &[u8], position: u64) -> io::Result<()> {
        self.check(Operation::Write { bytes: bytes.len() })?;
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all_at(bytes, position)
    }

    pub fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.check(Operation::Write { bytes: 0 })?;
        OpenOptions::new().write(true).open(path)?.set_len(bytes)
    }

    pub fn sync(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Sync)?;
        // A new descriptor also syncs writes of earlier ones, and reports errors that none of them has seen.
        OpenOptions::new().write(true).open(path)?.sync_data()
    }

    pub fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Prepare)?;
        File::open(path)?.sync_all()
    }

    pub fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Prepare)?;
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Operation::Rename)?;
        std::fs::rename(from, to)
    }

    /// Removing a missing file is no error.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Rename)?;
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(OpenFile {
            disk: self.clone(),
            file,
            bytes,
        })
    }

    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// A file, read through the fault hook.
pub struct OpenFile {
    disk: Disk,
    file: File,
    bytes: u64,
}

impl OpenFile {
    /// Makes the next reads go to the device itself.
    pub fn forget_cached(&self) {
        // Only advice: if the kernel ignores it, damage is found later.
        let _not_taken = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed).is_err();
    }
}

impl Source for OpenFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        self.disk.check(Operation::Read)?;
        self.file.read_exact_at(buffer, position)
    }
}
