//! Clients' requests to a group and its answers: noted, checked, carried.

use bytes::BytesMut;
use quorate_chain::ClientRef;
use quorate_group::{Event, Outputs, Request, refuse_absent};
use quorate_types::{GroupId, Offset};
use quorate_wire::client::{Message, Refused, kind};
use quorate_wire::decode_frame;

use super::transcript::{Channel, Requested, Transcript};
use crate::client::{Who, permission_of};
use crate::invariants;
use crate::world::World;

#[derive(Debug)]
pub struct FromClient {
    pub connection: u64,
    /// The end of the committed log when it was sent.
    pub end_offset: Offset,
    /// `None`: the connection is gone.
    pub message: Option<Message>,
}

/// The message that a group takes in just now.
#[derive(Debug)]
pub struct Delivered {
    pub client: ClientRef,
    pub message: Message,
}

impl World {
    pub fn from_client(&mut self, s: usize, who: Who, from: FromClient) {
        let group_id = Self::group_id(self.group_of_client(who));
        let client = ClientRef {
            connection: from.connection,
            channel: who.channel(),
        };
        if from.message.is_some() && self.aborted.contains(&from.connection) {
            return;
        }
        let message = from.message.filter(|message| *message != Message::Detach);
        let request = self.servers[s].request_of(&message);
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            let mut out = Outputs::default();
            let is_lost = self.servers[s].lost.contains(&group_id);
            refuse_absent(client, &request, is_lost, &mut out);
            return self.carry_out_all(s, group_id, &mut out);
        };
        match message {
            None => hosted.transcript.forget(client.connection),
            Some(message) => {
                hosted.transcript.note(client, &message, from.end_offset);
                self.servers[s].delivered = Some(Delivered { client, message });
            }
        }
        self.step(s, group_id, Event::Request { client, request });
    }

    /// A group answers a client, or tells it something.
    pub(super) fn answer(&mut self, s: usize, group_id: GroupId, client: ClientRef, message: &Message) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || {
            let text = crate::trace::brief(message);
            format!(
                "s{} → client {} on {}: {text}",
                s + 1,
                client.channel,
                client.connection
            )
        });
        invariants::before_message(self, s, g, client, message);
        if let Some(hosted) = self.servers[s].groups.get_mut(&group_id) {
            hosted.transcript.answered(client, message);
        }
        match message {
            Message::StatusOk(_) | Message::TrimOk { .. } => self.counts.answers += 1,
            Message::Refused(refused) => self.counts.refused(refused.code),
            _ => {}
        }
        self.respond(s, client, message);
    }

    pub(super) fn answer_acks(
        &mut self,
        s: usize,
        group_id: GroupId,
        client: ClientRef,
        acks: &[(ClientRef, u64, Offset)],
    ) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || {
            let acks: Vec<_> = acks.iter().map(|(_, seq, offset)| (seq, offset)).collect();
            format!("s{} acks client {}: {acks:?}", s + 1, client.channel)
        });
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it acks");
        if let Some(session) = hosted.group.session_of(client) {
            for (_, seq, _) in acks {
                hosted.transcript.end_append(client.connection, session, *seq);
            }
            self.in_life_of(s, g, |world| {
                for (_, seq, base_offset) in acks {
                    world.ledgers[g].check_ack(session, *seq, *base_offset);
                }
            });
        }
        self.counts.acks += acks.len() as u64;
        self.acked_at = self.now;
        let acks = acks.iter().map(|(_, seq, base_offset)| (*seq, *base_offset));
        self.respond(s, client, &Message::Acked(acks.collect()));
    }
}

impl super::Server {
    fn request_of(&mut self, message: &Option<Message>) -> Request {
        match message {
            None => Request::Gone,
            Some(Message::Attach { session, token, .. }) => {
                self.attachments += 1;
                Request::Attach {
                    number: self.attachments,
                    session: *session,
                    permission: permission_of(token),
                }
            }
            Some(message) => Request::Message {
                message: message.clone(),
                trace: None,
            },
        }
    }
}

