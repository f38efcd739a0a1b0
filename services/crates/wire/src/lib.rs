//! Frames between clients, servers and peers: pure encoding and decoding.
//!
//! `sdk/contract/wire.md` is the contract for clients; `docs/internals/chain.md` describes the messages of peers.
//! Nothing here reads a socket: bytes in, messages out, and back.
//!
//! - [`frame`]: the 16-byte header, its checksum, cutting a stream into frames
//! - [`batch`]: the header of a batch, as it is replicated and stored
//! - [`client`]: messages between client and server
//! - [`peer`]: messages between servers
//! - [`one_sided`]: messages between servers about one-sided writes
//! - [`share`]: messages between servers about burst capacity
//! - [`cursor`]: reading and writing little-endian fields

pub mod batch;
pub mod client;
pub mod cursor;
pub mod frame;
pub mod one_sided;
pub mod peer;
pub mod share;

pub use batch::{Batch, BatchHeader};
pub use frame::{Frame, TraceContext, decode_frame, encode_frame};

use quorate_types::Code;
use thiserror::Error;

/// The reason why received bytes were refused. The connection cannot go on: the next frame's beginning is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WireError {
    #[error("frame of {len} bytes is longer than the {max} allowed")]
    TooLarge { len: u64, max: u32 },
    #[error("checksum of the {part} does not match")]
    Checksum { part: &'static str },
    #[error("unknown kind of frame {kind}")]
    UnknownKind { kind: u8 },
    #[error("{what} is malformed")]
    Malformed { what: &'static str },
}

impl WireError {
    pub fn code(self) -> Code {
        match self {
            WireError::TooLarge { .. } => Code::FrameTooLarge,
            WireError::Checksum { .. } => Code::ChecksumMismatch,
            WireError::UnknownKind { .. } | WireError::Malformed { .. } => Code::ProtocolError,
        }
    }
}
