//! Sockets of the data plane: framed reading, vectored writing, TLS, listening.
//!
//! - [`FrameReader`]: bytes of a stream cut into frames, without copying payloads
//! - [`Outbox`]: frames waiting to be written, gathered into few vectored writes
//! - [`stream`]: a connection's halves, plain or TLS; [`tls`]: certificates, and whom they let in
//! - [`spin`]: looking for events before sleeping
//! - [`stream::WriteHalf::lost_segments`]: by the kernel's count
//! - [`bind`], [`prepare`]: sockets with the data plane's options

mod inbound;
mod lost_segments;
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
