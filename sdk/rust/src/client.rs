//! The client: append, read, tail and status of one group.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quorate_types::config::{GroupState, Role};
use quorate_types::{Epoch, Offset};
use quorate_wire::client::StatusOk;
use tokio::sync::{mpsc, oneshot};

use crate::carriers::Carriers;
use crate::clock::{deadline_after, now_us};
use crate::codes::client_side;
use crate::entries::{Entry, entries_from};
use crate::errors::{AppendError, ConnectError, Failure, HandleError, ReadError};
use crate::feed::{FeedPort, feed_link};
use crate::handle::Handle;
use crate::handles::{HandleSource, Handles};
use crate::inbox::{AppendCall, Inbox, InboxFeed, Reply};
use crate::limits::{ANSWER_WAIT, READ_BYTES_DEFAULT, TAIL_CREDIT_BYTES, TIMEOUT_DEFAULT};
use crate::link::Link;
use crate::reading::{ReadCall, ReadInbox, ReadPort};
use crate::reads::Ask;
use crate::writer::{Batching, Condition, Writer};

/// How a client behaves; `Options::default()` suits most.
#[derive(Clone)]
pub struct Options {
    /// Deadline of calls that name none.
    pub timeout: Duration,
    /// How long what was sent may have no answer, beyond the deadline of whoever waited for it, before it is asked
    /// after on a new connection. When that has been in vain a few times, what was sent behind it is unknown
    /// (`no_answer`), and appends go on in a new session.
    pub answer_wait: Duration,
    pub batching: Batching,
    /// What is beyond the rate that the head tells waits here; without, it is sent, and waits or is refused there.
    pub pace: bool,
    /// While an answer is awaited, it is looked for so long before the client sleeps: saves a wake-up for each answer,
    /// and costs a core of the runtime meanwhile. Zero by default.
    pub spin: Duration,
    /// Clients that were given clones of it append over shared connections, one to each server: right for a program
    /// that appends to many groups. By default a client has connections of its own, as its clones have.
    pub connections: Connections,
    /// Where a fresh handle comes from, when a token expires or the group moves.
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
/// their answers come together. Clients that share them must live on one runtime. Reading is not shared: who reads
/// much would hold up others' answers.
#[derive(Clone)]
pub struct Connections(Carriers<FeedPort<InboxFeed>>);

impl Default for Connections {
    fn default() -> Self {
        Self(Carriers::any_thread())
    }
}

/// What an append asks for besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct AppendOptions {
    pub timeout: Option<Duration>,
    /// Append only if the first entry would get this offset.
    pub expected_offset: Option<Offset>,
    /// Refuse if a greater token has been used on the group; 0: none.
    pub fencing_token: u64,
}

/// Entries that were ordered as one: they have `count` consecutive offsets from `base_offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub count: u32,
}

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

/// A page of committed entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// To be read next.
    pub next_offset: Offset,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
}

/// What a replica knows of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `None`: one that this client does not know.
    pub role: Option<Role>,
    pub state: Option<GroupState>,
    pub epoch: Epoch,
    pub commit_offset: Offset,
    pub durable_offset: Offset,
    pub trim_offset: Offset,
    pub next_offset: Offset,
    pub head_address: String,
}

