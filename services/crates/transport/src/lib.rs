//! Sockets of the data plane: framed reading, vectored writing, TLS, listening.
//!
//! - [`FrameReader`]: bytes of a stream cut into frames, without copying payloads
//! - [`Outbox`]: frames waiting to be written, gathered into few vectored writes
//! - [`stream`]: a connection's halves, plain or TLS; [`tls`]: who is trusted, and by whom
//! - [`spin`]: looking for what comes before sleeping
//! - [`bind`], [`prepare`]: sockets as the data plane wants them

mod inbound;
mod outbox;
mod session;
mod sockets;
pub mod spin;
pub mod stream;
pub mod tls;

pub use inbound::{FrameReader, ReadFault};
pub use outbox::Outbox;
pub use sockets::{bind, prepare};
pub use stream::{Detached, HandshakeError, ReadHalf, WriteHalf, begins_with_tls, handshake, plain};
