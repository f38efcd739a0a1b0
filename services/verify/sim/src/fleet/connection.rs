//! The state of a client's end of its connection.

use quorate_types::Micros;

#[derive(Debug, Default)]
pub struct Connection {
    /// 0: there is none.
    pub id: u64,
    pub server: usize,
    /// The server's process that it leads to.
    pub incarnation: u64,
    /// ATTACHes on it that the server has not answered yet.
    pub attaches_unanswered: u32,
    /// The time at which the last frame of each direction arrives.
    pub up_at: Micros,
    pub down_at: Micros,
}
