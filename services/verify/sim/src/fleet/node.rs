//! Ends of connections that faults may block.

/// An end of a connection between servers, or between a server and the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Coordinator(usize),
    Server(usize),
}
