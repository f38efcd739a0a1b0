//! Memory that a device can read and write directly.

use std::ops::{Deref, DerefMut};

use aligned_vec::{AVec, ConstAlign};
use memmap2::{Advice, MmapMut};

use crate::record::PAGE_BYTES;

pub(crate) const PAGE: usize = PAGE_BYTES as usize;
/// From this size on, memory is taken in huge pages, if the kernel gives them. The kernel pins each page of each
/// transfer: for small pages that costs more than the transfer itself.
const HUGE_FROM_BYTES: usize = 1 << 20;
const HUGE_BYTES: usize = 2 << 20;

/// Growing bytes that begin at a page's start.
pub struct Pages {
    memory: Memory,
    len: usize,
}

enum Memory {
    Small(AVec<u8, ConstAlign<PAGE>>),
    Huge(MmapMut),
}

impl Memory {
    fn new(bytes: usize) -> Self {
        if bytes >= HUGE_FROM_BYTES
            && let Ok(map) = MmapMut::map_anon(bytes.next_multiple_of(HUGE_BYTES))
        {
            // Advice: without it the pages are small.
            let _not_taken = map.advise(Advice::HugePage).is_err();
            return Self::Huge(map);
        }
        let mut small = AVec::with_capacity(PAGE, bytes);
        small.resize(bytes, 0);
        Self::Small(small)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(small) => small,
            Self::Huge(map) => map,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(small) => small,
            Self::Huge(map) => map,
        }
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new()
    }
}

impl Pages {
    pub fn new() -> Self {
        Self {
            memory: Memory::Small(AVec::new(PAGE)),
            len: 0,
        }
    }

    /// Memory held, in bytes.
    pub fn capacity(&self) -> usize {
        self.memory.bytes().len()
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.reserve(end);
        self.memory.bytes_mut()[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    pub fn resize(&mut self, len: usize, value: u8) {
        self.reserve(len);
        if len > self.len {
            self.memory.bytes_mut()[self.len..len].fill(value);
        }
        self.len = len;
    }

    fn reserve(&mut self, bytes: usize) {
        if bytes <= self.capacity() {
            return;
        }
        let wanted = bytes.max(2 * self.capacity()).next_multiple_of(PAGE);
        let mut memory = Memory::new(wanted);
        memory.bytes_mut()[..self.len].copy_from_slice(self);
        self.memory = memory;
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_what_they_are_while_memory_grows_and_shrinks_to_nothing_unsaid() {
        let mut pages = Pages::new();
        let mut expected = Vec::new();
        for (n, len) in [10, 4_086, 1, 0, 70_000, 900_000, 200_000, 3_000_000]
            .into_iter()
            .enumerate()
        {
            let bytes: Vec<u8> = (0..len).map(|i: usize| (i * 7 + n) as u8).collect();
            pages.extend_from_slice(&bytes);
            expected.extend(bytes);
            assert_eq!(pages[..], expected[..]);
            assert!(pages.as_ptr().addr().is_multiple_of(PAGE));
        }
        assert!(pages.capacity() <= 4 * expected.len());
        pages.truncate(5);
        pages.truncate(9);
        assert_eq!(pages[..], expected[..5]);
        // Earlier bytes do not come back.
        pages.resize(8, 0);
        assert_eq!(pages[5..], [0; 3]);
        let held = pages.capacity();
        pages.clear();
        assert!(pages.is_empty());
        pages.resize(2_000_000, 9);
        assert!(pages.iter().all(|byte| *byte == 9));
        assert_eq!(pages.capacity(), held);
    }
}
