//! What clients ask of a group, with the rules of `services/replica/src/shard/serve.rs`.

use bytes::BytesMut;
use quorate_chain::{AppendRequest, Asked, ClientRef, Event};
use quorate_qos::Offer;
use quorate_types::limits::{APPEND_TIMEOUT_MS_DEFAULT, SESSION_WINDOW_BATCHES};
use quorate_types::{Code, Durability, GroupId, Offset};
use quorate_wire::client::{self, Message, kind};
use quorate_wire::{cursor, decode_frame};

use crate::invariants;
use crate::world::World;

#[derive(Debug)]
pub struct FromClient {
    pub connection: u64,
    pub what: Request,
}

#[derive(Debug)]
pub enum Request {
    Message(Message),
    /// The connection is gone.
    Gone,
}

impl World {
    pub fn from_client(&mut self, s: usize, c: usize, message: FromClient) {
        let group_id = Self::group_id(self.clients[c].group);
        let client = ClientRef {
            connection: message.connection,
            channel: c as u32,
        };
        let is_here = self.servers[s].groups.contains_key(&group_id);
        match message.what {
            Request::Gone if is_here => self.detach(s, group_id, client),
            Request::Gone => {}
            Request::Message(Message::Attach { session, .. }) if is_here => {
                self.attach(s, group_id, client, session);
            }
            Request::Message(Message::Append(append)) if is_here => self.append(s, group_id, client, append),
            Request::Message(Message::Append(append)) => {
                self.refuse(s, group_id, client, append.seq, Code::GroupNotHere, false);
            }
            Request::Message(Message::Status { request }) if is_here => {
                self.step(
                    s,
                    group_id,
                    Event::Ask {
                        client,
                        request,
                        asked: Asked::Status,
                    },
                );
            }
            Request::Message(Message::Trim {
                request,
                before_offset,
            }) if is_here => {
                let asked = Asked::Trim { before_offset };
                self.step(
                    s,
                    group_id,
                    Event::Ask {
                        client,
                        request,
                        asked,
                    },
                );
            }
            Request::Message(_) => self.refuse(s, group_id, client, 0, Code::GroupNotHere, false),
        }
    }

    fn attach(&mut self, s: usize, group_id: GroupId, client: ClientRef, session: u64) {
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it is here");
        hosted.channels.insert(client, session);
        if session != 0 {
            hosted.sessions.insert(session, client);
        }
        if session != 0 && hosted.replica.is_head() {
            hosted.attaching.push(client);
            self.answer_attaching(s, group_id);
        } else {
            self.send_attached(s, group_id, client, session);
        }
    }

    fn detach(&mut self, s: usize, group_id: GroupId, client: ClientRef) {
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it is here");
        if let Some(session) = hosted.channels.remove(&client)
            && hosted.sessions.get(&session) == Some(&client)
        {
            hosted.sessions.remove(&session);
        }
        hosted.attaching.retain(|waiting| *waiting != client);
        hosted.replica.forget_client(client);
    }

    /// A head answers once its chain is known to agree with it.
    pub fn answer_attaching(&mut self, s: usize, group_id: GroupId) {
        let Some(hosted) = self.servers[s].groups.get_mut(&group_id) else {
            return;
        };
        if hosted.attaching.is_empty() || (hosted.replica.is_head() && !hosted.replica.ring_closed()) {
            return;
        }
        for client in std::mem::take(&mut hosted.attaching) {
            let hosted = &self.servers[s].groups[&group_id];
            if let Some(session) = hosted.channels.get(&client).copied() {
                self.send_attached(s, group_id, client, session);
            }
        }
    }

    fn send_attached(&mut self, s: usize, group_id: GroupId, client: ClientRef, session: u64) {
        if session != 0 {
            let g = Self::index_of(group_id);
            self.in_life_of(s, g, |world| invariants::before_attached(world, s, g));
        }
        let hosted = &self.servers[s].groups[&group_id];
        let replica = &hosted.replica;
        let log = replica.log();
        let head = replica.config().and_then(|c| c.head());
        let attached = client::Attached {
            epoch: replica.epoch(),
            role: replica.role() as u8,
            durability: match replica.durability() {
                Durability::InMemory => 1,
                Durability::Persistent => 2,
            },
            state: replica.state() as u8,
            window_batches: SESSION_WINDOW_BATCHES,
            last_index: log.last_index(),
            next_seq: log.sessions().next_seq(session),
            commit_offset: replica.commit_offset(),
            trim_offset: replica.trim_offset(),
            rate_per_s: hosted.budget.as_ref().map_or(0, |b| b.rate_per_s),
            head_address: head.map(|m| m.address.clone()).unwrap_or_default(),
        };
        self.respond(s, client, Message::Attached(attached));
    }

