//! The tasks of a client's connection: frames in, to their groups; answers out when the socket takes more.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::ClientRef;
use quorate_group::{Refusal, Request};
use quorate_transport::{FrameReader, ReadFault, ReadHalf, WriteHalf};
use quorate_types::limits::{
    BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, CHANNELS_PER_CONNECTION_MAX, ENTRY_BYTES_MAX, FRAME_BYTES_MAX,
    HELLO_TIMEOUT_MS,
};
use quorate_types::{Code, GroupId};
use quorate_wire::client::{HelloOk, Message, kind};
use quorate_wire::{Frame, TraceContext};
use tokio::sync::Notify;

use super::Shard;
use super::connection::Connection;
use super::executor::Executor;
use super::read_batch::ReadBatch;
use crate::connection_slots::ConnectionSlot;
use crate::messages::{ClientMessage, ShardMessage};
use crate::shared::{attach_cost, frame_cost};

/// How long a connection may take to read its GOODBYE before it is closed.
const GOODBYE_GRACE: Duration = Duration::from_millis(500);

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
    /// The connection ends, with a reason for the client or without.
    NoMore(Option<Goodbye>),
}

impl Goodbye {
    /// `None`: the client is gone.
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

impl Shard {
    fn open_connection(&mut self, stream: Rc<WriteHalf>, version: u16) -> (u64, Rc<Notify>, Rc<Notify>) {
        let id = self.executor.clients.open(stream);
        let hello = Message::HelloOk(HelloOk {
            version,
            server_id: self.shared().server_id().0,
            frame_bytes_max: FRAME_BYTES_MAX,
            entry_bytes_max: ENTRY_BYTES_MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
            batch_entries_max: BATCH_ENTRIES_MAX,
        });
        self.executor.clients.send(Executor::connection_itself(id), hello);
        let connection = self.executor.clients.get(id).expect("just opened");
        (id, connection.close.clone(), connection.blocked.clone())
    }

    fn close_connection(&mut self, id: u64) {
        let Some(connection) = self.executor.clients.close(id) else {
            return;
        };
        for (channel, group_id) in connection.channels.groups() {
            let client = ClientRef {
                connection: id,
                channel,
            };
            self.pass_on(group_id, client, Request::Gone, Some(&connection));
        }
    }

    /// Hands a request to the group, on its shard. `closed`: its connection, if that is no longer listed.
    fn pass_on(
        &mut self,
        group_id: GroupId,
        client: ClientRef,
        request: Request,
        closed: Option<&Connection>,
    ) {
        let shards = &self.executor.shared.shards;
        let owner = shards.of_group(group_id);
        if owner == self.executor.shard {
            return self.group_request(group_id, client, request);
        }
        let connection = closed.or_else(|| self.executor.clients.get(client.connection));
        if let Some(backlog) = connection.map(|connection| connection.backlog.clone()) {
            let weight = backlog.asked(&request);
            let message = ClientMessage::Request {
                group_id,
                client,
                request,
                backlog,
                weight,
            };
            shards.send(owner, ShardMessage::Client(message));
        }
    }

    /// Frames that were read from a connection, in one turn.
    fn take_frames(&mut self, id: u64, reader: &mut FrameReader) -> Taken {
        self.begin_turn();
        let taken = self.take_each_frame(id, reader);
        self.end_turn();
        taken
    }

