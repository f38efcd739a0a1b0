//! The TLS state of one connection, between the socket and the frames.
//!
//! Both halves of a connection share it behind a lock, which is never contended within a shard. Only TLS connections
//! have it. Ciphertext is read into a buffer of the thread and decrypted at once, so an idle connection holds none.
//! Ciphertext that waits to be written is bounded by [`CIPHERTEXT_BYTES_MAX`]; the rest stays in the outbox.

use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::pki_types::CertificateDer;
use rustls::{Connection, HandshakeKind};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

/// Most bytes of one read from the socket.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Most bytes that one read may yield beyond its own: a record of which a part had arrived before.
pub(crate) const RECORD_BYTES_MAX: usize = 17 << 10;
/// Bytes encrypted and not yet accepted by the socket: more than one call writes, few against an outbox's bound.
const CIPHERTEXT_BYTES_MAX: usize = 128 << 10;

thread_local! {
    static CIPHERTEXT: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

pub struct TlsSession {
    connection: Mutex<Connection>,
}

impl TlsSession {
    /// The state of a connection whose handshake is done.
    pub(crate) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(CIPHERTEXT_BYTES_MAX));
        Self {
            connection: Mutex::new(connection),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().expect("no holder of the lock panics")
    }

    /// Certificates of the other side; empty for clients, which authenticate by token.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.lock()
            .peer_certificates()
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    }

    pub(crate) fn handshake_kind(&self) -> Option<HandshakeKind> {
        self.lock().handshake_kind()
    }

    /// Appends decrypted bytes to `plaintext`, which must have room for more than [`RECORD_BYTES_MAX`]. Reads at most
    /// `bytes_max` of ciphertext at once. 0: the other side has closed.
    pub(crate) fn poll_fill(
        &self,
        tcp: &mut OwnedReadHalf,
        context: &mut Context<'_>,
        plaintext: &mut BytesMut,
        bytes_max: usize,
    ) -> Poll<io::Result<usize>> {
        CIPHERTEXT.with_borrow_mut(|ciphertext| {
            loop {
                let room = plaintext.capacity() - plaintext.len();
                assert!(room > RECORD_BYTES_MAX, "the reader reserves room for a record");
                let wanted = READ_BYTES.min(room - RECORD_BYTES_MAX).min(bytes_max);
                let mut read = ReadBuf::new(&mut ciphertext[..wanted]);
                ready!(Pin::new(&mut *tcp).poll_read(context, &mut read))?;
                if read.filled().is_empty() {
                    return Poll::Ready(Ok(0));
                }
                let mut connection = self.lock();
                let taken = take_in(&mut connection, read.filled(), plaintext);
                if connection.wants_write() {
                    // An answer of the protocol itself: an alert, a key update. If the socket is full, it goes
                    // with the next flush.
                    let _best_effort = connection.write_tls(&mut Socket(tcp.as_ref())).is_ok();
                }
                match taken {
                    Ok(Taken {
                        bytes: 0,
                        closed: false,
                    }) => {}
                    Ok(taken) => return Poll::Ready(Ok(taken.bytes)),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        })
    }

    /// Encrypts the bytes that `source` offers and writes them, as many as the socket accepts now. `Ok(true)`: all is
    /// written.
    pub(crate) fn try_write(&self, tcp: &TcpStream, source: &mut impl Source) -> io::Result<bool> {
        let mut connection = self.lock();
        loop {
            while connection.wants_write() {
                match connection.write_tls(&mut Socket(tcp)) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            if source.is_empty() {
                return Ok(true);
            }
            let taken = source.offer(|slices| connection.writer().write_vectored(slices))?;
            assert!(taken > 0, "an empty buffer takes something");
        }
    }

    /// Says that nothing more will come, if the socket accepts that now.
    pub(crate) fn close(&self, tcp: &TcpStream) {
        let mut connection = self.lock();
        connection.send_close_notify();
        let _best_effort = connection.write_tls(&mut Socket(tcp)).is_ok();
    }
}

/// Bytes to be sent, in order.
pub(crate) trait Source {
    fn is_empty(&self) -> bool;
    /// Offers the front to `take`, and forgets as many bytes as it took.
    fn offer(&mut self, take: impl FnOnce(&[IoSlice<'_>]) -> io::Result<usize>) -> io::Result<usize>;
}

struct Taken {
    bytes: usize,
    closed: bool,
}

/// Takes in all of `ciphertext`: the part of an unfinished record stays in `connection`.
fn take_in(
    connection: &mut Connection,
    mut ciphertext: &[u8],
    plaintext: &mut BytesMut,
) -> io::Result<Taken> {
    let before = plaintext.len();
    let mut closed = false;
    while !ciphertext.is_empty() && !closed {
        // Reads a few KiB at a time, whatever there is.
        closed = connection.read_tls(&mut ciphertext)? == 0;
        let state = connection
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        closed |= state.peer_has_closed();
        drain(connection, plaintext);
    }
    let bytes = plaintext.len() - before;
    Ok(Taken { bytes, closed })
}

pub(crate) fn drain(connection: &mut Connection, plaintext: &mut BytesMut) {
    let mut reader = connection.reader();
    while let Ok(chunk) = reader.fill_buf() {
        let len = chunk.len();
        if len == 0 {
            return;
        }
        plaintext.extend_from_slice(chunk);
        reader.consume(len);
    }
}

/// A non-blocking socket as `std::io` has it.
pub(crate) struct Socket<'a>(pub &'a TcpStream);

impl io::Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.try_write(buffer)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
