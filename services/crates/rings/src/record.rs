//! The bytes of a slot, little-endian: a head of 40 bytes, then those of the stream.
//!
//! ```text
//! u32 CRC-32 of all that follows   u32 length of the stream's bytes
//! u64 incarnation of the ring      u64 number of the record
//! u64 number of the first record that the sender has not consumed in the other direction
//! u8 flags (1: the sender sleeps)  7 zeros
//! ```

use quorate_types::planted::{self, Bug};

use crate::fault::Fault;

pub const SLOT_BYTES: usize = 16 << 10;
const HEAD_BYTES: usize = 40;
/// Bytes of the stream in one record.
pub const RECORD_BYTES_MAX: usize = SLOT_BYTES - HEAD_BYTES;
const SLEEPS: u8 = 1;

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub incarnation: u64,
    pub number: u64,
    pub consumed: u64,
    pub sleeps: bool,
}

impl Head {
    /// Writes the head in front of `length` bytes that stand in the slot already. The answer is the record's length.
    pub fn put(&self, length: usize, slot: &mut [u8]) -> usize {
        let end = HEAD_BYTES + length;
        slot[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        slot[8..16].copy_from_slice(&self.incarnation.to_le_bytes());
        slot[16..24].copy_from_slice(&self.number.to_le_bytes());
        slot[24..32].copy_from_slice(&self.consumed.to_le_bytes());
        slot[32..HEAD_BYTES].fill(0);
        slot[32] = if self.sleeps { SLEEPS } else { 0 };
        let crc = crc32fast::hash(&slot[4..end]);
        slot[..4].copy_from_slice(&crc.to_le_bytes());
        end
    }

    /// The head and the stream's bytes of the record that is due in the slot.
    pub fn read(slot: &[u8], incarnation: u64, number: u64) -> Result<(Head, &[u8]), Fault> {
        let damaged = |what| Fault::Damaged {
            expected: number,
            what,
        };
        let word = |at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().expect("four bytes"));
        let length = half(4) as usize;
        if length > RECORD_BYTES_MAX {
            return Err(damaged("it is longer than a slot"));
        }
        let end = HEAD_BYTES + length;
        let is_checked = !planted::on(Bug::RingChecksSkipped);
        if is_checked && half(0) != crc32fast::hash(&slot[4..end]) {
            return Err(damaged("its checksum is wrong"));
        }
        let head = Head {
            incarnation: word(8),
            number: word(16),
            consumed: word(24),
            sleeps: slot[32] & SLEEPS != 0,
        };
        if is_checked && head.incarnation != incarnation {
            return Err(damaged("it is of another connection"));
        }
        if is_checked && head.number != number {
            return Err(damaged("another record is there"));
        }
        Ok((head, &slot[HEAD_BYTES..end]))
    }
}

/// The place in a slot for the stream's bytes.
pub fn body(slot: &mut [u8]) -> &mut [u8] {
    &mut slot[HEAD_BYTES..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            incarnation: 7,
            number: 9,
            consumed: 4,
            sleeps: true,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_put_and_no_other_is_taken_for_it() {
        let mut slot = vec![0xaa; SLOT_BYTES];
        body(&mut slot)[..5].copy_from_slice(b"bytes");
        assert_eq!(head().put(5, &mut slot), HEAD_BYTES + 5);
        assert_eq!(Head::read(&slot, 7, 9), Ok((head(), &b"bytes"[..])));
        assert!(Head::read(&slot, 8, 9).is_err() && Head::read(&slot, 7, 10).is_err());
        for at in 0..HEAD_BYTES + 5 {
            let mut changed = slot.clone();
            changed[at] ^= 1;
            assert!(Head::read(&changed, 7, 9).is_err(), "byte {at}");
        }
        assert!(
            Head::read(&vec![0; SLOT_BYTES], 0, 0).is_err(),
            "memory that nobody wrote"
        );
    }
}
