//! Connections of clients: greeting, frames in, channels, and the tasks that read and write.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::ClientRef;
use quorate_qos::Tenant;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf};
use quorate_types::ids::IdMap;
use quorate_types::limits::{
    BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, CHANNELS_PER_CONNECTION_MAX, CLIENT_OUTBOX_BYTES_MAX,
    ENTRY_BYTES_MAX, FRAME_BYTES_MAX, HELLO_TIMEOUT_MS,
};
use quorate_types::{Code, GroupId};
use quorate_wire::client::{HelloOk, Message, VERSION, kind};
use quorate_wire::{Frame, TraceContext};
use tokio::sync::Notify;

use crate::shard::crossing::Backlog;
use crate::shard::fair::{Terms, attach_cost, frame_cost, tenant_of};
use crate::shard::io::{Io, Refusal};
use crate::shard::stretch::Stretch;
use crate::shard::{ClientRequest, Shard, ShardMessage};
use crate::shared::Slot;

/// How long a connection may take to read its GOODBYE before it is cut.
const GOODBYE_GRACE: Duration = Duration::from_millis(500);

pub struct Connection {
    pub stream: Rc<WriteHalf>,
    pub outbox: Outbox,
    pub is_dirty: bool,
    /// The socket took less than there is: the writer task goes on when it can.
    pub blocked: Rc<Notify>,
    pub close: Rc<Notify>,
    is_cut: Cell<bool>,
    channels: Channels,
    /// What is on its way to groups of other shards, and from them.
    pub backlog: Arc<Backlog>,
    /// Of the first group that it attached.
    pub tenant: Option<Tenant>,
    /// What was done for it and is not charged yet, in thousandths of tokens.
    pub spent: [u64; 3],
    /// It has something to be read, and it is not its turn.
    pub waits_for_turn: Option<Waker>,
}

impl Connection {
    /// Ends it without a word: there is no room for one. The operator is told once, the client finds its connection lost.
    pub fn cut(&self, why: &'static str) {
        if !self.is_cut.replace(true) {
            tracing::info!(why, "cut off a client");
        }
        self.close.notify_one();
    }

    fn is_ahead(&self) -> bool {
        self.outbox.len() > CLIENT_OUTBOX_BYTES_MAX || self.backlog.is_full_of_requests()
    }

    /// Charges a message; the group that it is for.
    fn pay(&mut self, channel: u32, message: &Message) -> Option<GroupId> {
        let of = self.channels.attached.get(&channel);
        let group_id = of.map(|of| of.group_id);
        let terms = of.and_then(|of| of.terms.as_ref());
        let cost = match (message, terms) {
            (Message::Append(append), Some(terms)) => terms.cost(append.entry_count, append.payload.len()),
            (Message::Append(append), None) => frame_cost(append.payload.len()),
            _ => frame_cost(0),
        };
        self.spend(cost);
        group_id
    }

    pub fn spend(&mut self, cost: [u64; 3]) {
        for (sum, more) in self.spent.iter_mut().zip(cost) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Of the groups that it has attached.
    pub fn weights(&self) -> impl Iterator<Item = (GroupId, u64)> {
        let attached = self.channels.attached.values();
        attached.filter_map(|of| Some((of.group_id, of.terms.as_ref()?.weight())))
    }
}

/// Which group each channel of a connection has attached.
#[derive(Default)]
struct Channels {
    attached: IdMap<u32, Attachment>,
    attachments: u64,
}

struct Attachment {
    group_id: GroupId,
    /// Of the connection's, in order: a refusal frees the channel only while it is still this one's.
    number: u64,
    /// `None` of a group that was not here.
    terms: Option<Arc<Terms>>,
}

impl Channels {
    fn attach(&mut self, channel: u32, group_id: GroupId, terms: Option<Arc<Terms>>) -> u64 {
        self.attachments += 1;
        let number = self.attachments;
        let attachment = Attachment {
            group_id,
            number,
            terms,
        };
        self.attached.insert(channel, attachment);
        number
    }