/// Notes of messages that go in and come out.
impl Transcript {
    fn note(&mut self, client: ClientRef, message: &Message, end_offset: Offset) {
        let connection = client.connection;
        let (request, requested) = match message {
            Message::Attach { session, token, .. } => {
                let channel = Channel {
                    session: *session,
                    permission: permission_of(token),
                    is_attached: false,
                    refused_seq: None,
                };
                self.channels.insert(connection, channel);
                return;
            }
            Message::Append(append) => {
                if let Some(channel) = self.channels.get(&connection) {
                    let (session, seq) = (channel.session, append.seq);
                    self.sent.insert((session, seq, append.payload_crc, connection));
                    if self.owners.get(&session) == Some(&connection) {
                        self.appends.insert((session, seq), connection);
                    }
                }
                return;
            }
            Message::Read { request, offset, .. } => (
                *request,
                Requested::Read {
                    offset: *offset,
                    is_cancelled: false,
                },
            ),
            Message::Subscribe {
                request,
                credit_bytes,
                ..
            } => (
                *request,
                Requested::Subscription {
                    granted_bytes: u64::from(*credit_bytes),
                    sent_bytes: 0,
                },
            ),
            Message::Credit { request, bytes } => return self.note_credit(connection, *request, *bytes),
            Message::Cancel { request } => return self.note_cancelled(connection, *request),
            Message::Status { request } => (*request, Requested::Status { end_offset }),
            Message::Trim {
                request,
                before_offset,
            } => (
                *request,
                Requested::Trim {
                    end_offset,
                    before_offset: *before_offset,
                },
            ),
            _ => return,
        };
        self.requests.insert((connection, request), requested);
    }

    fn note_credit(&mut self, connection: u64, request: u32, bytes: u32) {
        if let Some(Requested::Subscription { granted_bytes, .. }) =
            self.requests.get_mut(&(connection, request))
        {
            *granted_bytes += u64::from(bytes);
        }
    }

    /// A read may be answered all the same; a subscription is over.
    fn note_cancelled(&mut self, connection: u64, request: u32) {
        match self.requests.get_mut(&(connection, request)) {
            Some(Requested::Read { is_cancelled, .. }) => *is_cancelled = true,
            Some(Requested::Subscription { .. }) => {
                self.requests.remove(&(connection, request));
            }
            _ => {}
        }
    }

    fn answered(&mut self, client: ClientRef, message: &Message) {
        let connection = client.connection;
        match message {
            Message::Attached(_) => {
                if let Some(channel) = self.channels.get_mut(&connection) {
                    channel.is_attached = true;
                }
            }
            Message::StatusOk(ok) => {
                self.requests.remove(&(connection, ok.request));
            }
            Message::TrimOk { request, .. } => {
                self.requests.remove(&(connection, *request));
            }
            Message::Entries(entries) => {
                let bytes: usize = entries.batches.iter().map(|batch| batch.payload.len()).sum();
                match self.requests.get_mut(&(connection, entries.request)) {
                    Some(Requested::Subscription { sent_bytes, .. }) => *sent_bytes += bytes as u64,
                    _ => {
                        self.requests.remove(&(connection, entries.request));
                    }
                }
            }
            Message::Refused(refused) => self.refused(connection, refused),
            _ => {}
        }
    }

    fn refused(&mut self, connection: u64, refused: &Refused) {
        match refused.op {
            kind::ATTACH => self.forget(connection),
            kind::APPEND => {
                if let Some(session) = self.channels.get(&connection).map(|channel| channel.session) {
                    self.end_append(connection, session, refused.id);
                }
            }
            _ => {
                self.requests.remove(&(connection, refused.id as u32));
            }
        }
    }

    /// The batch was answered on this connection.
    fn end_append(&mut self, connection: u64, session: u64, seq: u64) {
        if self.appends.get(&(session, seq)) == Some(&connection) {
            self.appends.remove(&(session, seq));
        }
        let of_seq = (session, seq, 0, 0)..=(session, seq, u32::MAX, u64::MAX);
        let sent = self.sent.range(of_seq).copied();
        let ended: Vec<_> = sent.filter(|(_, _, _, of)| *of == connection).collect();
        for key in ended {
            self.sent.remove(&key);
        }
    }
}

/// A message as it comes out at the other end.
pub fn through_wire(message: &Message) -> Message {
    let mut bytes = BytesMut::from(&message.to_bytes(1, None)[..]);
    let frame = decode_frame(&mut bytes, quorate_types::limits::FRAME_BYTES_MAX)
        .expect("a sound frame")
        .expect("a whole frame");
    let decoded = Message::decode(&frame).expect("a sound message");
    assert_eq!(&decoded, message, "what is decoded is what was encoded");
    decoded
}
