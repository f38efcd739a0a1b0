//! The state of a server's connection to the coordinator.

use super::Pipe;

#[derive(Debug)]
pub struct Control {
    pub connection: u64,
    /// The coordinator at the other end.
    pub member: usize,
    pub is_registered: bool,
    pub sent: u64,
    pub answered: u64,
    /// JSON, as on the wire; `None`: the end of the connection.
    pub up: Pipe<Vec<u8>>,
    pub down: Pipe<Option<Vec<u8>>>,
}
