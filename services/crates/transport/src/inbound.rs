//! Cutting a stream into frames.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use quorate_wire::{Frame, WireError, decode_frame, frame};

use crate::session::READ_BYTES;
use crate::stream::ReadHalf;

/// Payloads handed out are slices of the read buffer: no copy. A buffer is kept as long as any slice of it.
pub struct FrameReader {
    buffer: BytesMut,
    frame_bytes_max: u32,
}

/// The reason why no more frames come from a stream.
#[derive(Debug)]
pub enum ReadFault {
    /// The other side closed between frames.
    Closed,
    Io(io::Error),
    Wire(WireError),
}

impl FrameReader {
    pub fn new(frame_bytes_max: u32) -> Self {
        Self {
            buffer: BytesMut::new(),
            frame_bytes_max,
        }
    }

    /// Bytes that came by another way than a socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame that has wholly arrived.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ReadFault> {
        decode_frame(&mut self.buffer, self.frame_bytes_max).map_err(ReadFault::Wire)
    }

    /// Raises the limit, after a handshake.
    pub fn set_frame_bytes_max(&mut self, frame_bytes_max: u32) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Waits for bytes and reads them, with one system call: a socket that gives less than was asked for is drained, and
    /// the runtime knows it. Nothing is lost when the future is dropped. Answers the number of bytes added.
    pub async fn fill_from(&mut self, stream: &mut ReadHalf) -> Result<usize, ReadFault> {
        poll_fn(|context| self.poll_fill_from(context, stream, usize::MAX)).await
    }

    /// As [`FrameReader::fill_from`], with about `bytes_max` from the socket at most.
    pub fn poll_fill_from(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut ReadHalf,
        bytes_max: usize,
    ) -> Poll<Result<usize, ReadFault>> {
        self.reserve(stream.margin_bytes());
        let filled = ready!(stream.poll_fill(context, &mut self.buffer, bytes_max));
        Poll::Ready(match filled {
            Ok(0) if self.buffer.is_empty() => Err(ReadFault::Closed),
            Ok(0) => Err(ReadFault::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(ReadFault::Io(error)),
        })
    }

    /// Waits for one whole frame.
    pub async fn read_frame(&mut self, stream: &mut ReadHalf) -> Result<Frame, ReadFault> {
        loop {
            if let Some(frame) = self.next_frame()? {
                return Ok(frame);
            }
            self.fill_from(stream).await?;
        }
    }

    /// Bytes read and not yet handed out, for a stream that moves to another reader.
    pub fn into_rest(self) -> Bytes {
        self.buffer.freeze()
    }

    pub fn with_rest(rest: &[u8], frame_bytes_max: u32) -> Self {
        Self {
            buffer: BytesMut::from(rest),
            frame_bytes_max,
        }
    }

    /// Reserves room for the whole of a large frame at once, so that it is not moved while it arrives. Its length was
    /// checked against the limit when its header came. Before that the usual amount is reserved.
    fn reserve(&mut self, margin: usize) {
        let whole = frame::frame_len(&self.buffer)
            .unwrap_or(0)
            .min(self.frame_bytes_max as usize + 64);
        let missing = whole.saturating_sub(self.buffer.len());
        if self.buffer.capacity() - self.buffer.len() < missing.max(4 << 10) + margin {
            self.buffer.reserve(missing.max(READ_BYTES) + margin);
        }
    }
}