    fn append(&mut self, s: usize, group_id: GroupId, client: ClientRef, append: client::Append) {
        let now = self.servers[s].clock_us(self.now);
        let wall_us = self.servers[s].wall_us(self.now);
        if let Err(code) = self.check_append(s, group_id, client, &append) {
            return self.refuse(s, group_id, client, append.seq, code, false);
        }
        let hosted = self.servers[s].groups.get_mut(&group_id).expect("it is here");
        let (seq, entry_count) = (append.seq, append.entry_count);
        let bytes = append.payload.len() as u64;
        let entry_bytes = bytes - 4 * u64::from(entry_count);
        let timeout_ms = if append.timeout_ms == 0 {
            APPEND_TIMEOUT_MS_DEFAULT
        } else {
            append.timeout_ms
        };
        let request = AppendRequest {
            client,
            session: hosted.channels[&client],
            seq,
            floor_index: append.floor_index,
            expected_offset: append.expected_offset,
            fencing_token: append.fencing_token,
            entry_count,
            payload: append.payload,
            payload_crc: append.payload_crc,
            received_us: now,
            wall_us,
            trace: None,
        };
        if hosted.may_have_happened(&request) {
            return self.step(s, group_id, Event::Append(request));
        }
        let (Some(admission), Some(budget)) = (&mut hosted.admission, &hosted.budget) else {
            return self.refuse(s, group_id, client, seq, Code::Syncing, false);
        };
        let cost = budget.batch_milli(u64::from(entry_count), entry_bytes);
        match admission.offer(now, request, cost, bytes, now + u64::from(timeout_ms) * 1_000) {
            Offer::Admitted(request) => self.step(s, group_id, Event::Append(request)),
            Offer::Queued => self.tick_group(s, group_id),
            Offer::Throttled { item, .. } => {
                self.refuse(s, group_id, client, item.seq, Code::Throttled, false);
            }
        }
    }

    fn check_append(
        &self,
        s: usize,
        group_id: GroupId,
        client: ClientRef,
        append: &client::Append,
    ) -> Result<(), Code> {
        let hosted = &self.servers[s].groups[&group_id];
        let session = *hosted.channels.get(&client).ok_or(Code::UnknownChannel)?;
        if session == 0 || append.seq == 0 {
            return Err(Code::SessionMissing);
        }
        if !hosted.replica.is_head() {
            return Err(Code::NotHead);
        }
        if hosted.sessions.get(&session) != Some(&client) {
            return Err(Code::SessionMoved);
        }
        match cursor::check_entries(&append.payload) {
            Ok((count, _)) if count == append.entry_count && count > 0 => Ok(()),
            _ => Err(Code::BatchMalformed),
        }
    }

    pub fn ack(
        &mut self,
        s: usize,
        group_id: GroupId,
        client: ClientRef,
        seq: u64,
        base: Offset,
        count: u32,
    ) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || {
            format!(
                "s{} acks client {} seq {seq} at offset {base}",
                s + 1,
                client.channel
            )
        });
        if let Some(session) = self.servers[s].groups[&group_id].channels.get(&client) {
            let session = *session;
            self.in_life_of(s, g, |world| {
                world.ledgers[g].check_ack(session, seq, base, count)
            });
        }
        self.counts.acks += 1;
        self.acked_at = self.now;
        self.respond(s, client, Message::Acked(vec![(seq, base)]));
    }

    pub fn refuse(
        &mut self,
        s: usize,
        group_id: GroupId,
        client: ClientRef,
        seq: u64,
        code: Code,
        unknown: bool,
    ) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || {
            format!(
                "s{} refuses client {} seq {seq}: {code:?}, unknown: {unknown}",
                s + 1,
                client.channel
            )
        });
        invariants::after_refusal(self, g, client, seq, code);
        let refused = client::Refused {
            op: kind::APPEND,
            outcome: if unknown { 2 } else { 1 },
            retry: client::retry_byte(code),
            code: code as u16,
            retry_after_ms: 0,
            id: seq,
            head_address: String::new(),
            message: String::new(),
        };
        self.respond(s, client, Message::Refused(refused));
    }
}

impl World {
    /// The replica answers what a client asked.
    pub fn answer_asked(
        &mut self,
        s: usize,
        group_id: GroupId,
        client: ClientRef,
        request: u32,
        asked: Asked,
        refused: Option<Code>,
    ) {
        let g = Self::index_of(group_id);
        self.trace.line(Some(g), || {
            format!(
                "s{} answers client {}: {asked:?} {refused:?}",
                s + 1,
                client.channel
            )
        });
        self.in_life_of(s, g, |world| {
            invariants::after_answer(world, s, g, client, asked, refused)
        });
        let Some(hosted) = self.servers[s].groups.get(&group_id) else {
            return;
        };
        let replica = &hosted.replica;
        let message = match (asked, refused) {
            (Asked::Status, None) => Message::StatusOk(client::StatusOk {
                request,
                role: replica.role() as u8,
                state: replica.state() as u8,
                epoch: replica.epoch(),
                commit_offset: replica.commit_offset(),
                durable_offset: replica.durable_offset(),
                trim_offset: replica.trim_offset(),
                next_offset: replica.log().next_offset(),
                head_address: String::new(),
            }),
            (Asked::Trim { .. }, None) => Message::TrimOk {
                request,
                trim_offset: replica.trim_offset(),
            },
            (_, Some(code)) => Message::Refused(client::Refused {
                op: kind::STATUS,
                outcome: 1,
                retry: client::retry_byte(code),
                code: code as u16,
                retry_after_ms: 0,
                id: u64::from(request),
                head_address: String::new(),
                message: String::new(),
            }),
        };
        self.counts.answers += 1;
        self.respond(s, client, message);
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
