//! The mark beside the log: how far the log had been synced. A last record that matches no checksum is torn when it lies
//! behind the mark, and damaged when it lies before: something had followed from it.
//!
//! The mark is written after each sync and not synced itself, so it never names more than is on stable storage. A crash of
//! the process keeps it. A crash of the machine may leave an older one, which proves less.

use quorate_record_file::{HEADER_BYTES, RECORD_HEADER_BYTES};

/// A length of one log, by the head of its first record: a snapshot replaces the file, and begins another count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    generation: [u8; RECORD_HEADER_BYTES],
    pub synced_bytes: u64,
}

/// Bytes of a mark, in text so that it frames like a record.
const PAYLOAD_CHARS: usize = 2 * RECORD_HEADER_BYTES + 1 + 16;
/// The head of a log and of its first record: by these a mark knows its log.
pub const BEGINNING_BYTES: usize = HEADER_BYTES + RECORD_HEADER_BYTES;
pub const MARK_BYTES: usize = RECORD_HEADER_BYTES + PAYLOAD_CHARS;

impl Mark {
    /// The mark of a log that begins with these bytes and is synced so far. `None`: it has no record.
    pub fn of(beginning: &[u8], synced_bytes: u64) -> Option<Self> {
        let generation = beginning.get(HEADER_BYTES..HEADER_BYTES + RECORD_HEADER_BYTES)?;
        let generation = generation.try_into().ok()?;
        (synced_bytes > HEADER_BYTES as u64).then_some(Self {
            generation,
            synced_bytes,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let generation: String = self.generation.iter().map(|byte| format!("{byte:02x}")).collect();
        let payload = format!("{generation} {:016x}", self.synced_bytes);
        quorate_record_file::encode(payload.as_bytes())
    }

    /// `None`: it is absent, or torn.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut file = quorate_record_file::header(b"QRTMARK\0", 1).to_vec();
        file.extend_from_slice(bytes.get(..MARK_BYTES)?);
        let scanned = quorate_record_file::scan(&file, PAYLOAD_CHARS as u64).ok()?;
        let payload = file.get(scanned.payloads.first()?.clone())?;
        let (generation, synced) = std::str::from_utf8(payload).ok()?.split_once(' ')?;
        let byte = |at: usize| u8::from_str_radix(generation.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..RECORD_HEADER_BYTES).map(byte).collect();
        Some(Self {
            generation: bytes?.try_into().ok()?,
            synced_bytes: u64::from_str_radix(synced, 16).ok()?,
        })
    }

    /// The length that this log is known to have had, if that is more than its whole records have now.
    pub fn lost_of(&self, beginning: &[u8], whole_bytes: u64) -> Option<u64> {
        // A log without a record is another one in the place of one that had some.
        let own = Self::of(beginning, self.synced_bytes);
        let is_its_own = own.is_none_or(|own| own.generation == self.generation);
        (is_its_own && self.synced_bytes > whole_bytes).then_some(self.synced_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_speaks_of_its_own_log_alone() {
        let log = |payload: &str| {
            let mut log = quorate_record_file::header(b"QRTCLOG\0", 1).to_vec();
            log.extend_from_slice(&quorate_record_file::encode(payload.as_bytes()));
            log
        };
        let (mine, other) = (log("mine"), log("other"));
        let mark = Mark::of(&mine, 1_000).unwrap();
        assert_eq!(mark.encode().len(), MARK_BYTES);
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        assert_eq!(mark.lost_of(&mine, 999), Some(1_000));
        assert_eq!(
            (mark.lost_of(&mine, 1_000), mark.lost_of(&other, 10)),
            (None, None)
        );
        assert_eq!(
            mark.lost_of(&mine[..HEADER_BYTES], 16),
            Some(1_000),
            "the log is gone"
        );
        for at in 0..MARK_BYTES {
            let mut torn = mark.encode();
            torn[at] ^= 1;
            assert_eq!(Mark::decode(&torn), None, "byte {at}");
        }
        assert_eq!(Mark::of(&mine[..HEADER_BYTES], 16), None);
    }
}
