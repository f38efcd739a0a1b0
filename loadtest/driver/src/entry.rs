//! Entries of the load generator: each carries its run and its number in the run.
//!
//! ```text
//!  0 u64 run      random, one for each connection of each run
//!  8 u64 number   0, 1, 2 … in the order of appending
//! 16 filling      the same in every entry
//! ```

use bytes::BytesMut;

/// The smallest entry that can carry its identity.
pub const ENTRY_BYTES_MIN: u32 = 16;

/// Writes the entries of one run, without an allocation for each.
pub struct EntryWriter {
    template: Vec<u8>,
    next_number: u64,
}

impl EntryWriter {
    pub fn new(run: u64, size: u32) -> Self {
        assert!(size >= ENTRY_BYTES_MIN);
        let mut template = vec![0; size as usize];
        template[..8].copy_from_slice(&run.to_le_bytes());
        // Not all zero, so that no part of the system can profit from empty entries.
        let mut state = run | 1;
        for byte in &mut template[16..] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        Self {
            template,
            next_number: 0,
        }
    }

    pub fn put(&mut self, buffer: &mut BytesMut) {
        self.template[8..16].copy_from_slice(&self.next_number.to_le_bytes());
        self.next_number += 1;
        buffer.extend_from_slice(&self.template);
    }

    /// Number of entries written.
    pub fn written(&self) -> u64 {
        self.next_number
    }
}

/// (run, number) of an entry; `None` if it is too short to be one of the load generator's.
pub fn identity(entry: &[u8]) -> Option<(u64, u64)> {
    let run = u64::from_le_bytes(*entry.first_chunk()?);
    let number = u64::from_le_bytes(*entry.get(8..)?.first_chunk()?);
    Some((run, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_carry_their_identity() {
        let mut writer = EntryWriter::new(77, 64);
        let mut buffer = BytesMut::new();
        for number in 0..3 {
            buffer.clear();
            writer.put(&mut buffer);
            assert_eq!((buffer.len(), identity(&buffer)), (64, Some((77, number))));
        }
        assert_eq!(writer.written(), 3);
        assert_eq!(identity(&buffer[..15]), None);
    }
}
