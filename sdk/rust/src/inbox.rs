//! The queue from a [`crate::Client`]'s callers to its link's task: bounded, with a wake-up and replies.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use quorate_types::{Micros, Offset};
use quorate_wire::client::Attached;
use tokio::sync::{Notify, oneshot, watch};

use crate::clock::instant_of;
use crate::codes::client_side;
use crate::errors::{AppendError, Failure};
use crate::feed::Feed;
use crate::limits::{PENDING_BYTES_READY, PENDING_CALLS_MAX, PENDING_CALLS_READY};
use crate::results::Appended;
use crate::waker::Wake;
use crate::writer::{Condition, Share, Writer};

pub(crate) enum AppendCall {
    One {
        entry: Bytes,
    },
    Many {
        entries: Vec<Bytes>,
        condition: Condition,
    },
}

pub(crate) struct Reply(pub oneshot::Sender<Result<Appended, AppendError>>);

impl Reply {
    /// A caller may have stopped waiting; the append has happened all the same.
    fn send(self, outcome: Result<Appended, AppendError>) {
        let _gone = self.0.send(outcome);
    }
}

struct Request {
    call: AppendCall,
    deadline: Micros,
    reply: Reply,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    /// Callers that wait for a connection.
    attach_waiters: Vec<oneshot::Sender<Result<(), Failure>>>,
    is_attached: bool,
    is_finished: bool,
    /// Appends and bytes pending in the writer.
    pending_calls: usize,
    pending_bytes: u64,
}

pub(crate) struct Inbox {
    state: Mutex<State>,
    pub wake: Arc<Wake>,
    room: Notify,
    is_ended: watch::Sender<bool>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            wake: Arc::default(),
            room: Notify::new(),
            is_ended: watch::Sender::new(false),
        }
    }
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    pub fn push(&self, call: AppendCall, deadline: Micros, reply: Reply) {
        let mut state = self.state();
        let refusal = if state.is_finished {
            Some(Failure::new(client_side::CLIENT_CLOSED, ""))
        } else if matches!(&call, AppendCall::Many { entries, .. } if entries.is_empty()) {
            Some(Failure::of(
                quorate_types::Code::BatchMalformed,
                "it has no entries",
            ))
        } else if state.requests.len() >= PENDING_CALLS_MAX {
            Some(Failure::new(client_side::QUEUE_FULL, ""))
        } else {
            None
        };
        if let Some(failure) = refusal {
            drop(state);
            reply.send(Err(AppendError::Refused(failure)));
            return;
        }
        let is_first = state.requests.is_empty();
        state.requests.push(Request {
            call,
            deadline,
            reply,
        });
        drop(state);
        // The task takes all requests at once, so the first one's wake-up is enough.
        if is_first {
            self.wake.notify_one();
        }
    }

    pub async fn wait_ready(&self) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            {
                let state = self.state();
                let calls = state.pending_calls + state.requests.len();
                if state.is_finished
                    || (calls < PENDING_CALLS_READY && state.pending_bytes < PENDING_BYTES_READY)
                {
                    return;
                }
            }
            room.await;
        }
    }

    pub async fn wait_attached(&self, deadline: Micros) -> Result<(), Failure> {
        let answer = {
            let mut state = self.state();
            if state.is_attached {
                return Ok(());
            }
            let (sender, answer) = oneshot::channel();
            state.attach_waiters.push(sender);
            answer
        };
        self.wake.notify_one();
        match tokio::time::timeout_at(instant_of(deadline), answer).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(Failure::new(
                client_side::NO_CONNECTION,
                "no replica answered in time",
            )),
        }
    }

    pub fn finish(&self) {
        self.state().is_finished = true;
        self.wake.notify_one();
        self.room.notify_waiters();
    }

    /// Waits until the link's task has ended.
    pub async fn wait_ended(&self) {
        let mut is_ended = self.is_ended.subscribe();
        let _sender_is_there = is_ended.wait_for(|ended| *ended).await.is_ok();
    }
}

/// The task's side of an [`Inbox`].
pub(crate) struct InboxFeed {
    inbox: Arc<Inbox>,
    taken: Vec<Request>,
    wants_connection: bool,
    is_finished: bool,
}

impl InboxFeed {
    pub fn new(inbox: Arc<Inbox>) -> Self {
        Self {
            inbox,
            taken: Vec::new(),
            wants_connection: false,
            is_finished: false,
        }
    }
}

impl Drop for InboxFeed {
    fn drop(&mut self) {
        self.inbox.finish();
        self.inbox.is_ended.send_replace(true);
    }
}

impl Feed for InboxFeed {
    type Ticket = Reply;

    fn fill(&mut self, writer: &mut Writer<Reply>, _now: Micros) {
        {
            let mut state = self.inbox.state();
            std::mem::swap(&mut state.requests, &mut self.taken);
            state.attach_waiters.retain(|waiter| !waiter.is_closed());
            self.wants_connection = !state.attach_waiters.is_empty();
            self.is_finished = state.is_finished;
        }
        for Request {
            call,
            deadline,
            reply,
        } in self.taken.drain(..)
        {
            let outcome = match call {
                AppendCall::One { entry } => writer.append(deadline, reply, &entry),
                AppendCall::Many { entries, condition } => {
                    let entries: Vec<&[u8]> = entries.iter().map(|entry| &entry[..]).collect();
                    writer.append_many(deadline, reply, &entries, condition, None)
                }
            };
            if let Err((reply, failure)) = outcome {
                reply.send(Err(AppendError::Refused(failure)));
            }
        }
        let mut state = self.inbox.state();
        state.pending_calls = writer.pending_calls();
        state.pending_bytes = writer.pending_bytes();
        let has_room = state.pending_calls < PENDING_CALLS_READY && state.pending_bytes < PENDING_BYTES_READY;
        drop(state);
        if has_room {
            self.inbox.room.notify_waiters();
        }
    }

    fn acked(&mut self, share: Share<Reply>, base_offset: Offset, _now: Micros) {
        share.ticket.send(Ok(Appended {
            base_offset,
            count: share.count,
        }));
    }

    fn failed(&mut self, share: Share<Reply>, failure: &Failure, is_unknown: bool, _now: Micros) {
        let failure = failure.clone();
        let error = if is_unknown {
            AppendError::Unknown(failure)
        } else {
            AppendError::Refused(failure)
        };
        share.ticket.send(Err(error));
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn wants_connection(&self) -> bool {
        self.wants_connection
    }

    fn attached(&mut self, _attached: &Attached) {
        let mut state = self.inbox.state();
        state.is_attached = true;
        for waiter in std::mem::take(&mut state.attach_waiters) {
            let _gone = waiter.send(Ok(()));
        }
    }

    fn detached(&mut self) {
        self.inbox.state().is_attached = false;
    }

    fn hopeless(&mut self, failure: &Failure) {
        for waiter in std::mem::take(&mut self.inbox.state().attach_waiters) {
            let _gone = waiter.send(Err(failure.clone()));
        }
        self.wants_connection = false;
    }
}
