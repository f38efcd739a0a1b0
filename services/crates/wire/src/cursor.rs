//! Reading and writing little-endian fields of a head.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::Versions;

use crate::WireError;

/// More than any log holds: two thousand years at a terabyte a second.
pub const POSITION_MAX: u64 = 1 << 56;

/// Reads fields from the front; running out is [`WireError::Malformed`] naming `what`.
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let (front, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(WireError::Malformed { what: self.what })?;
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(self
            .bytes(N)?
            .try_into()
            .expect("the slice has the length asked for"))
    }

    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count of batches, entries or bytes since a log began. Absurd ones are refused, so that sums of a few of
    /// them, with small factors, cannot overflow.
    pub fn position(&mut self) -> Result<u64, WireError> {
        let position = self.u64()?;
        if position >= POSITION_MAX {
            Err(WireError::Malformed { what: self.what })
        } else {
            Ok(position)
        }
    }

    /// The versions that a hello offers.
    pub fn versions(&mut self) -> Result<Versions, WireError> {
        let (oldest, newest) = (self.u16()?, self.u16()?);
        Versions::told(oldest, newest).ok_or(WireError::Malformed { what: self.what })
    }

    pub fn id16(&mut self) -> Result<[u8; 16], WireError> {
        self.array()
    }

    /// `u8 length` + UTF-8.
    pub fn str8(&mut self) -> Result<String, WireError> {
        let n = self.u8()?;
        self.text(usize::from(n))
    }

    /// `u16 length` + UTF-8.
    pub fn str16(&mut self) -> Result<String, WireError> {
        let n = self.u16()?;
        self.text(usize::from(n))
    }

    fn text(&mut self, n: usize) -> Result<String, WireError> {
        let what = self.what;
        std::str::from_utf8(self.bytes(n)?)
            .map(str::to_string)
            .map_err(|_| WireError::Malformed { what })
    }

    /// A count that is followed by at least `item_len` bytes for each item: refuses counts beyond the bytes there.
    pub fn count(&mut self, item_len: usize) -> Result<usize, WireError> {
        let count = self.u32()? as usize;
        if count
            .checked_mul(item_len)
            .is_none_or(|need| need > self.rest.len())
        {
            return Err(WireError::Malformed { what: self.what });
        }
        Ok(count)
    }
}

/// Shortens `text` to the longest that its length field can express, at a character boundary.
fn clip(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub fn put_versions(out: &mut BytesMut, versions: Versions) {
    out.put_u16_le(versions.oldest);
    out.put_u16_le(versions.newest_told());
}

pub fn put_str8(out: &mut BytesMut, text: &str) {
    let text = clip(text, u8::MAX as usize);
    out.put_u8(text.len() as u8);
    out.put_slice(text.as_bytes());
}

/// Longer texts are shortened to 8192 bytes: they are tokens (at most that long) and messages for people.
pub fn put_str16(out: &mut BytesMut, text: &str) {
    let text = clip(text, 8192);
    out.put_u16_le(text.len() as u16);
    out.put_slice(text.as_bytes());
}

/// The entries of a payload, in order. Fails unless exactly `entry_count` entries fill the payload.
pub fn entries(payload: &Bytes, entry_count: u32) -> Result<Vec<Bytes>, WireError> {
    let mut found = Vec::with_capacity(entry_count.min(65_536) as usize);
    walk_entries(payload, |start, end| found.push(payload.slice(start..end)))?;
    if found.len() != entry_count as usize {
        return Err(WireError::Malformed { what: "payload" });
    }
    Ok(found)
}

/// Checks the shape of a payload without taking it apart: the count of entries and the longest one.
pub fn check_entries(payload: &[u8]) -> Result<(u32, u32), WireError> {
    let (mut count, mut longest) = (0u32, 0usize);
    walk_entries(payload, |start, end| {
        count += 1;
        longest = longest.max(end - start);
    })?;
    Ok((count, longest as u32))
}

fn walk_entries(payload: &[u8], mut each: impl FnMut(usize, usize)) -> Result<(), WireError> {
    let mut at = 0;
    while at < payload.len() {
        let start = at + 4;
        let prefix = payload
            .get(at..start)
            .ok_or(WireError::Malformed { what: "payload" })?;
        let len = u32::from_le_bytes(prefix.try_into().expect("four bytes")) as usize;
        let end = start.checked_add(len).filter(|end| *end <= payload.len());
        let end = end.ok_or(WireError::Malformed { what: "payload" })?;
        each(start, end);
        at = end;
    }
    Ok(())
}

/// A payload of these entries.
pub fn payload_of<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let mut out = BytesMut::new();
    for entry in entries {
        out.put_u32_le(entry.len() as u32);
        out.put_slice(entry);
    }
    out.freeze()
}
