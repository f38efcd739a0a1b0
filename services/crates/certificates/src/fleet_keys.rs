//! The fleet's keys, as the operator gives them: one to a line. The first is in use, and the others still open what they
//! encrypted. So a key is replaced while the fleet runs (`docs/operating/fleet-key.md`).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fleet_key::{FleetKey, OpenError};
use crate::whole_file;

/// Keys at a time: the one in use, and those that are being replaced.
const KEYS_MAX: usize = 4;

/// Each of them makes its holder a coordinator of the fleet.
#[derive(Debug)]
pub struct FleetKeys {
    /// Not empty.
    keys: Vec<FleetKey>,
}

/// The keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FleetKeysError {
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("line {0} is no fleet's key: qfk_ and 64 hexadecimal digits")]
    Line(usize),
    #[error("there must be 1 to {KEYS_MAX} keys, one to a line")]
    Count,
}

/// Something sealed, open again.
pub struct Opened {
    pub plaintext: Vec<u8>,
    /// It was sealed with the key in use, not with one that is being replaced.
    pub is_current: bool,
}

impl FleetKeys {
    /// A new key, in a file that must not exist yet. Nobody else may read it.
    pub fn create(path: &Path) -> Result<Self, FleetKeysError> {
        let key = FleetKey::generate();
        let written = whole_file::create(path, &format!("{}\n", key.text()), 0o600);
        written.map_err(|error| of_file(path, &error))?;
        Ok(Self { keys: vec![key] })
    }

    /// Reads a file that nobody else may read.
    pub fn load(path: &Path) -> Result<Self, FleetKeysError> {
        let text = std::fs::read_to_string(path).map_err(|error| of_file(path, &error))?;
        let metadata = std::fs::metadata(path).map_err(|error| of_file(path, &error))?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(of_file(
                path,
                &format!("mode {mode:04o} lets others read it: chmod 600 it"),
            ));
        }
        Self::parse(&text).map_err(|error| of_file(path, &error))
    }

    /// One key to a line; empty lines and lines that begin with # are left out.
    pub fn parse(text: &str) -> Result<Self, FleetKeysError> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if keys.len() == KEYS_MAX {
                return Err(FleetKeysError::Count);
            }
            keys.push(FleetKey::parse(line).ok_or(FleetKeysError::Line(number))?);
        }
        if keys.is_empty() {
            return Err(FleetKeysError::Count);
        }
        Ok(Self { keys })
    }

    /// The key in use.
    pub fn current(&self) -> &FleetKey {
        &self.keys[0]
    }

    pub fn all(&self) -> impl Iterator<Item = &FleetKey> {
        self.keys.iter()
    }

    /// Encrypts for a purpose with the key in use.
    pub fn seal(&self, purpose: &str, plaintext: &[u8]) -> Vec<u8> {
        self.current().seal(purpose, plaintext)
    }

    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Opened, OpenError> {
        for (at, key) in self.keys.iter().enumerate() {
            match key.open(purpose, sealed) {
                Ok(plaintext) => {
                    return Ok(Opened {
                        plaintext,
                        is_current: at == 0,
                    });
                }
                Err(OpenError::OtherKey) => {}
                Err(error) => return Err(error),
            }
        }
        Err(OpenError::OtherKey)
    }
}

fn of_file(path: &Path, problem: &impl ToString) -> FleetKeysError {
    FleetKeysError::File {
        path: path.to_path_buf(),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_read_back_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.key");
        let keys = FleetKeys::create(&path).unwrap();
        let sealed = keys.seal("test", b"secret");
        let again = FleetKeys::create(&path).unwrap_err();
        assert!(again.to_string().contains("exists"), "{again}");
        let opened = FleetKeys::load(&path).unwrap().open("test", &sealed).unwrap();
        assert!(opened.is_current && opened.plaintext == b"secret");
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn files_that_others_may_read_or_that_hold_no_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.key");
        FleetKeys::create(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = FleetKeys::load(&path).unwrap_err().to_string();
        assert!(refused.contains("mode 0644"), "{refused}");
        assert!(FleetKeys::load(&folder.path().join("none")).is_err());
        let key = FleetKey::generate().text();
        for (text, expected) in [
            (String::new(), "1 to 4 keys"),
            ("# none\n".into(), "1 to 4 keys"),
            (format!("{key}\n").repeat(5), "1 to 4 keys"),
            (format!("{key}\n\nqfk_00\n"), "line 3 is no fleet's key"),
        ] {
            let refused = FleetKeys::parse(&text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text:?}: {refused}");
        }
    }

    #[test]
    fn a_key_is_replaced_in_steps() {
        let (old, new) = (FleetKey::generate(), FleetKey::generate());
        let (old, new) = (old.text(), new.text());
        let keys = |lines: &[&str]| FleetKeys::parse(&lines.join("\n")).unwrap();
        let sealed = keys(&[&old]).seal("test", b"secret");
        let opened = keys(&["# new", &new, &old]).open("test", &sealed).unwrap();
        assert!(!opened.is_current && opened.plaintext == b"secret");
        let again = keys(&[&new, &old]).seal("test", &opened.plaintext);
        assert!(keys(&[&new]).open("test", &again).unwrap().is_current);
        assert_eq!(
            keys(&[&new]).open("test", &sealed).err(),
            Some(OpenError::OtherKey)
        );
    }
}
