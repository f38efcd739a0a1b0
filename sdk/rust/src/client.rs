//! The client: append, read, tail and status of one group.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quorate_types::Offset;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{deadline_after, now_us};
use crate::entries::entries_from;
use crate::errors::{AppendError, ConnectError, ConnectFailed, ReadError, closed};
use crate::feed::feed_link;
use crate::handle::Handle;
use crate::handles::Handles;
use crate::inbox::{AppendCall, Inbox, InboxFeed, Reply};
use crate::limits::{READ_BYTES_DEFAULT, TAIL_CREDIT_BYTES};
use crate::link::Link;
use crate::options::{AppendOptions, Options};
use crate::pool::Pool;
use crate::reading::{ReadCall, ReadInbox, ReadPort};
use crate::reads::Ask;
use crate::results::{Appended, Page, Status};
use crate::tail::Tail;
use crate::writer::{Condition, Writer};

/// An append on its way: a future of its offset. Dropping it does not stop the append.
#[must_use = "only its outcome says whether it happened"]
pub struct Appending {
    answer: oneshot::Receiver<Result<Appended, AppendError>>,
}

impl Future for Appending {
    type Output = Result<Offset, AppendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| outcome(answer).map(|appended| appended.base_offset))
    }
}

/// A connection to one group; cheap to clone. When all clones are dropped, outstanding calls still end.
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    appends: Arc<Inbox>,
    reads: Arc<ReadInbox>,
    timeout: Duration,
    /// Clones of the client: the links end with the last.
    clones: AtomicUsize,
}

impl Client {
    /// Connects with a handle as the API gave it. Call within a tokio runtime.
    pub async fn connect(handle_json: &str) -> Result<Self, ConnectFailed> {
        let client = Self::open(Handle::parse(handle_json)?, Options::default());
        client.wait_attached().await?;
        Ok(client)
    }

