//! Connections of clients: greeting, frames in, channels, and the tasks that read and write.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::ClientRef;
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
use crate::shard::io::{Io, Refusal};
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
    channels: Channels,
    /// What is on its way to groups of other shards, and from them.
    pub backlog: Arc<Backlog>,
}

impl Connection {
    fn is_ahead(&self) -> bool {
        self.outbox.len() > CLIENT_OUTBOX_BYTES_MAX || self.backlog.is_full_of_requests()
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
}

impl Channels {
    fn attach(&mut self, channel: u32, group_id: GroupId) -> u64 {
        self.attachments += 1;
        let number = self.attachments;
        self.attached.insert(channel, Attachment { group_id, number });
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
            channels: Channels::default(),
            backlog: Arc::default(),
        };
        self.io.connections.insert(id, connection);
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
            Message::Ping { nonce } => self.io.send_client(client, Message::Pong { nonce }),
            Message::Pong { .. } => {}
            Message::Detach => {
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

    fn attach(&mut self, client: ClientRef, group_id: GroupId, session: u64, token: &str) {
        let Some(connection) = self.io.connections.get_mut(&client.connection) else {
            return;
        };
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
                let request = ClientRequest::Attach {
                    number: connection.channels.attach(client.channel, group_id),
                    session,
                    permission,
                };
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
        let connection = self.io.connections.get(&client.connection);
        match connection.and_then(|c| c.channels.group_of(client.channel)) {
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
        () = until_useless(&shard, id) => {}
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
    loop {
        loop {
            // Back-pressure: who does not read its answers is not read from either, nor who asks faster than groups
            // of other shards take it in.
            while shard.borrow().io.connections.get(&id)?.is_ahead() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            match reader.next_frame() {
                Ok(Some(frame)) => {
                    if let Err(goodbye) = shard.borrow_mut().client_frame(id, &frame) {
                        return Some(goodbye);
                    }
                }
                Ok(None) => break,
                Err(ReadFault::Wire(e)) => {
                    return Some(Goodbye {
                        code: e.code(),
                        detail: e.to_string(),
                    });
                }
                Err(ReadFault::Closed | ReadFault::Io(_)) => return None,
            }
        }
        match reader.fill_from(stream).await {
            Ok(()) => {}
            Err(ReadFault::Wire(e)) => {
                return Some(Goodbye {
                    code: e.code(),
                    detail: e.to_string(),
                });
            }
            Err(ReadFault::Closed | ReadFault::Io(_)) => return None,
        }
    }
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
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_late_refusal_leaves_alone_what_was_attached_since() {
        let (group, mut channels) = (GroupId(Uuid::from_u128(7)), Channels::default());
        let first = channels.attach(1, group);
        assert_eq!(channels.detach(1), Some(group));
        let second = channels.attach(1, group);
        channels.refused(1, first);
        assert_eq!(channels.group_of(1), Some(group), "the group may hold it");
        channels.refused(1, second);
        assert_eq!(channels.group_of(1), None, "free for another");
        channels.refused(1, second);
    }
}
