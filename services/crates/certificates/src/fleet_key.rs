//! A key of the fleet. Coordinators prove themselves by it to one another, and encrypt by it what is secret in their state.

use std::fmt;

use rcgen::KeyPair;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use crate::authority::Authority;

/// A key in text: this, and 64 hex digits.
const PREFIX: &str = "qfk_";
const KEY_BYTES: usize = 32;
/// The first bytes of what is sealed: the key that it was sealed with.
const ID_BYTES: usize = 4;

/// A key for each purpose is derived from it, so that none tells another.
pub struct FleetKey {
    secret: [u8; KEY_BYTES],
    id: [u8; ID_BYTES],
}

/// Why something sealed stays closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("it was encrypted with another key than the one given")]
    OtherKey,
    #[error("it is damaged, or was made for something else")]
    Damaged,
}

impl FleetKey {
    /// A new one.
    pub fn generate() -> Self {
        Self::of(rand::random())
    }

    /// Reads it as [`FleetKey::text`] gives it. None: it is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        if digits.len() != 2 * KEY_BYTES {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..KEY_BYTES).map(byte).collect();
        Some(Self::of(bytes?.try_into().ok()?))
    }

    /// The key itself: for a file that nobody else may read.
    pub fn text(&self) -> String {
        let digits: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PREFIX}{digits}")
    }

    fn of(secret: [u8; KEY_BYTES]) -> Self {
        let mut key = Self {
            secret,
            id: [0; ID_BYTES],
        };
        let name = key.derived("name of the key");
        key.id.copy_from_slice(&name[..ID_BYTES]);
        key
    }

    /// Encrypts for a purpose. Each call gives other bytes.
    pub fn seal(&self, purpose: &str, plaintext: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut sealed = [&self.id[..], &nonce].concat();
        let mut contents = plaintext.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let done = (self.sealing(purpose)).seal_in_place_append_tag(nonce, Aad::empty(), &mut contents);
        done.expect("it is shorter than the cipher's bound");
        sealed.append(&mut contents);
        sealed
    }

    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (id, rest) = sealed.split_at_checked(ID_BYTES).ok_or(OpenError::Damaged)?;
        if id != self.id {
            return Err(OpenError::OtherKey);
        }
        let (nonce, contents) = rest.split_at_checked(NONCE_LEN).ok_or(OpenError::Damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| OpenError::Damaged)?;
        let mut contents = contents.to_vec();
        let opened = self
            .sealing(purpose)
            .open_in_place(nonce, Aad::empty(), &mut contents);
        opened
            .map(|plaintext| plaintext.to_vec())
            .map_err(|_| OpenError::Damaged)
    }

    /// The authority of the coordinators' own links: every holder of the key makes the same.
    pub fn members_authority(&self) -> Authority {
        // PKCS #8 of an Ed25519 key is a fixed beginning and the seed.
        const BEGINNING: [u8; 16] = [
            0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
        ];
        let der = [&BEGINNING[..], &self.derived("authority of members")].concat();
        let key = KeyPair::try_from(der).expect("any seed is a key");
        Authority::of_key(key)
    }

    fn sealing(&self, purpose: &str) -> LessSafeKey {
        let key = UnboundKey::new(&AES_256_GCM, &self.derived(&format!("seal {purpose}")));
        LessSafeKey::new(key.expect("it has the cipher's length"))
    }

    fn derived(&self, purpose: &str) -> [u8; KEY_BYTES] {
        struct Length;
        impl KeyType for Length {
            fn len(&self) -> usize {
                KEY_BYTES
            }
        }
        let mut key = [0; KEY_BYTES];
        let info = ["quorate ", purpose].map(str::as_bytes);
        let extracted = Salt::new(HKDF_SHA256, &[]).extract(&self.secret);
        let filled = extracted
            .expand(&info, Length)
            .and_then(|output| output.fill(&mut key));
        filled.expect("it is one block long");
        key
    }
}

impl fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let key = FleetKey::generate();
        let sealed = key.seal("test", b"secret");
        let read = FleetKey::parse(&key.text()).unwrap();
        assert_eq!(read.open("test", &sealed).unwrap(), b"secret");
        for text in [
            String::new(),
            "qfk_".into(),
            "qfk_00".into(),
            format!("qfk_{}", "g".repeat(64)),
            format!("qfk_{}", "é".repeat(32)),
            format!("{} ", key.text()),
        ] {
            assert!(FleetKey::parse(&text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn sealed_bytes_open_for_their_key_and_purpose_alone() {
        let (key, other) = (FleetKey::of([1; 32]), FleetKey::of([2; 32]));
        let sealed = key.seal("tokens", b"secret");
        assert_ne!(sealed, key.seal("tokens", b"secret"), "never the same");
        assert!(!sealed.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(key.open("tokens", &sealed).unwrap(), b"secret");
        assert_eq!(other.open("tokens", &sealed), Err(OpenError::OtherKey));
        assert_eq!(key.open("other", &sealed), Err(OpenError::Damaged));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let expected = if at < ID_BYTES {
                OpenError::OtherKey
            } else {
                OpenError::Damaged
            };
            assert_eq!(key.open("tokens", &changed), Err(expected), "byte {at}");
            let short = key.open("tokens", &sealed[..at]);
            assert!(short.is_err(), "cut to {at}");
        }
    }
}
