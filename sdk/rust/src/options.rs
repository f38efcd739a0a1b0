//! Options of a client and of its appends.

use std::time::Duration;

use quorate_types::Offset;

use crate::feed::FeedPort;
use crate::handles::HandleSource;
use crate::inbox::InboxFeed;
use crate::limits::{ANSWER_WAIT, TIMEOUT_DEFAULT};
use crate::pool::Pool;
use crate::writer::Batching;

/// Options of a client; `Options::default()` suits most.
#[derive(Clone)]
pub struct Options {
    /// Deadline of calls without one.
    pub timeout: Duration,
    /// Longest time without an answer to a sent batch, beyond its callers' deadline, before it is sent again on a new
    /// connection. After a few such attempts, later batches of the session are unknown (`no_answer`), and appends
    /// continue in a new session.
    pub answer_wait: Duration,
    pub batching: Batching,
    /// Appends beyond the head's announced rate wait in the client. If false, they are sent, and wait or are refused
    /// there.
    pub pace: bool,
    /// Time to poll for an awaited answer before the client sleeps: saves a wake-up for each answer, and costs a core
    /// of the runtime meanwhile. Zero by default.
    pub spin: Duration,
    /// Clients with clones of one `Connections` append over shared connections, one to each server: right for a program
    /// that appends to many groups. By default a client and its clones have connections of their own.
    pub connections: Connections,
    /// Source of a fresh handle, for when a token expires or the group moves.
    pub handle_source: Option<HandleSource>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: TIMEOUT_DEFAULT,
            answer_wait: ANSWER_WAIT,
            batching: Batching::default(),
            pace: true,
            spin: Duration::ZERO,
            connections: Connections::default(),
            handle_source: None,
        }
    }
}

/// Connections on which several clients append, each for its group: the batches of all of them go out together, and
/// their answers come together. Clients that share them must run on one runtime. Reads are not shared: a client that
/// reads much would delay others' answers.
#[derive(Clone)]
pub struct Connections(pub(crate) Pool<FeedPort<InboxFeed>>);

impl Default for Connections {
    fn default() -> Self {
        Self(Pool::any_thread())
    }
}

/// Options of an append.
#[derive(Debug, Clone, Copy, Default)]
pub struct AppendOptions {
    pub timeout: Option<Duration>,
    /// Append only if the first entry would get this offset.
    pub expected_offset: Option<Offset>,
    /// Refuse if a greater token has been used on the group; 0: none.
    pub fencing_token: u64,
}
