//! A connection of the data plane, plain or TLS, in two halves: one task reads, flushes write.
//!
//! The plain path is what it would be without TLS: the socket reads into the frame buffer, an outbox is one
//! vectored write. The TLS path adds a decryption into the frame buffer, and an encryption out of the outbox.

use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustls::pki_types::CertificateDer;
use rustls::{Connection, HandshakeKind};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::lost_segments::lost_segments;
use crate::prepare;
use crate::session::{RECORD_BYTES_MAX, Socket, TlsSession, drain};

/// A TLS connection begins with a handshake record: 0x16, then the version 3.1 or 3.3. Read as a frame's length this is
/// more than 65 535, which no first frame may have. So three bytes tell the two apart; the first alone does not.
const TLS_PREFIX: [u8; 2] = [0x16, 0x03];
const PEEK_AGAIN: Duration = Duration::from_millis(1);

/// Whether the other side begins with TLS, without taking a byte. Put a time-out around it.
pub async fn begins_with_tls(tcp: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 3];
    loop {
        match tcp.peek(&mut first).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            3 => return Ok(first[..2] == TLS_PREFIX && first[2] != 0),
            n if first[..n.min(2)] != TLS_PREFIX[..n.min(2)] => return Ok(false),
            // Almost never: three bytes come together.
            _ => tokio::time::sleep(PEEK_AGAIN).await,
        }
    }
}

pub struct ReadHalf {
    tcp: OwnedReadHalf,
    session: Option<Arc<TlsSession>>,
}

pub struct WriteHalf {
    tcp: OwnedWriteHalf,
    session: Option<Arc<TlsSession>>,
}

/// A connection on its way from one thread's runtime to another's.
pub struct Detached {
    tcp: StdTcpStream,
    session: Option<Arc<TlsSession>>,
}

/// A connection without TLS.
pub fn plain(tcp: TcpStream) -> (ReadHalf, WriteHalf) {
    halves(tcp, None)
}

/// The reason why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("the connection was lost in the TLS handshake: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

/// Runs the handshake of `connection` over the socket. The bytes came right behind it, and are decrypted. Put a time-out
/// around it.
pub async fn handshake(
    tcp: TcpStream,
    connection: impl Into<Connection>,
) -> Result<(ReadHalf, WriteHalf, BytesMut), HandshakeError> {
    let mut connection = connection.into();
    loop {
        while connection.wants_write() {
            match connection.write_tls(&mut Socket(&tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tcp.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        if !connection.is_handshaking() {
            break;
        }
        tcp.readable().await?;
        match connection.read_tls(&mut Socket(&tcp)) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = connection.process_new_packets() {
            let _alert = connection.write_tls(&mut Socket(&tcp)).is_ok();
            return Err(error.into());
        }
    }
    let mut rest = BytesMut::new();
    drain(&mut connection, &mut rest);
    let (read_half, write_half) = halves(tcp, Some(Arc::new(TlsSession::new(connection))));
    Ok((read_half, write_half, rest))
}

fn halves(tcp: TcpStream, session: Option<Arc<TlsSession>>) -> (ReadHalf, WriteHalf) {
    let (read_half, write_half) = tcp.into_split();
    let read_half = ReadHalf {
        tcp: read_half,
        session: session.clone(),
    };
    let write_half = WriteHalf {
        tcp: write_half,
        session,
    };
    (read_half, write_half)
}

impl ReadHalf {
    pub fn is_tls(&self) -> bool {
        self.session.is_some()
    }

    /// See [`TlsSession::peer_certificates`]; empty without TLS.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.session
            .as_ref()
            .map(|session| session.peer_certificates())
            .unwrap_or_default()
    }

    /// Whether the handshake was a full one; `None` without TLS.
    pub fn handshake_kind(&self) -> Option<HandshakeKind> {
        self.session.as_ref().and_then(|session| session.handshake_kind())
    }

    /// Waits for bytes and appends them, no more than there is room for. 0: the other side has closed. Nothing is lost
    /// when the future is dropped.
    pub(crate) async fn fill(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        poll_fn(|context| self.poll_fill(context, buffer, usize::MAX)).await
    }

    /// As [`ReadHalf::fill`], with about `bytes_max` from the socket at most.
    pub(crate) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
        bytes_max: usize,
    ) -> Poll<io::Result<usize>> {
        match &self.session {
            // Created again each time: it keeps nothing between.
            None => pin!(self.tcp.read_buf(&mut buffer.limit(bytes_max))).poll(context),
            Some(session) => session.poll_fill(&mut self.tcp, context, buffer, bytes_max),
        }
    }

    /// Waits until the socket has something, or its end, without taking it. An error comes again when it is read.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.as_ref().poll_read_ready(context)
    }

    /// Reads and discards; false when the other side has closed.
    pub async fn discard(&mut self) -> bool {
        let mut buffer = BytesMut::with_capacity(2 * RECORD_BYTES_MAX);
        matches!(self.fill(&mut buffer).await, Ok(1..))
    }

    /// Room that a buffer must have beyond the size of one read.
    pub(crate) fn margin_bytes(&self) -> usize {
        if self.is_tls() { RECORD_BYTES_MAX } else { 0 }
    }

    /// Joins the halves again, to hand the connection to another thread.
    pub fn detach(self, write_half: WriteHalf) -> io::Result<Detached> {
        let tcp = self.tcp.reunite(write_half.tcp).map_err(io::Error::other)?;
        Ok(Detached {
            tcp: tcp.into_std()?,
            session: self.session,
        })
    }
}

impl WriteHalf {
    /// Segments that were lost on their way since the connection is open.
    pub fn lost_segments(&self) -> io::Result<u32> {
        lost_segments(self.tcp.as_ref())
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        self.tcp.as_ref()
    }

    pub(crate) fn session(&self) -> Option<&TlsSession> {
        self.session.as_deref()
    }

    /// Waits until the socket accepts more.
    pub async fn writable(&self) -> io::Result<()> {
        self.tcp.writable().await
    }

    /// Says that nothing more will come, if the protocol has a message for it. Best effort, without waiting.
    pub fn close(&self) {
        if let Some(session) = &self.session {
            session.close(self.tcp());
        }
    }
}

impl Detached {
    /// Joins the runtime of this thread.
    pub fn attach(self) -> io::Result<(ReadHalf, WriteHalf)> {
        let tcp = TcpStream::from_std(self.tcp)?;
        prepare(&tcp)?;
        Ok(halves(tcp, self.session))
    }
}