    /// A client that connects when it is first used.
    pub fn open(handle: Handle, options: Options) -> Self {
        let handles = Arc::new(Handles::new(handle, options.handle_source));
        let appends = Arc::new(Inbox::default());
        let feed = InboxFeed::new(appends.clone());
        let writer = Writer::new(handles.current().0.limits, options.batching, rand::random());
        let writer = writer.with_answer_wait(options.answer_wait);
        let pool = options.connections.0;
        let link = feed_link(
            handles.clone(),
            writer,
            options.pace,
            feed,
            pool,
            appends.wake.clone(),
        );
        tokio::spawn(link.spinning(options.spin).run());
        let reads = Arc::new(ReadInbox::default());
        let port = ReadPort::new(reads.clone());
        let link = Link::new(port, handles, Pool::any_thread(), reads.wake.clone());
        tokio::spawn(link.spinning(options.spin).run());
        let inner = Inner {
            appends,
            reads,
            timeout: options.timeout,
            clones: AtomicUsize::new(1),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Waits until the group's head is attached, for the client's timeout at most.
    pub async fn wait_attached(&self) -> Result<(), ConnectError> {
        self.inner
            .appends
            .wait_attached(deadline_after(self.inner.timeout))
            .await
            .map_err(ConnectError)
    }

    // Appending.

    /// Appends one entry; the future gives its offset. The entry is queued by the call, not when the future is polled.
    /// Call it without awaiting each, and appends share batches. Entries are ordered as this was called.
    /// [`Client::ready`] now and then bounds the outstanding appends.
    pub fn append(&self, entry: impl Into<Bytes>) -> Appending {
        let (reply, answer) = oneshot::channel();
        let deadline = deadline_after(self.inner.timeout);
        let call = AppendCall::One { entry: entry.into() };
        self.inner.appends.push(call, deadline, Reply(reply));
        Appending { answer }
    }

    /// Appends entries that are ordered as one: all or none, with consecutive offsets.
    pub fn append_many(
        &self,
        entries: Vec<Bytes>,
        options: AppendOptions,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let deadline = deadline_after(options.timeout.unwrap_or(self.inner.timeout));
        let mut condition = Condition {
            fencing_token: options.fencing_token,
            ..Condition::NONE
        };
        if let Some(expected_offset) = options.expected_offset {
            condition.expected_offset = expected_offset;
        }
        self.inner
            .appends
            .push(AppendCall::Many { entries, condition }, deadline, Reply(reply));
        async { outcome(answer.await) }
    }

    /// Waits until few enough appends are outstanding: back-pressure for a producer in a loop.
    pub async fn ready(&self) {
        self.inner.appends.wait_ready().await;
    }

    // Reading.

    /// Committed entries from `offset` on, at most `max_entries` (0: as many as fit a page). If there is none yet, it
    /// waits up to `wait` and then returns none.
    pub async fn read(&self, offset: Offset, max_entries: u32, wait: Duration) -> Result<Page, ReadError> {
        let (reply, answer) = oneshot::channel();
        let now = now_us();
        let wait_until = now.saturating_add(wait.as_micros() as u64);
        let ask = Ask::Read {
            offset,
            max_bytes: READ_BYTES_DEFAULT,
            max_entries,
            wait_until,
        };
        let deadline = deadline_after(self.inner.timeout + wait);
        self.inner.reads.push(ReadCall::Page { ask, deadline, reply });
        let page = answer
            .await
            .unwrap_or_else(|_| Err(closed()))
            .map_err(ReadError)?;
        let mut entries = entries_from(&page, offset).map_err(|error| ReadError(error.into()))?;
        if max_entries > 0 {
            entries.truncate(max_entries as usize);
        }
        let next_offset = entries
            .last()
            .map_or(offset.max(page.next_offset), |entry| entry.offset + 1);
        Ok(Page {
            entries,
            next_offset,
            commit_offset: page.commit_offset,
            trim_offset: page.trim_offset,
        })
    }

    /// Follows the log from `offset` on.
    pub fn tail(&self, offset: Offset) -> Tail {
        let (sender, pages) = mpsc::unbounded_channel();
        let credit_bytes = TAIL_CREDIT_BYTES;
        self.inner.reads.push(ReadCall::Tail {
            offset,
            credit_bytes,
            sender,
        });
        Tail::new(pages, self.inner.reads.clone())
    }

    /// Discards the entries before `before_offset`, for good, on every replica; answers with the trim offset. Batches
    /// are discarded whole: it may be less than asked. Only committed entries can go (`TrimBeyondCommit`). A trim whose
    /// deadline passes may have happened; trimming again does no harm. It needs the permission to append.
    pub async fn trim(&self, before_offset: Offset) -> Result<Offset, ReadError> {
        let (reply, answer) = oneshot::channel();
        let deadline = deadline_after(self.inner.timeout);
        self.inner.reads.push(ReadCall::Trim {
            before_offset,
            deadline,
            reply,
        });
        answer.await.unwrap_or_else(|_| Err(closed())).map_err(ReadError)
    }

    /// The report of the group's head or, while the head cannot be reached, of another replica. The head answers when
    /// the whole ring has confirmed that it is still the head. Its `commit_offset` includes everything acknowledged
    /// before the call.
    pub async fn status(&self) -> Result<Status, ReadError> {
        let (reply, answer) = oneshot::channel();
        let deadline = deadline_after(self.inner.timeout);
        self.inner.reads.push(ReadCall::Status { deadline, reply });
        let status = answer
            .await
            .unwrap_or_else(|_| Err(closed()))
            .map_err(ReadError)?;
        Ok(status.into())
    }

    /// Waits for the outstanding appends, which end by their deadlines, and disconnects. Calls of other clones of
    /// this client are refused from now on.
    pub async fn close(self) {
        self.inner.finish();
        self.inner.appends.wait_ended().await;
    }
}

impl Inner {
    fn finish(&self) {
        self.appends.finish();
        self.reads.finish();
    }
}

impl Clone for Client {
    fn clone(&self) -> Self {
        self.inner.clones.fetch_add(1, Ordering::Relaxed);
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.inner.clones.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.inner.finish();
        }
    }
}

fn outcome<T>(answer: Result<Result<T, AppendError>, oneshot::error::RecvError>) -> Result<T, AppendError> {
    // The link's task ends without an answer only when its runtime was shut down.
    answer.unwrap_or_else(|_| Err(AppendError::Unknown(closed())))
}
