//! Who this server is: its number and credential, kept in a file that only its owner can read.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use quorate_types::ServerId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub server_id: ServerId,
    pub credential: String,
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("identity.json")
}

/// `None` before the server has registered for the first time.
pub fn load(data_dir: &Path) -> Result<Option<Identity>, String> {
    match std::fs::read(path(data_dir)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            format!(
                "{} is damaged ({error}); restore it, or wipe the data folder to join anew",
                path(data_dir).display()
            )
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path(data_dir).display())),
    }
}

/// Written beside and moved into place, so that it is never half there.
pub fn save(data_dir: &Path, identity: &Identity) -> io::Result<()> {
    let new = data_dir.join("identity.json.new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(&serde_json::to_vec_pretty(identity)?)?;
    file.sync_all()?;
    std::fs::rename(&new, path(data_dir))?;
    std::fs::File::open(data_dir)?.sync_all()
}
