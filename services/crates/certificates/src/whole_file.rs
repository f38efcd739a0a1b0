//! Files that are written whole or not at all, so that a crash leaves the old one, the new one, or none.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Takes the place of a file that may be there.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let beside = write_beside(path, text, mode)?;
    std::fs::rename(&beside, path)?;
    sync_folder(path)
}

/// A file that is there already is left as it is.
pub fn create(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let beside = write_beside(path, text, mode)?;
    // Unlike a rename, it refuses a name that is taken.
    let linked = std::fs::hard_link(&beside, path);
    std::fs::remove_file(&beside)?;
    linked?;
    sync_folder(path)
}

fn write_beside(path: &Path, text: &str, mode: u32) -> io::Result<PathBuf> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // A file left by a crash may have another mode.
    if let Err(error) = std::fs::remove_file(&beside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(beside)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
