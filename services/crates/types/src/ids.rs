//! Maps by numbers that identify something: groups, servers, connections, sessions.
//!
//! Such a map is looked into for each frame, so its hash is two multiplications. The hash is keyed for each process.
//! Clients choose some of the numbers, and must not be able to make them collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

pub type IdMap<K, V> = HashMap<K, V, IdState>;

/// The same for all maps of a process.
#[derive(Debug, Clone, Copy)]
pub struct IdState {
    keys: [u64; 2],
}

impl Default for IdState {
    fn default() -> Self {
        static KEYS: OnceLock<[u64; 2]> = OnceLock::new();
        let keys = *KEYS.get_or_init(|| {
            let random = RandomState::new();
            [0_u64, 1].map(|number| random.hash_one(number))
        });
        Self { keys }
    }
}

impl BuildHasher for IdState {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher {
            state: self.keys[0],
            key: self.keys[1] | 1,
        }
    }
}

/// Folds each word in by a full multiplication with what came before.
#[derive(Debug)]
pub struct IdHasher {
    state: u64,
    key: u64,
}

impl IdHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key ^ 0x9E37_79B9_7F4A_7C15);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.key);
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.fold(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        for byte in words.remainder() {
            self.fold(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.key);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Numbers that differ little must differ in the bits by which a map places them: the low ones and the top seven.
    #[test]
    fn numbers_in_a_row_fall_apart() {
        let state = IdState::default();
        let hashes: Vec<u64> = (0_u64..1 << 12)
            .map(|number| state.hash_one((number >> 6, number as u32 & 63)))
            .collect();
        for bits in [|hash: &u64| hash & 0xFFF, |hash: &u64| hash >> 52] {
            let places: HashSet<u64> = hashes.iter().map(bits).collect();
            // Thrown at random, 4 096 numbers take 63 % of as many places.
            assert!((2_300..2_900).contains(&places.len()), "{} places", places.len());
        }
        let texts: HashSet<u64> = hashes
            .iter()
            .map(|hash| state.hash_one(hash.to_le_bytes()))
            .collect();
        assert_eq!(texts.len(), hashes.len());
    }
}
