//! Numbers by which one run of the coordinator names what reaches it.

/// A connection of a server.
pub type ConnectionId = u64;

/// A call of the API that waits for its answer.
pub type CallId = u64;
