//! The measure of the test, which both processes know.

use std::time::Duration;

/// The name by which the process knows that it is to test the machine, and not to serve.
pub const COMMAND: &str = "selftest";
pub const ROUND_TRIPS: usize = 20_000;
pub const WARM_UP: usize = 2_000;
pub const MESSAGE_BYTES: usize = 64;
/// Bytes of all messages that are sent back.
pub const MESSAGES_BYTES: usize = (WARM_UP + ROUND_TRIPS) * MESSAGE_BYTES;
/// Bytes of the stream that each side sends then.
pub const STREAM_BYTES: usize = 64 << 20;
pub const PIECE_BYTES: usize = 8 << 10;
/// Nothing takes longer where one-sided writes work.
pub const PATIENCE: Duration = Duration::from_secs(30);