    fn take_each_frame(&mut self, id: u64, reader: &mut FrameReader) -> Taken {
        loop {
            match self.executor.clients.get(id) {
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
            Message::Cancel { request } => {
                self.executor.clients.forget_pages(client, Some(request));
                self.channel_message(client, message, None);
            }
            Message::Read { .. }
            | Message::Subscribe { .. }
            | Message::Credit { .. }
            | Message::Status { .. }
            | Message::Trim { .. } => self.channel_message(client, message, None),
            Message::Ping { nonce } => {
                self.executor.clients.send(client, Message::Pong { nonce });
                self.executor.clients.spend(id, frame_cost(0));
            }
            Message::Pong { .. } => {}
            Message::Detach => {
                self.executor.clients.spend(id, frame_cost(0));
                if let Some(group_id) = self.executor.clients.detach(client) {
                    self.pass_on(group_id, client, Request::Gone, None);
                }
            }
            Message::Goodbye { .. } => {
                if let Some(connection) = self.executor.clients.get(id) {
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

    fn attach(&mut self, client: ClientRef, group_id: GroupId, session: u64, token: &str) {
        let Some(connection) = self.executor.clients.get_mut(client.connection) else {
            return;
        };
        connection.spend(attach_cost());
        let shared = &self.executor.shared;
        let checked = if connection.channels.group_of(client.channel).is_some() {
            Err((Code::ProtocolError, Some("The channel is in use.".to_string())))
        } else if connection.channels.len() >= CHANNELS_PER_CONNECTION_MAX {
            Err((Code::TooManyChannels, None))
        } else {
            shared
                .access
                .check_client(token, group_id)
                .map_err(|code| (code, None))
        };
        match checked {
            Ok(token) => {
                let cost = shared.group_costs.get(group_id);
                let number = self.executor.clients.attach(
                    client,
                    group_id,
                    token.permission.project,
                    token.credential,
                    cost,
                );
                if let Some(number) = number {
                    let request = Request::Attach {
                        number,
                        session,
                        permission: token.permission,
                    };
                    self.pass_on(group_id, client, request, None);
                }
            }
            Err((code, detail)) => {
                let refusal = Refusal {
                    detail,
                    ..Refusal::new(kind::ATTACH, 0, code)
                };
                self.executor.clients.refuse(client, refusal);
            }
        }
    }

    fn channel_message(&mut self, client: ClientRef, message: Message, trace: Option<TraceContext>) {
        let is_metered = !self.executor.clients.is_unmetered();
        let connection = self.executor.clients.get_mut(client.connection);
        let group_id = connection.and_then(|connection| match is_metered {
            true => connection.charge(client.channel, &message),
            false => connection.channels.group_of(client.channel),
        });
        match group_id {
            Some(group_id) => self.pass_on(group_id, client, Request::Message { message, trace }, None),
            None => {
                let refusal = Refusal::without_group(&message, Code::UnknownChannel);
                self.executor.clients.refuse(client, refusal);
            }
        }
    }

    fn say_goodbye(&mut self, id: u64, goodbye: &Goodbye) {
        let message = format!("{} {}", goodbye.detail, goodbye.code.explanation());
        let message = Message::Goodbye {
            code: goodbye.code as u16,
            message,
        };
        self.executor
            .clients
            .send(Executor::connection_itself(id), message);
    }
}

/// Serves one connection whose HELLO was read, until it ends.
pub async fn run(
    shard: Rc<RefCell<Shard>>,
    (mut read_half, write_half): (ReadHalf, WriteHalf),
    rest: Bytes,
    slot: ConnectionSlot,
    version: u16,
) {
    let stream = Rc::new(write_half);
    let (id, close, blocked) = shard.borrow_mut().open_connection(stream.clone(), version);
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
        let is_empty = (shard.borrow().executor.clients.get(id)).is_none_or(|c| c.channels.len() == 0);
        if is_empty && was_empty {
            return;
        }
        was_empty = is_empty;
    }
}

/// Frames in, until the client closes (`None`) or sends a frame that ends the connection.
async fn read_frames(
    shard: &Rc<RefCell<Shard>>,
    id: u64,
    stream: &mut ReadHalf,
    reader: &mut FrameReader,
) -> Option<Goodbye> {
    // Taken from the socket in the last turn.
    let (mut bytes, mut batch) = (0, ReadBatch::default());
    loop {
        loop {
            let taken = shard.borrow_mut().take_frames(id, reader);
            match taken {
                Taken::All => break,
                Taken::UntilAhead => until_behind(shard, id).await?,
                Taken::NoMore(goodbye) => return goodbye,
            }
        }
        shard.borrow_mut().executor.clients.settle(id, bytes);
        batch.goes_on(shard, bytes).await;
        match batch.await_more(read_in_turn(shard, id, stream, reader)).await {
            Ok(read) => bytes = read,
            Err(fault) => return Goodbye::of(fault),
        }
    }
}

/// Waits while the client does not take its answers, or other shards have yet to take in its requests; `None` when it is
/// gone.
async fn until_behind(shard: &Rc<RefCell<Shard>>, id: u64) -> Option<()> {
    shard.borrow_mut().executor.clients.block(id);
    while shard.borrow().executor.clients.get(id)?.is_ahead() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    shard.borrow_mut().executor.clients.unblock(id);
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
        let Some(bytes_max) = shard.borrow_mut().executor.clients.turn(id, context) else {
            return Poll::Pending;
        };
        let read = reader.poll_fill_from(context, stream, bytes_max);
        if read.is_pending() {
            // Nothing was there: the turn is another's.
            shard.borrow().executor.clients.call_readers();
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
        shard.borrow_mut().executor.clients.mark(id);
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod fair_tests;

#[cfg(test)]
#[path = "page_tests.rs"]
mod page_tests;

#[cfg(test)]
#[path = "client_task_tests.rs"]
mod tests;
