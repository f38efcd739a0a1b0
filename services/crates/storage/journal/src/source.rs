//! Sources of bytes to read; a bad sector costs no more than itself.

use std::io;

use crate::pages::Pages;
use crate::record::PAGE_BYTES;

/// The bytes of one segment, or of another file.
pub trait Source {
    /// Length in bytes.
    fn bytes(&self) -> u64;

    /// Fills `buffer` from `position`; both lie within the source.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()>;
}

impl<T: AsRef<[u8]>> Source for T {
    fn bytes(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        let at = position as usize;
        let bytes = self.as_ref().get(at..at + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Reads with zeros in place of unreadable pages, so that one bad sector costs only the records on it. A disk that
/// returns no page at all is an error.
pub fn read_around<S: Source>(source: &S, buffer: &mut [u8], position: u64) -> io::Result<()> {
    let Err(error) = source.read_at(buffer, position) else {
        return Ok(());
    };
    let mut is_any_good = false;
    for (at, page) in (position..)
        .step_by(PAGE_BYTES as usize)
        .zip(buffer.chunks_mut(PAGE_BYTES as usize))
    {
        match source.read_at(page, at) {
            Ok(()) => is_any_good = true,
            Err(_) => page.fill(0),
        }
    }
    if is_any_good { Ok(()) } else { Err(error) }
}

/// Reads a source from front to back in large pieces, with little memory.
pub struct Window<S> {
    source: S,
    /// Whole pages, unless the source ends.
    bytes: Pages,
    at: u64,
}

/// Size of one read, unless more is asked for.
const WINDOW_BYTES: usize = 1 << 20;

impl<S: Source> Window<S> {
    pub fn new(source: S) -> Self {
        Self {
            source,
            bytes: Pages::new(),
            at: 0,
        }
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    /// The bytes [position, position + len), as far as the source goes.
    pub fn look(&mut self, position: u64, len: usize) -> io::Result<&[u8]> {
        let end = (position + len as u64).min(self.source.bytes()).max(position);
        if position < self.at || end > self.at + self.bytes.len() as u64 {
            self.at = position - position % PAGE_BYTES;
            let left = self.source.bytes().saturating_sub(self.at);
            let wanted = (end - self.at).max(WINDOW_BYTES as u64);
            let wanted = wanted.next_multiple_of(PAGE_BYTES).min(left);
            self.bytes.resize(wanted as usize, 0);
            read_around(&self.source, &mut self.bytes, self.at)?;
        }
        let from = (position - self.at) as usize;
        Ok(self
            .bytes
            .get(from..from + (end - position) as usize)
            .unwrap_or(&[]))
    }
}
