//! The state of a client's end of its connection.

use quorate_types::Micros;

#[derive(Debug, Default)]
pub struct Connection {
    /// 0: there is none.
    pub id: u64,
    pub server: usize,
    /// The server's process that it leads to.
    pub incarnation: u64,
    /// The server answered an ATTACH on it.
    pub was_attached: bool,
    /// The time at which the last frame of each direction arrives.
    pub up_at: Micros,
    pub down_at: Micros,
}