/// A connection to one group; cheap to clone. When all clones are dropped, what is outstanding still ends.
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
        let carriers = options.connections.0;
        let link = feed_link(
            handles.clone(),
            writer,
            options.pace,
            feed,
            carriers,
            appends.wake.clone(),
        );
        tokio::spawn(link.spinning(options.spin).run());
        let reads = Arc::new(ReadInbox::default());
        let port = ReadPort::new(reads.clone());
        let link = Link::new(port, handles, Carriers::any_thread(), reads.wake.clone());
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

    /// Appends one entry; the future gives its offset. The entry is queued when this is called, not when the future
    /// is polled: call it without awaiting each, and appends share batches. Entries are ordered as this was called.
    /// [`Client::ready`] now and then bounds what is outstanding.
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

    /// Waits until few enough appends are outstanding to go on: back-pressure for a producer in a loop.
    pub async fn ready(&self) {
        self.inner.appends.wait_ready().await;
    }

    // Reading.

    /// Committed entries from `offset` on, at most `max_entries` (0: as many as fit a page). With none there yet,
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
        Tail {
            pages,
            inbox: self.inner.reads.clone(),
            request: None,
            rest: Vec::new().into_iter(),
        }
    }

    /// Discards what lies before `before_offset`, for good, on every replica; answers with the trim offset. Batches
    /// are discarded whole: it may be less than asked. Only what is committed can go (`TrimBeyondCommit`). When the
    /// deadline passes it may have happened all the same; trimming again does no harm. Needs the permission to append.
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

    /// What the group's head or, while it cannot be reached, another replica knows. The head answers when the whole
    /// ring has confirmed that it still is the head: its `commit_offset` takes in everything that was acknowledged
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

/// Why [`Client::connect`] gave no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectFailed {
    #[error(transparent)]
    Handle(#[from] HandleError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// A page of a tail: its request, the next entries, the credit due when they are consumed.
pub(crate) type TailPage = Result<(u32, Vec<Entry>, u32), Failure>;

/// The entries of a log from an offset on, as they are committed. Survives the loss of a replica without gap or
/// duplicate. Ends with an error when the log cannot be followed any more, for example because the offset was
/// trimmed.
pub struct Tail {
    pages: mpsc::UnboundedReceiver<TailPage>,
    inbox: Arc<ReadInbox>,
    request: Option<u32>,
    rest: std::vec::IntoIter<Entry>,
}

impl Tail {
    /// The next entry.
    pub async fn next(&mut self) -> Result<Entry, ReadError> {
        loop {
            if let Some(entry) = self.rest.next() {
                return Ok(entry);
            }
            self.rest = self.next_entries().await?.into_iter();
        }
    }

    /// The entries that came next, at least one: quicker than one by one.
    pub async fn next_entries(&mut self) -> Result<Vec<Entry>, ReadError> {
        let rest: Vec<Entry> = self.rest.by_ref().collect();
        if !rest.is_empty() {
            return Ok(rest);
        }
        loop {
            let page = self.pages.recv().await.unwrap_or_else(|| Err(closed()));
            let (request, entries, bytes) = page.map_err(ReadError)?;
            self.request = Some(request);
            self.inbox.push(ReadCall::Consumed { request, bytes });
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // One that never got a page is noticed when its first one finds nobody.
        if let Some(request) = self.request {
            self.inbox.push(ReadCall::Cancel { request });
        }
    }
}

impl From<StatusOk> for Status {
    fn from(status: StatusOk) -> Self {
        use GroupState::{Active, Degraded, Lost, Paused, ReadOnly, Syncing};
        use Role::{Follower, Head, Learner, None, Sole, Tail};
        let roles = [None, Head, Follower, Tail, Learner, Sole];
        let states = [Active, Degraded, Paused, ReadOnly, Lost, Syncing];
        Self {
            role: roles.into_iter().find(|role| *role as u8 == status.role),
            state: states.into_iter().find(|state| *state as u8 == status.state),
            epoch: status.epoch,
            commit_offset: status.commit_offset,
            durable_offset: status.durable_offset,
            trim_offset: status.trim_offset,
            next_offset: status.next_offset,
            head_address: status.head_address,
        }
    }
}

fn outcome<T>(answer: Result<Result<T, AppendError>, oneshot::error::RecvError>) -> Result<T, AppendError> {
    // The link's task is gone without a word only when its runtime was shut down.
    answer.unwrap_or_else(|_| Err(AppendError::Unknown(closed())))
}

fn closed() -> Failure {
    Failure::new(client_side::CLIENT_CLOSED, "")
}
