//! The server's identity: its number and credential, kept in a file that only its owner can read.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use quorate_types::ServerId;
use quorate_types::limits::INCARNATIONS_KEPT_MAX;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub server_id: ServerId,
    pub credential: String,
    /// Starts of the process since one that the coordinator has confirmed, that one first. By these the coordinator
    /// tells the folder from an older copy (`docs/internals/coordinator.md`).
    #[serde(default)]
    pub incarnations: Vec<String>,
    /// The greatest term of a coordinator that has led: a leader of an earlier one is refused, after a restart as well.
    #[serde(default)]
    pub coordinator_term: u64,
}

impl Identity {
    /// With one more start, not confirmed yet.
    pub fn started(&self, incarnation: &str) -> Self {
        let mut next = self.clone();
        if next.incarnations.len() >= INCARNATIONS_KEPT_MAX {
            // The first is the one that the coordinator knows for sure.
            next.incarnations.remove(1);
        }
        next.incarnations.push(incarnation.to_string());
        next
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_remembered_within_a_bound_and_the_confirmed_one_always() {
        let mut identity = Identity {
            server_id: ServerId(1),
            credential: String::new(),
            incarnations: vec!["confirmed".to_string()],
            coordinator_term: 3,
        };
        for n in 0..100 {
            identity = identity.started(&format!("i{n}"));
        }
        assert_eq!(identity.incarnations.len(), INCARNATIONS_KEPT_MAX);
        assert_eq!(identity.coordinator_term, 3);
        assert_eq!(identity.incarnations[0], "confirmed");
        assert_eq!(identity.incarnations.last().map(String::as_str), Some("i99"));
    }
}
