//! Entries for readers.

use bytes::Bytes;
use quorate_types::Offset;
use quorate_wire::WireError;
use quorate_wire::client::Entries;
use quorate_wire::cursor;

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub offset: Offset,
    pub data: Bytes,
    /// The head's wall clock when it ordered the entry's batch.
    pub timestamp_us: u64,
}

/// The entries of ENTRIES from `offset` on. Whole batches come, so the first may begin before it. An error if they are
/// not consecutive, or differ from their writer's.
pub fn entries_from(message: &Entries, offset: Offset) -> Result<Vec<Entry>, WireError> {
    let mut found = Vec::new();
    let mut expected = offset;
    for batch in &message.batches {
        if batch.base_offset > expected {
            return Err(WireError::Malformed {
                what: "order of ENTRIES",
            });
        }
        if crc32fast::hash(&batch.payload) != batch.payload_crc {
            return Err(WireError::Checksum {
                part: "payload of ENTRIES",
            });
        }
        let data = cursor::entries(&batch.payload, batch.entry_count)?;
        let end = batch.base_offset + u64::from(batch.entry_count);
        let skip = (expected - batch.base_offset) as usize;
        for (position, data) in data.into_iter().enumerate().skip(skip) {
            let offset = batch.base_offset + position as u64;
            found.push(Entry {
                offset,
                data,
                timestamp_us: batch.timestamp_us,
            });
        }
        expected = expected.max(end);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_wire::client::EntriesBatch;

    fn batch(base_offset: Offset, entries: &[&[u8]]) -> EntriesBatch {
        let payload = cursor::payload_of(entries.iter().copied());
        EntriesBatch {
            base_offset,
            timestamp_us: 5,
            entry_count: entries.len() as u32,
            payload_crc: crc32fast::hash(&payload),
            payload,
        }
    }

    fn page(batches: Vec<EntriesBatch>) -> Entries {
        Entries {
            request: 1,
            next_offset: 0,
            commit_offset: 0,
            trim_offset: 0,
            batches,
        }
    }

    fn offsets(entries: &[Entry]) -> Vec<Offset> {
        entries.iter().map(|entry| entry.offset).collect()
    }

    #[test]
    fn entries_before_the_offset_are_dropped() {
        let page = page(vec![batch(3, &[b"a", b"b", b"c"]), batch(6, &[b"d"])]);
        let found = entries_from(&page, 5).unwrap();
        assert_eq!(offsets(&found), [5, 6]);
        assert_eq!(found[0].data, &b"c"[..]);
        assert_eq!(entries_from(&page, 7).unwrap(), []);
    }

    #[test]
    fn a_gap_or_a_changed_byte_is_an_error() {
        let gap = page(vec![batch(3, &[b"a"]), batch(5, &[b"b"])]);
        assert!(entries_from(&gap, 3).is_err());
        let mut changed = page(vec![batch(3, &[b"a"])]);
        changed.batches[0].payload_crc ^= 1;
        assert!(matches!(
            entries_from(&changed, 3),
            Err(WireError::Checksum { .. })
        ));
    }
}
