//! Cutting a stream into frames.

use std::io;

use bytes::{Bytes, BytesMut};
use quorate_wire::{Frame, WireError, decode_frame, frame};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;

/// What one read asks for at least: many small frames come in one system call.
const READ_BYTES: usize = 64 << 10;

/// Payloads handed out are slices of the read buffer: no copy. A buffer lives as long as any slice of it.
pub struct FrameReader {
    buffer: BytesMut,
    frame_bytes_max: u32,
}

/// Why no more frames come from a stream.
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

    /// The next frame that has wholly arrived.
    pub fn next(&mut self) -> Result<Option<Frame>, ReadFault> {
        decode_frame(&mut self.buffer, self.frame_bytes_max).map_err(ReadFault::Wire)
    }

    /// Raises the limit, after a greeting.
    pub fn set_frame_bytes_max(&mut self, frame_bytes_max: u32) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Reads what the socket has, without waiting. `Ok(false)`: nothing now.
    pub fn try_fill(&mut self, stream: &TcpStream) -> Result<bool, ReadFault> {
        self.reserve();
        match stream.try_read_buf(&mut self.buffer) {
            Ok(0) if self.buffer.is_empty() => Err(ReadFault::Closed),
            Ok(0) => Err(ReadFault::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(ReadFault::Io(error)),
        }
    }

    /// Waits for bytes and reads them.
    pub async fn fill(&mut self, stream: &TcpStream) -> Result<(), ReadFault> {
        loop {
            stream.readable().await.map_err(ReadFault::Io)?;
            if self.try_fill(stream)? {
                return Ok(());
            }
        }
    }

    /// Waits for bytes and reads them, with one system call for what one call can take: the runtime knows a socket
    /// to be drained when it gave less than was asked for. Nothing is lost when the future is dropped.
    pub async fn fill_from(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), ReadFault> {
        self.reserve();
        match stream.read_buf(&mut self.buffer).await {
            Ok(0) if self.buffer.is_empty() => Err(ReadFault::Closed),
            Ok(0) => Err(ReadFault::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(ReadFault::Io(error)),
        }
    }

    /// Waits for one whole frame.
    pub async fn read_frame(&mut self, stream: &TcpStream) -> Result<Frame, ReadFault> {
        loop {
            if let Some(frame) = self.next()? {
                return Ok(frame);
            }
            self.fill(stream).await?;
        }
    }

    /// What was read and not yet handed out, when the stream moves to another reader.
    pub fn into_rest(self) -> Bytes {
        self.buffer.freeze()
    }

    pub fn with_rest(rest: &[u8], frame_bytes_max: u32) -> Self {
        Self {
            buffer: BytesMut::from(rest),
            frame_bytes_max,
        }
    }

    /// Room for the whole of a large frame at once, so that it is not moved while it arrives. Its length was
    /// checked against the limit when its header came; before that, the usual amount.
    fn reserve(&mut self) {
        let whole = frame::frame_len(&self.buffer)
            .unwrap_or(0)
            .min(self.frame_bytes_max as usize + 64);
        let missing = whole.saturating_sub(self.buffer.len());
        if self.buffer.capacity() - self.buffer.len() < missing.max(4 << 10) {
            self.buffer.reserve(missing.max(READ_BYTES));
        }
    }
}