    fn detach(&mut self, channel: u32) -> Option<GroupId> {
        self.attached.remove(&channel).map(|of| of.group_id)
    }

    /// The client may have detached the channel meanwhile, and attached a group again.
    fn refused(&mut self, channel: u32, number: u64) {
        if self.attached.get(&channel).is_some_and(|of| of.number == number) {
            self.attached.remove(&channel);
        }
    }

    fn group_of(&self, channel: u32) -> Option<GroupId> {
        self.attached.get(&channel).map(|of| of.group_id)
    }
}

/// Why the server ends a connection.
struct Goodbye {
    code: Code,
    detail: String,
}

/// How far the frames were taken in that a connection has sent.
enum Taken {
    All,
    /// Back-pressure: who does not read its answers is not read from either, nor who asks faster than groups of other
    /// shards take it in.
    UntilAhead,
    /// The connection ends, with a reason to be told or without.
    NoMore(Option<Goodbye>),
}

impl Goodbye {
    /// `None`: nobody is there to be told.
    fn of(fault: ReadFault) -> Option<Self> {
        match fault {
            ReadFault::Wire(e) => Some(Self {
                code: e.code(),
                detail: e.to_string(),
            }),
            ReadFault::Closed | ReadFault::Io(_) => None,
        }
    }
}

impl Io {
    /// The group did not take the channel: before the client hears of that, the channel is free. `number` is that of
    /// the [`ClientRequest::Attach`].
    pub fn free_channel(&mut self, client: ClientRef, number: u64) {
        let owner = self.shard_of_connection(client);
        if owner != self.shard {
            let message = ShardMessage::NotAttached { client, number };
            self.shared.send(owner, message);
        } else if let Some(connection) = self.connections.get_mut(&client.connection) {
            connection.channels.refused(client.channel, number);
        }
    }

    /// The channel is free again, for another ATTACH. Nothing more is sent to it: its connection, which has forgotten
    /// it, will not say that it is gone.
    pub fn refuse_attach(&mut self, client: ClientRef, number: u64, code: Code) {
        self.free_channel(client, number);
        self.refuse(client, Refusal::new(kind::ATTACH, 0, code));
        self.crossings.forget(client);
    }
}

impl Shard {
    fn open_connection(&mut self, stream: Rc<WriteHalf>) -> u64 {
        let id = self.io.new_connection_id();
        let connection = Connection {
            stream,
            outbox: Outbox::default(),
            is_dirty: false,
            blocked: Rc::new(Notify::new()),
            close: Rc::new(Notify::new()),
            is_cut: Cell::new(false),
            channels: Channels::default(),
            backlog: Arc::default(),
            tenant: None,
            spent: [0; 3],
            waits_for_turn: None,
        };
        self.io.connections.insert(id, connection);
        self.io.join_strangers(id);
        let hello = Message::HelloOk(HelloOk {
            version: VERSION,
            server_id: self.io.shared.server_id().0,
            frame_bytes_max: FRAME_BYTES_MAX,
            entry_bytes_max: ENTRY_BYTES_MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
            batch_entries_max: BATCH_ENTRIES_MAX,
        });
        self.io.send_client(
            ClientRef {
                connection: id,
                channel: 0,
            },
            hello,
        );
        id
    }

    fn close_connection(&mut self, id: u64) {
        self.io.fair.leave(id);
        self.io.call_readers();
        let Some(connection) = self.io.connections.remove(&id) else {
            return;
        };
        for (channel, Attachment { group_id, .. }) in connection.channels.attached {
            let client = ClientRef {
                connection: id,
                channel,
            };
            self.pass_with(group_id, client, ClientRequest::Gone, Some(&connection.backlog));
        }
    }

    /// Hands a request to the group, on whichever shard it lives.
    fn pass_to_group(&mut self, group_id: GroupId, client: ClientRef, request: ClientRequest) {
        self.pass_with(group_id, client, request, None);
    }

