//! Reading a file of a group log from front to back, with little memory.

use std::io;

use quorate_journal::{Lsn, Source, Window};

use crate::format::{ALIGN_BYTES, FILE_HEAD_BYTES, HEADER_BYTES, Header, LogLocation, Seal, stride};

/// The records of one file up to `end`; everything before that was synced.
pub struct Walk<S> {
    window: Window<S>,
    seal: Seal,
    file: u32,
    position: u32,
    end: u32,
}

/// The next item in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Record {
        lsn: Lsn,
        kind: u8,
        head: &'a [u8],
        payload: Payload<'a>,
        place: LogLocation,
    },
    /// A range without a readable record. `place.len` is its length.
    Hole { place: LogLocation },
}

#[derive(Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    Sound(&'a [u8]),
    Damaged,
    /// Not asked for: only its length is known.
    Unread(u32),
}

impl<S: Source> Walk<S> {
    /// `end`: the end of the durable part. If the source is shorter, the rest is a hole.
    pub fn new(source: S, seal: Seal, file: u32, end: u32) -> Self {
        Self {
            window: Window::new(source),
            seal,
            file,
            position: FILE_HEAD_BYTES,
            end,
        }
    }

    pub fn position(&self) -> u32 {
        self.position
    }

    /// Goes back to an earlier record.
    pub fn go_to(&mut self, position: u32) {
        self.position = position;
    }

    /// `None` at the end. `wants_payload` decides by kind.
    #[allow(clippy::should_implement_trait)] // The item borrows from the walk.
    pub fn next(&mut self, wants_payload: impl Fn(u8) -> bool) -> io::Result<Option<Step<'_>>> {
        if self.position >= self.end {
            return Ok(None);
        }
        let start = self.position;
        let mut found = self.sound_at(start)?;
        while found.is_none() {
            self.position += ALIGN_BYTES as u32;
            if self.position >= self.end {
                self.position = self.end;
                break;
            }
            found = self.sound_at(self.position)?;
        }
        let header = match found {
            Some(header) if header.position == start => header,
            _ => {
                let (file, len) = (self.file, self.position - start);
                let place = LogLocation {
                    file,
                    position: start,
                    len,
                };
                return Ok(Some(Step::Hole { place }));
            }
        };
        self.position = start + stride(header.body_len);
        self.record(header, wants_payload(header.kind)).map(Some)
    }

    fn sound_at(&mut self, position: u32) -> io::Result<Option<Header>> {
        let bytes = self.window.look(u64::from(position), HEADER_BYTES)?;
        let Some(header) = Header::decode(bytes, position) else {
            return Ok(None);
        };
        if u64::from(position) + u64::from(stride_or_max(header.body_len)) > u64::from(self.end) {
            return Ok(None);
        }
        let len = HEADER_BYTES + usize::from(header.head_len);
        let bytes = self.window.look(u64::from(position), len)?;
        Ok(header.is_sound(&self.seal, bytes).then_some(header))
    }

    fn record(&mut self, header: Header, wants_payload: bool) -> io::Result<Step<'_>> {
        let head_end = HEADER_BYTES + usize::from(header.head_len);
        let len = if wants_payload {
            HEADER_BYTES + header.body_len as usize
        } else {
            head_end
        };
        let bytes = self.window.look(u64::from(header.position), len)?;
        let payload = if !wants_payload {
            Payload::Unread(header.body_len - u32::from(header.head_len))
        } else if bytes.len() == len && crc32fast::hash(&bytes[head_end..]) == header.payload_crc {
            Payload::Sound(&bytes[head_end..])
        } else {
            Payload::Damaged
        };
        Ok(Step::Record {
            lsn: header.lsn,
            kind: header.kind,
            head: &bytes[HEADER_BYTES..head_end],
            payload,
            place: header.place(self.file),
        })
    }
}

fn stride_or_max(body_len: u32) -> u32 {
    if body_len > u32::MAX / 2 {
        u32::MAX
    } else {
        stride(body_len)
    }
}
