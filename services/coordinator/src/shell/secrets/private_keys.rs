//! The fleet's private keys: encrypted in the state, which all coordinators have, and open in this process.

use std::path::Path;
use std::sync::Arc;

use quorate_certificates::{Authority, FleetKeys};
use serde::{Deserialize, Serialize};

use super::peer_key::PeerKey;
use crate::exit::Failure;
use quorate_coordinator_core::command::FleetSecrets;

/// The use of the fleet's key: what it encrypts for another use is not opened.
const PURPOSE: &str = "private keys";
/// Releases before the quorum kept the keys in the folder, as they are.
const AUTHORITY_KEY_FILE: &str = "ca-key.pem";
const AUTHORITY_FILE: &str = "ca.pem";
const PEER_KEY_FILE: &str = "peer-token-key.pem";

pub struct PrivateKeys {
    pub authority: Arc<Authority>,
    pub peer_key: PeerKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    authority_key_pem: String,
    peer_key_pem: String,
}

impl PrivateKeys {
    /// Makes the keys of a fleet that begins.
    pub fn generate() -> Self {
        Self {
            authority: Arc::new(Authority::generate()),
            peer_key: PeerKey::generate(),
        }
    }

    /// Reads the keys that an earlier release left in the folder. None: it left none.
    pub fn of_files(data_dir: &Path) -> Result<Option<Self>, Failure> {
        let read = |name: &str| match std::fs::read_to_string(data_dir.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_file(data_dir, name, &error)),
        };
        let (key, certificate) = (read(AUTHORITY_KEY_FILE)?, read(AUTHORITY_FILE)?);
        let (Some(key), Some(certificate), Some(peer_key)) = (key, certificate, read(PEER_KEY_FILE)?) else {
            return Ok(None);
        };
        let authority =
            Authority::of_pem(&key, &certificate).map_err(|e| of_file(data_dir, AUTHORITY_KEY_FILE, &e))?;
        let peer_key = PeerKey::of_pem(&peer_key).map_err(|e| of_file(data_dir, PEER_KEY_FILE, &e))?;
        Ok(Some(Self {
            authority: Arc::new(authority),
            peer_key,
        }))
    }

    /// The files of an earlier release are needed no more once the keys are agreed. The certificate stays: it is for people.
    pub fn remove_files(data_dir: &Path) -> Result<(), Failure> {
        for name in [AUTHORITY_KEY_FILE, PEER_KEY_FILE] {
            match std::fs::remove_file(data_dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(of_file(data_dir, name, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the certificate of the authority beside the log, for people and tools.
    pub fn show_authority(&self, data_dir: &Path) -> Result<(), Failure> {
        let path = data_dir.join(AUTHORITY_FILE);
        let pem = self.authority.certificate_pem();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == pem) {
            return Ok(());
        }
        let beside = data_dir.join("ca.pem.new");
        let written = std::fs::write(&beside, pem).and_then(|()| std::fs::rename(&beside, &path));
        written.map_err(|error| of_file(data_dir, AUTHORITY_FILE, &error))
    }

    /// Encrypts them for the state.
    pub fn seal(&self, keys: &FleetKeys) -> FleetSecrets {
        let contents = Contents {
            authority_key_pem: self.authority.key_pem(),
            peer_key_pem: self.peer_key.pem(),
        };
        let plaintext = serde_json::to_vec(&contents).expect("two strings serialise");
        let sealed = keys.seal(PURPOSE, &plaintext);
        FleetSecrets {
            authority_pem: self.authority.certificate_pem().into(),
            peer_keys: self.peer_key.jwks().clone(),
            sealed: sealed.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Decrypts them. The second value: whether they were encrypted with the key in use.
    pub fn open(keys: &FleetKeys, secrets: &FleetSecrets) -> Result<(Self, bool), Failure> {
        let wrong = |problem: String| {
            Failure::configuration(format!(
                "the fleet's private keys stay closed: {problem}. Give the fleet's key that the other coordinators have \
                 (docs/operating/fleet-key.md). Nothing was changed"
            ))
        };
        let sealed = bytes_of(&secrets.sealed).ok_or_else(|| wrong("they are damaged in the log".into()))?;
        let opened = keys
            .open(PURPOSE, &sealed)
            .map_err(|error| wrong(error.to_string()))?;
        let contents: Contents =
            serde_json::from_slice(&opened.plaintext).map_err(|error| wrong(error.to_string()))?;
        let authority = Authority::of_pem(&contents.authority_key_pem, &secrets.authority_pem);
        let own = Self {
            authority: Arc::new(authority.map_err(|error| wrong(error.to_string()))?),
            peer_key: PeerKey::of_pem(&contents.peer_key_pem).map_err(wrong)?,
        };
        Ok((own, opened.is_current))
    }
}

fn of_file(data_dir: &Path, name: &str, problem: &impl ToString) -> Failure {
    Failure::disk(format!(
        "{}: {}",
        data_dir.join(name).display(),
        problem.to_string()
    ))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use quorate_certificates::FleetKey;

    use super::*;

    fn keys(keys: &[&FleetKey]) -> FleetKeys {
        let lines: Vec<String> = keys.iter().map(|key| key.text()).collect();
        FleetKeys::parse(&lines.join("\n")).unwrap()
    }

    #[test]
    fn the_state_holds_no_private_key_and_gives_the_same_keys_back() {
        let (own, key) = (PrivateKeys::generate(), FleetKey::generate());
        let sealed = own.seal(&keys(&[&key]));
        let text = serde_json::to_string(&sealed).unwrap();
        assert!(!text.contains("PRIVATE"), "{text}");
        let (opened, is_current) = PrivateKeys::open(&keys(&[&key]), &sealed).unwrap();
        assert!(is_current);
        assert_eq!(opened.authority.pin(), own.authority.pin());
        assert_eq!(opened.peer_key.jwks(), own.peer_key.jwks());

        let other = FleetKey::generate();
        let refused = PrivateKeys::open(&keys(&[&other]), &sealed).err().unwrap();
        assert!(
            refused.message.contains("docs/operating/fleet-key.md"),
            "{}",
            refused.message
        );
        let (_, is_current) = PrivateKeys::open(&keys(&[&other, &key]), &sealed).unwrap();
        assert!(!is_current);
    }

    #[test]
    fn damaged_keys_are_refused() {
        let (own, key) = (PrivateKeys::generate(), FleetKey::generate());
        let sealed = own.seal(&keys(&[&key]));
        let other = PrivateKeys::generate().seal(&keys(&[&key]));
        for damaged in [
            FleetSecrets {
                sealed: sealed.sealed[1..].into(),
                ..sealed.clone()
            },
            FleetSecrets {
                sealed: "é".repeat(20),
                ..sealed.clone()
            },
            FleetSecrets {
                sealed: sealed.sealed[..60].into(),
                ..sealed.clone()
            },
            FleetSecrets {
                authority_pem: other.authority_pem,
                ..sealed.clone()
            },
        ] {
            assert!(PrivateKeys::open(&keys(&[&key]), &damaged).is_err());
        }
    }

    #[test]
    fn keys_of_an_earlier_release_are_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        assert!(PrivateKeys::of_files(folder.path()).unwrap().is_none());
        let own = PrivateKeys::generate();
        std::fs::write(folder.path().join(AUTHORITY_KEY_FILE), own.authority.key_pem()).unwrap();
        std::fs::write(folder.path().join(PEER_KEY_FILE), own.peer_key.pem()).unwrap();
        own.show_authority(folder.path()).unwrap();
        let read = PrivateKeys::of_files(folder.path()).unwrap().unwrap();
        assert_eq!(read.authority.pin(), own.authority.pin());
        assert_eq!(read.peer_key.jwks(), own.peer_key.jwks());
        PrivateKeys::remove_files(folder.path()).unwrap();
        PrivateKeys::remove_files(folder.path()).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