    /// `backlog`: of a connection that is no longer listed.
    fn pass_with(
        &mut self,
        group_id: GroupId,
        client: ClientRef,
        request: ClientRequest,
        backlog: Option<&Arc<Backlog>>,
    ) {
        let owner = self.io.shared.shard_of_group(group_id);
        if owner == self.io.shard {
            self.group_request(group_id, client, request);
        } else {
            let Some(backlog) =
                backlog.or_else(|| self.io.connections.get(&client.connection).map(|c| &c.backlog))
            else {
                return;
            };
            let message = ShardMessage::FromClient {
                group_id,
                client,
                weight: backlog.asked(&request),
                request,
                backlog: backlog.clone(),
            };
            self.io.shared.send(owner, message);
        }
    }

    pub fn group_request(&mut self, group_id: GroupId, client: ClientRef, request: ClientRequest) {
        if let Some(group) = self.groups.get_mut(&group_id) {
            group.client_request(&mut self.io, client, request);
            group.mark(&mut self.io);
            return;
        }
        let code = if self.lost.contains(&group_id) {
            Code::GroupLost
        } else {
            Code::GroupNotHere
        };
        match &request {
            ClientRequest::Gone => {}
            ClientRequest::Attach { number, .. } => self.io.refuse_attach(client, *number, code),
            ClientRequest::Message { message, .. } => {
                let (op, id) = refused_as(message);
                self.io.refuse(client, Refusal::new(op, id, code));
            }
        }
    }

    /// What was read from a connection, in one turn.
    fn take_frames(&mut self, id: u64, reader: &mut FrameReader) -> Taken {
        self.io.begin_turn();
        let taken = self.take_each_frame(id, reader);
        self.io.end_turn();
        taken
    }

    fn take_each_frame(&mut self, id: u64, reader: &mut FrameReader) -> Taken {
        loop {
            match self.io.connections.get(&id) {
                None => return Taken::NoMore(None),
                Some(connection) if connection.is_ahead() => return Taken::UntilAhead,
                Some(_) => {}
            }
            match reader.next_frame() {
                Ok(Some(frame)) => {
                    if let Err(goodbye) = self.client_frame(id, &frame) {
                        return Taken::NoMore(Some(goodbye));
                    }
                }
                Ok(None) => return Taken::All,
                Err(fault) => return Taken::NoMore(Goodbye::of(fault)),
            }
        }
    }

    fn client_frame(&mut self, id: u64, frame: &Frame) -> Result<(), Goodbye> {
        let message = Message::decode(frame).map_err(|e| Goodbye {
            code: e.code(),
            detail: e.to_string(),
        })?;
        let client = ClientRef {
            connection: id,
            channel: frame.channel,
        };
        match message {
            Message::Attach {
                group_id,
                session,
                token,
            } => self.attach(client, group_id, session, &token),
            Message::Append(append) => {
                if crc32fast::hash(&append.payload) != append.payload_crc {
                    let detail = "The payload of an APPEND does not match its CRC.".to_string();
                    return Err(Goodbye {
                        code: Code::ChecksumMismatch,
                        detail,
                    });
                }
                self.channel_message(client, Message::Append(append), frame.trace);
            }
            Message::Read { .. }
            | Message::Subscribe { .. }
            | Message::Credit { .. }
            | Message::Cancel { .. }
            | Message::Status { .. }
            | Message::Trim { .. } => self.channel_message(client, message, None),
            Message::Ping { nonce } => {
                self.io.send_client(client, Message::Pong { nonce });
                self.spend(id, frame_cost(0));
            }
            Message::Pong { .. } => {}
            Message::Detach => {
                self.spend(id, frame_cost(0));
                let connection = self.io.connections.get_mut(&id);
                if let Some(group_id) = connection.and_then(|c| c.channels.detach(client.channel)) {
                    self.pass_to_group(group_id, client, ClientRequest::Gone);
                }
            }
            Message::Goodbye { .. } => {
                if let Some(connection) = self.io.connections.get(&id) {
                    connection.close.notify_one();
                }
            }
            other => {
                let detail = format!("A client does not send frames of kind {}.", other.kind());
                return Err(Goodbye {
                    code: Code::ProtocolError,
                    detail,
                });
            }
        }
        Ok(())
    }

