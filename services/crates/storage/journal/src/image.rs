//! Records in whole pages, as they will lie on disk: a device can read them from memory directly.

use crate::pages::Pages;
use crate::record::PAGE_BYTES;

/// Size at which an image is written: enough to keep a device busy, small enough for the processor's cache.
const IMAGE_BYTES: usize = 2 << 20;

/// A range of one segment. Its first page may begin with records that are on disk already: a page is written whole.
pub struct Image {
    pages: Pages,
    /// Position of the first page in the segment, in bytes.
    start: u64,
    /// Position of the first byte not written yet.
    written: u64,
}

impl Image {
    /// Begins at `position`; the page holds `before` in front of it.
    pub fn new(position: u64, before: &[u8]) -> Self {
        let mut image = Self {
            pages: Pages::new(),
            start: 0,
            written: 0,
        };
        image.go_to(position, before);
        image
    }

    /// Resets the image as [`Self::new`] does, and keeps its memory.
    pub fn go_to(&mut self, position: u64, before: &[u8]) {
        assert_eq!(position % PAGE_BYTES, before.len() as u64, "the part of a page");
        self.start = position - before.len() as u64;
        self.written = position;
        self.pages.clear();
        self.pages.extend_from_slice(before);
    }

    /// Sets the first page's bytes in front of the first new byte.
    pub fn set_before(&mut self, before: &[u8]) {
        let len = (self.written - self.start) as usize;
        self.pages[..len].copy_from_slice(before);
    }

    /// Memory held, in bytes.
    pub fn capacity(&self) -> usize {
        self.pages.capacity()
    }

    /// Position of the next byte.
    pub fn end(&self) -> u64 {
        self.start + self.pages.len() as u64
    }

    /// Position of the first byte not written yet.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub fn is_written(&self) -> bool {
        self.written == self.end()
    }

    pub fn is_full(&self) -> bool {
        self.pages.len() >= IMAGE_BYTES
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.pages.extend_from_slice(bytes);
    }

    /// Appends zeros up to `position`.
    pub fn pad_to(&mut self, position: u64) {
        self.pages.resize((position - self.start) as usize, 0);
    }

    /// Passes whole pages and their position to `write`, zeros behind the end. Then only the unfinished page stays.
    pub fn write<E>(&mut self, write: impl FnOnce(&[u8], u64) -> Result<(), E>) -> Result<(), E> {
        let end = self.end();
        self.pad_to(end.next_multiple_of(PAGE_BYTES));
        write(&self.pages, self.start)?;
        let rest_at = end - end % PAGE_BYTES;
        let rest = (end - rest_at) as usize;
        let from = (rest_at - self.start) as usize;
        self.pages.copy_within(from..from + rest, 0);
        self.pages.truncate(rest);
        self.start = rest_at;
        self.written = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PAGE;
    use crate::record::SEGMENT_HEAD_BYTES;

    #[test]
    fn pages_are_whole_and_the_unfinished_one_is_written_again() {
        let mut image = Image::new(SEGMENT_HEAD_BYTES, &[]);
        let mut disk = vec![0xee; 10 * PAGE];
        let mut expected = Vec::new();
        let mut put = |image: &mut Image| {
            image.write(|pages, position| {
                assert!(pages.len().is_multiple_of(PAGE) && position.is_multiple_of(PAGE_BYTES));
                assert!(pages.as_ptr().addr().is_multiple_of(PAGE));
                disk[position as usize..position as usize + pages.len()].copy_from_slice(pages);
                Ok::<_, ()>(())
            })
        };
        for (n, len) in [100, 4_096, 0, 3_996, 1, 8_000].into_iter().enumerate() {
            let bytes = vec![n as u8 + 1; len];
            image.push(&bytes);
            expected.extend(bytes);
            assert_eq!(image.end(), SEGMENT_HEAD_BYTES + expected.len() as u64);
            put(&mut image).unwrap();
            assert!(image.is_written());
        }
        let (head, end) = (SEGMENT_HEAD_BYTES as usize, image.end() as usize);
        assert_eq!(disk[head..end], expected[..]);
        let padding = &disk[end..end.next_multiple_of(PAGE)];
        assert!(padding.iter().all(|byte| *byte == 0));
        assert_eq!(disk[end.next_multiple_of(PAGE)], 0xee, "nothing else is touched");
    }

    #[test]
    fn a_segment_is_resumed_in_the_middle_of_a_page() {
        let mut image = Image::new(SEGMENT_HEAD_BYTES + PAGE_BYTES + 8, b"........");
        image.set_before(b"earlier!");
        image.push(b"later");
        let write = |pages: &[u8], position: u64| {
            assert_eq!(position, SEGMENT_HEAD_BYTES + PAGE_BYTES);
            assert_eq!(&pages[..13], b"earlier!later");
            Ok::<_, ()>(())
        };
        image.write(write).unwrap();
    }
}
