//! The partition of a key: key hash 1 (`sdk/contract/partitions.md`). Pure.

use sha2::{Digest, Sha256};

/// The version that this client knows.
pub const KEY_HASH: u32 = 1;

/// The number of the key's partition, from 0 to `partitions` - 1.
///
/// # Panics
/// Without any partition.
pub fn partition_of(key: &[u8], partitions: u16) -> u16 {
    assert!(partitions >= 1, "a group has at least one partition");
    if partitions == 1 {
        return 0;
    }
    let digest = Sha256::digest(key);
    let first = digest[..8].try_into().expect("eight bytes");
    jump(u64::from_be_bytes(first), partitions)
}

/// Jump consistent hash (Lamping and Veach, 2014): a growth moves keys to new partitions alone.
fn jump(mut number: u64, partitions: u16) -> u16 {
    let (mut found, mut following) = (-1_i64, 0_i64);
    while following < i64::from(partitions) {
        found = following;
        number = number.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let share = 2_147_483_648.0 / ((number >> 33) + 1) as f64;
        following = ((found + 1) as f64 * share) as i64;
    }
    found as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn keys_find_the_partitions_of_the_vectors() {
        let text = include_str!("../../contract/vectors/partitions.json");
        let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(vectors["key_hash"], KEY_HASH);
        let cases = vectors["cases"].as_array().unwrap();
        assert!(cases.len() > 20);
        for case in cases {
            let key = bytes(case["key_hex"].as_str().unwrap());
            for (count, expected) in case["partitions"].as_object().unwrap() {
                let found = partition_of(&key, count.parse().unwrap());
                assert_eq!(u64::from(found), expected.as_u64().unwrap(), "{case} of {count}");
            }
        }
    }
}