    fn spend(&mut self, id: u64, cost: [u64; 3]) {
        if let Some(connection) = self.io.connections.get_mut(&id) {
            connection.spend(cost);
        }
    }

    fn attach(&mut self, client: ClientRef, group_id: GroupId, session: u64, token: &str) {
        let Some(connection) = self.io.connections.get_mut(&client.connection) else {
            return;
        };
        connection.spend(attach_cost());
        let refusal = if connection.channels.group_of(client.channel).is_some() {
            Err((Code::ProtocolError, Some("The channel is in use.".to_string())))
        } else if connection.channels.attached.len() >= CHANNELS_PER_CONNECTION_MAX {
            Err((Code::TooManyChannels, None))
        } else {
            let keys = self.io.shared.client_keys.read().expect("keys");
            keys.check_client(token, group_id).map_err(|code| (code, None))
        };
        match refusal {
            Ok(permission) => {
                let terms = self.io.shared.terms_of(group_id);
                let weight = terms.as_ref().map_or(0, |terms| terms.weight());
                let is_first = connection.tenant.is_none();
                let of_this = tenant_of(permission.project, group_id);
                let tenant = *connection.tenant.get_or_insert(of_this);
                let request = ClientRequest::Attach {
                    number: connection.channels.attach(client.channel, group_id, terms),
                    session,
                    permission,
                };
                if is_first {
                    self.io.fair.join(client.connection, tenant);
                }
                self.io.fair.raise_weight(tenant, weight);
                self.pass_to_group(group_id, client, request);
            }
            Err((code, detail)) => {
                let mut refusal = Refusal::new(kind::ATTACH, 0, code);
                refusal.detail = detail;
                self.io.refuse(client, refusal);
            }
        }
    }

    fn channel_message(&mut self, client: ClientRef, message: Message, trace: Option<TraceContext>) {
        let is_isolated = !self.io.shared.is_unisolated();
        let connection = self.io.connections.get_mut(&client.connection);
        let group_id = connection.and_then(|c| {
            if is_isolated {
                c.pay(client.channel, &message)
            } else {
                c.channels.group_of(client.channel)
            }
        });
        match group_id {
            Some(group_id) => self.pass_to_group(group_id, client, ClientRequest::Message { message, trace }),
            None => {
                let (op, id) = refused_as(&message);
                self.io.refuse(client, Refusal::new(op, id, Code::UnknownChannel));
            }
        }
    }

