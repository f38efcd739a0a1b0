//! Frames waiting to be written: heads copied together, large payloads by reference, written with few calls.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Bytes, BytesMut};

use crate::session::Source;
use crate::stream::WriteHalf;

/// Payloads up to this size are copied behind their heads: cheaper than a slot of their own in the vector.
const COPY_BYTES_MAX: usize = 1 << 10;
/// The open buffer is closed at this size, so that one allocation stays moderate.
const OPEN_BYTES: usize = 32 << 10;
/// Slices in one vectored write: Linux takes at most 1024. They lie on the stack.
const SLICES_MAX: usize = 64;

#[derive(Default)]
pub struct Outbox {
    closed: VecDeque<Bytes>,
    open: BytesMut,
    len: usize,
}

impl Outbox {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a frame: `encode` appends its head, and returns the payloads that follow it.
    pub fn push<P: IntoIterator<Item = Bytes>>(&mut self, encode: impl FnOnce(&mut BytesMut) -> P) {
        if self.open.capacity() - self.open.len() < 512 {
            self.open.reserve(OPEN_BYTES);
        }
        let before = self.open.len();
        let payloads = encode(&mut self.open);
        self.len += self.open.len() - before;
        for payload in payloads {
            self.len += payload.len();
            if payload.len() <= COPY_BYTES_MAX {
                self.open.extend_from_slice(&payload);
            } else {
                self.close();
                self.closed.push_back(payload);
            }
        }
        if self.open.len() >= OPEN_BYTES {
            self.close();
        }
    }

    pub fn push_bytes(&mut self, bytes: Bytes) {
        self.push(|_| [bytes]);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(self.open.split().freeze());
        }
    }

    /// Writes as much as the socket accepts now. `Ok(true)`: all is written.
    pub fn try_write(&mut self, stream: &WriteHalf) -> io::Result<bool> {
        self.close();
        if let Some(session) = stream.session() {
            return session.try_write(stream.tcp(), self);
        }
        while !self.closed.is_empty() {
            match self.offer(|slices| stream.tcp().try_write_vectored(slices)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The same for another way out: `take` is offered bytes, and says how many it took; `None`: no more at present.
    pub fn write_into(
        &mut self,
        mut take: impl FnMut(&mut dyn Iterator<Item = &[u8]>) -> Option<usize>,
    ) -> bool {
        self.close();
        while !self.closed.is_empty() {
            let mut slices = self.closed.iter().map(|bytes| &bytes[..]);
            let Some(taken) = take(&mut slices) else {
                return false;
            };
            self.advance(taken);
        }
        true
    }

    fn advance(&mut self, mut written: usize) {
        self.len -= written;
        while written > 0 {
            let front = self
                .closed
                .front_mut()
                .expect("no more was written than there was");
            if front.len() > written {
                let _ = front.split_to(written);
                return;
            }
            written -= front.len();
            self.closed.pop_front();
        }
    }
}

impl Source for Outbox {
    fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    fn offer(&mut self, take: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = self.closed.len().min(SLICES_MAX);
        for (slice, bytes) in slices.iter_mut().zip(&self.closed) {
            *slice = IoSlice::new(bytes);
        }
        let taken = take(&slices[..count])?;
        self.advance(taken);
        Ok(taken)
    }
}
