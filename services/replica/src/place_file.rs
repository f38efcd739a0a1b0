//! The last place in the coordinator's log that this server was told, on its disk: what it was told, a coordinator on an
//! older copy of the log does not know (`docs/internals/coordinator.md`, "An older copy of the log").
//!
//! Two slots of a file of fixed size are written in turn, so that a torn write leaves the other. A full disk does not
//! keep them from being written.
//!
//! ```text
//! slot    u64 number of the write  u64 run  u64 position  u32 CRC-32 of the bytes before  zeros to 512
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use quorate_types::{Place, RunId};

/// A sector: a write of one slot does not touch the other.
const SLOT_BYTES: usize = 512;
const USED_BYTES: usize = 28;

#[derive(Debug)]
pub struct PlaceFile {
    file: File,
    writes: u64,
}

impl PlaceFile {
    /// Opens or creates the file in the server's folder. The place that it holds.
    pub fn open(data_dir: &Path) -> io::Result<(Self, Option<Place>)> {
        let path = data_dir.join("place");
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let file = options.open(path)?;
        let mut bytes = [0; 2 * SLOT_BYTES];
        if file.metadata()?.len() < bytes.len() as u64 {
            file.write_all_at(&bytes, 0)?;
            file.sync_all()?;
            File::open(data_dir)?.sync_all()?;
        }
        file.read_exact_at(&mut bytes, 0)?;
        let newest = bytes
            .chunks(SLOT_BYTES)
            .filter_map(decode)
            .max_by_key(|(writes, _)| *writes);
        let (writes, place) = newest.map_or((0, None), |(writes, place)| (writes, Some(place)));
        Ok((Self { file, writes }, place))
    }

    /// Returns when the place is on stable storage. After an error the next write is of the same slot: the other one alone
    /// is known to be good.
    pub fn write(&mut self, place: Place) -> io::Result<()> {
        let writes = self.writes + 1;
        let at = writes % 2 * SLOT_BYTES as u64;
        self.file.write_all_at(&encode(writes, place), at)?;
        self.file.sync_data()?;
        self.writes = writes;
        Ok(())
    }
}

fn encode(writes: u64, place: Place) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&writes.to_le_bytes());
    slot[8..16].copy_from_slice(&place.run.0.to_le_bytes());
    slot[16..24].copy_from_slice(&place.position.to_le_bytes());
    let crc = crc32fast::hash(&slot[..24]);
    slot[24..USED_BYTES].copy_from_slice(&crc.to_le_bytes());
    slot
}

/// The number of the write, and the place. `None`: nothing was written whole.
fn decode(slot: &[u8]) -> Option<(u64, Place)> {
    let word = |at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().expect("eight bytes"));
    let crc = u32::from_le_bytes(slot[24..USED_BYTES].try_into().expect("four bytes"));
    if word(0) == 0 || crc != crc32fast::hash(&slot[..24]) {
        return None;
    }
    let place = Place {
        run: RunId(word(8)),
        position: word(16),
    };
    Some((word(0), place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: u64) -> Place {
        let run = RunId(u64::MAX - 1);
        Place { run, position }
    }

    #[test]
    fn the_last_place_is_read_back_and_a_torn_write_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, empty) = PlaceFile::open(dir.path()).unwrap();
        assert_eq!(empty, None);
        for position in 1..=7 {
            file.write(place(position)).unwrap();
            let (_, known) = PlaceFile::open(dir.path()).unwrap();
            assert_eq!(known, Some(place(position)));
        }
        // The seventh write lies in the second slot.
        let bytes = std::fs::read(dir.path().join("place")).unwrap();
        for torn in SLOT_BYTES..SLOT_BYTES + USED_BYTES {
            let mut torn_bytes = bytes.clone();
            torn_bytes[torn] ^= 0x40;
            std::fs::write(dir.path().join("place"), torn_bytes).unwrap();
            let (_, known) = PlaceFile::open(dir.path()).unwrap();
            assert_eq!(known, Some(place(6)), "byte {torn}");
        }
    }

    #[test]
    fn a_write_that_failed_is_followed_by_one_of_the_same_slot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("place");
        let (mut file, _) = PlaceFile::open(dir.path()).unwrap();
        for position in 1..=3 {
            file.write(place(position)).unwrap();
        }
        let writable = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        file.write(place(4)).unwrap_err();
        file.file = writable;
        let before = std::fs::read(&path).unwrap();
        file.write(place(5)).unwrap();
        let after = std::fs::read(&path).unwrap();
        let (_, known) = PlaceFile::open(dir.path()).unwrap();
        assert_eq!(known, Some(place(5)));
        // The third write lies in the second slot.
        assert_eq!(after[SLOT_BYTES..], before[SLOT_BYTES..]);
    }
}