    fn say_goodbye(&mut self, id: u64, goodbye: &Goodbye) {
        let message = format!("{} {}", goodbye.detail, goodbye.code.explanation());
        let message = Message::Goodbye {
            code: goodbye.code as u16,
            message,
        };
        self.io.send_client(
            ClientRef {
                connection: id,
                channel: 0,
            },
            message,
        );
    }
}

/// The `op` and `id` under which a message is refused.
fn refused_as(message: &Message) -> (u8, u64) {
    let id = match message {
        Message::Append(append) => append.seq,
        Message::Read { request, .. }
        | Message::Subscribe { request, .. }
        | Message::Credit { request, .. }
        | Message::Cancel { request }
        | Message::Trim { request, .. }
        | Message::Status { request } => u64::from(*request),
        _ => 0,
    };
    (message.kind(), id)
}

/// Serves one connection whose HELLO was read, until it ends.
pub async fn run(
    shard: Rc<RefCell<Shard>>,
    (mut read_half, write_half): (ReadHalf, WriteHalf),
    rest: Bytes,
    slot: Slot,
) {
    let stream = Rc::new(write_half);
    let id = shard.borrow_mut().open_connection(stream.clone());
    let (close, blocked) = {
        let shard = shard.borrow();
        let connection = &shard.io.connections[&id];
        (connection.close.clone(), connection.blocked.clone())
    };
    let writer = tokio::task::spawn_local(write_when_possible(shard.clone(), id, stream.clone(), blocked));
    let mut reader = FrameReader::with_rest(&rest, FRAME_BYTES_MAX);
    tokio::select! {
        biased;
        () = close.notified() => {}
        () = until_useless(&shard, id) => {
            tracing::info!("closed a client's connection on which no group was attached for a while");
        }
        goodbye = read_frames(&shard, id, &mut read_half, &mut reader) => {
            if let Some(goodbye) = goodbye {
                shard.borrow_mut().say_goodbye(id, &goodbye);
                tokio::time::sleep(GOODBYE_GRACE).await;
            }
        }
    }
    writer.abort();
    stream.close();
    shard.borrow_mut().close_connection(id);
    drop(slot);
}

/// Ends when the connection has had no group attached for a while: it holds a place that others may need.
async fn until_useless(shard: &Rc<RefCell<Shard>>, id: u64) {
    let mut was_empty = false;
    loop {
        tokio::time::sleep(Duration::from_millis(HELLO_TIMEOUT_MS)).await;
        let is_empty = (shard.borrow().io.connections)
            .get(&id)
            .is_none_or(|c| c.channels.attached.is_empty());
        if is_empty && was_empty {
            return;
        }
        was_empty = is_empty;
    }
}

/// Frames in, until the client closes (`None`) or must be told off.
async fn read_frames(
    shard: &Rc<RefCell<Shard>>,
    id: u64,
    stream: &mut ReadHalf,
    reader: &mut FrameReader,
) -> Option<Goodbye> {
    // Taken from the socket in the last turn.
    let (mut bytes, mut stretch) = (0, Stretch::default());
    loop {
        loop {
            let taken = shard.borrow_mut().take_frames(id, reader);
            match taken {
                Taken::All => break,
                Taken::UntilAhead => until_behind(shard, id).await?,
                Taken::NoMore(goodbye) => return goodbye,
            }
        }
        shard.borrow_mut().io.settle(id, bytes);
        stretch.goes_on(shard, bytes).await;
        match stretch.await_more(read_in_turn(shard, id, stream, reader)).await {
            Ok(read) => bytes = read,
            Err(fault) => return Goodbye::of(fault),
        }
    }
}

/// Waits while the client does not take its answers, or others have too much of its requests; `None` when it is gone.
async fn until_behind(shard: &Rc<RefCell<Shard>>, id: u64) -> Option<()> {
    {
        let io = &mut shard.borrow_mut().io;
        io.settle(id, 0);
        io.fair.block(id);
    }
    while shard.borrow().io.connections.get(&id)?.is_ahead() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    shard.borrow_mut().io.fair.unblock(id);
    Some(())
}

/// Waits until there is something to be read and it is the connection's turn, and reads. Until then bytes stay in the
/// socket.
async fn read_in_turn(
    shard: &Rc<RefCell<Shard>>,
    id: u64,
    stream: &mut ReadHalf,
    reader: &mut FrameReader,
) -> Result<usize, ReadFault> {
    poll_fn(|context| {
        let _read_tells = ready!(stream.poll_readable(context)).is_err();
        let Some(bytes_max) = shard.borrow_mut().io.turn(id, context) else {
            return Poll::Pending;
        };
        let read = reader.poll_fill_from(context, stream, bytes_max);
        if read.is_pending() {
            // Nothing was there: the turn is another's.
            shard.borrow().io.call_readers();
        }
        read
    })
    .await
}

async fn write_when_possible(shard: Rc<RefCell<Shard>>, id: u64, stream: Rc<WriteHalf>, blocked: Rc<Notify>) {
    loop {
        blocked.notified().await;
        if stream.writable().await.is_err() {
            return;
        }
        shard.borrow_mut().io.mark_connection(id);
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod fair_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_late_refusal_leaves_alone_what_was_attached_since() {
        let (group, mut channels) = (GroupId(Uuid::from_u128(7)), Channels::default());
        let first = channels.attach(1, group, None);
        assert_eq!(channels.detach(1), Some(group));
        let second = channels.attach(1, group, None);
        channels.refused(1, first);
        assert_eq!(channels.group_of(1), Some(group), "the group may hold it");
        channels.refused(1, second);
        assert_eq!(channels.group_of(1), None, "free for another");
        channels.refused(1, second);
    }
}
