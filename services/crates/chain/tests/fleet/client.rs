//! Clients as `sdk/contract/wire.md` describes them: one session each, a window of batches, retries across heads,
//! and now and then a batch given up, whose seq goes to the next one.

use std::collections::VecDeque;

use bytes::Bytes;
use quorate_chain::{AppendRequest, Asked, ClientRef, Event};
use quorate_types::{Code, Epoch, Index, Micros, Offset};
use quorate_wire::client::NO_EXPECTED_OFFSET;
use rand::Rng;

use crate::world::{What, World};

static ZEROS: [u8; 4 << 20] = [0; 4 << 20];

#[derive(Debug)]
pub struct Client {
    pub session: u64,
    connection: u64,
    server: usize,
    state: State,
    since: Micros,
    last_at: Micros,
    floor_index: Index,
    epoch_seen: Epoch,
    next_seq: u64,
    /// New batches still to be made.
    pub remaining: u32,
    pub outstanding: VecDeque<Out>,
    unanswered: u32,
    was_refused: bool,
    offset_seen: Offset,
    token: u64,
    /// What was committed when its question was sent, while it waits for the answer.
    asked_at: Option<Offset>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Attaching,
    Ready,
}

#[derive(Debug, Clone)]
pub struct Out {
    pub seq: u64,
    pub payload: u32,
    payload_len: u32,
    entry_count: u32,
    expected_offset: Offset,
    fencing_token: u64,
    /// What was committed when it was last sent.
    sent_at: Offset,
}

#[derive(Debug, Clone)]
pub enum ToServer {
    Ask(Asked),
    Attach,
    Append(Box<AppendRequest>),
}

#[derive(Debug, Clone)]
pub enum ToClient {
    /// `None`: not the head, or not sure of its log yet.
    Attached(Option<Attached>),
    Reply(Reply),
    Answered,
}

#[derive(Debug, Clone, Copy)]
pub struct Attached {
    epoch: Epoch,
    last_index: Index,
    next_seq: u64,
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub seq: u64,
    pub answer: Answer,
}

#[derive(Debug, Clone)]
pub enum Answer {
    Acked { base_offset: Offset, entry_count: u32 },
    Refused { code: Code, is_unknown: bool },
}

impl Client {
    pub fn new(session: u64, batches: u32) -> Self {
        Self {
            session,
            connection: session << 32,
            server: 0,
            state: State::Idle,
            since: 0,
            last_at: 0,
            floor_index: Index::MAX,
            epoch_seen: 0,
            next_seq: 1,
            remaining: batches,
            outstanding: VecDeque::new(),
            unanswered: 0,
            was_refused: false,
            offset_seen: 0,
            token: 0,
            asked_at: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.remaining == 0 && self.outstanding.is_empty()
    }
}

impl World {
    pub fn client_tick(&mut self, c: usize) {
        let now = self.now;
        let client = &mut self.clients[c];
        match client.state {
            State::Idle => self.attach(c),
            State::Attaching if now - client.since > 50_000 => client.state = State::Idle,
            State::Attaching => {}
            State::Ready if client.unanswered > 0 => {
                if now - client.since > 200_000 {
                    client.state = State::Idle;
                }
            }
            State::Ready if client.was_refused => self.after_refusal(c),
            State::Ready => {
                self.make_batches(c);
                self.ask(c);
            }
        }
        if !self.clients[c].is_done() {
            let at = now + self.rng.random_range(500..6_000);
            self.at(at, What::ClientTick { client: c });
        }
    }

    fn attach(&mut self, c: usize) {
        let head = self.master.latest().chain[0].0;
        let any = self.rng.random_range(0..self.servers.len());
        let server = if self.rng.random_bool(0.7) { head } else { any };
        let client = &mut self.clients[c];
        client.connection += 1;
        client.server = server;
        client.state = State::Attaching;
        client.since = self.now;
        client.last_at = self.now;
        client.unanswered = 0;
        client.was_refused = false;
        client.asked_at = None;
        self.request(c, ToServer::Attach);
    }

    fn request(&mut self, c: usize, message: ToServer) {
        let delay = self.rng.random_range(10..1_000);
        let client = &mut self.clients[c];
        client.last_at = client.last_at.max(self.now + delay);
        let (at, server, connection) = (client.last_at, client.server, client.connection);
        self.at(
            at,
            What::ToServer {
                server,
                client: c,
                connection,
                message,
            },
        );
    }

    /// At the server: a session is attached by a head that knows its chain to agree with it.
    pub fn at_server(&mut self, s: usize, c: usize, connection: u64, message: ToServer) {
        match message {
            ToServer::Append(request) => self.append(s, connection, *request),
            ToServer::Ask(asked) => {
                let client = ClientRef {
                    connection,
                    channel: c as u32,
                };
                let request = 1;
                self.step(
                    s,
                    Event::Ask {
                        client,
                        request,
                        asked,
                    },
                );
            }
            ToServer::Attach => {
                let session = self.clients[c].session;
                let server = &mut self.servers[s];
                let ready = server.replica.as_ref().filter(|r| r.ring_closed());
                let attached = ready.map(|r| Attached {
                    epoch: r.epoch(),
                    last_index: r.log().last_index(),
                    next_seq: r.log().sessions().next_seq(session),
                });
                if attached.is_some() {
                    server.sessions.insert(session, connection);
                }
                self.respond(c, connection, ToClient::Attached(attached));
            }
        }
    }

    pub fn answer(&mut self, s: usize, client: ClientRef, reply: Reply) {
        if let Answer::Acked {
            base_offset,
            entry_count,
        } = reply.answer
        {
            self.trace
                .line(|| format!("           s{} acks {reply:?}", s + 1));
            let session = self.clients[client.channel as usize].session;
            self.ledger
                .check_ack(session, reply.seq, base_offset, entry_count);
        }
        if let Answer::Refused { code, .. } = reply.answer {
            self.check_refusal(client, reply.seq, code);
        }
        self.respond(client.channel as usize, client.connection, ToClient::Reply(reply));
    }

    /// A condition is refused on what is committed: at some time since the batch was sent, it did not hold.
    fn check_refusal(&self, client: ClientRef, seq: u64, code: Code) {
        let of = &self.clients[client.channel as usize];
        let Some(out) = of.outstanding.iter().find(|o| o.seq == seq) else {
            return;
        };
        if of.connection != client.connection {
            return;
        }
        let end = self.ledger.last().map_or(0, |h| h.end_offset());
        match code {
            Code::ConditionFailed => assert!(
                out.sent_at != out.expected_offset || end != out.expected_offset,
                "refused for its condition, which held: {out:?}"
            ),
            Code::Fenced => assert!(
                out.fencing_token < self.ledger.fence,
                "fenced by a token that was never committed: {out:?}"
            ),
            _ => {}
        }
    }

    /// What a server answers to a question is true of the whole group.
    pub fn answer_asked(&mut self, s: usize, client: ClientRef, asked: Asked, refused: Option<Code>) {
        let replica = self.servers[s].replica.as_ref().expect("it answers");
        let (commit_offset, trim_offset) = (replica.commit_offset(), replica.trim_offset());
        self.trace
            .line(|| format!("           s{} answers {asked:?}: {refused:?}", s + 1));
        let of = &self.clients[client.channel as usize];
        let asked_at = of.asked_at.filter(|_| of.connection == client.connection);
        let end = self.ledger.last().map_or(0, |h| h.end_offset());
        match (asked, refused) {
            (Asked::Status, None) if replica.is_head() => {
                assert!(
                    commit_offset <= end && asked_at.is_none_or(|at| commit_offset >= at),
                    "s{} says that the log ends at {commit_offset}; it ended at {asked_at:?} before",
                    s + 1
                );
                self.answers += 1;
            }
            (Asked::Trim { before_offset }, None) => {
                assert!(trim_offset <= end);
                self.ledger.trim(before_offset);
                crate::invariants::trim_is_kept(self);
                self.answers += 1;
            }
            (Asked::Trim { before_offset }, Some(Code::TrimBeyondCommit)) => {
                assert!(
                    asked_at.is_none_or(|at| at < before_offset),
                    "all before {before_offset} was committed"
                );
            }
            _ => {}
        }
        self.respond(client.channel as usize, client.connection, ToClient::Answered);
    }

    fn respond(&mut self, client: usize, connection: u64, message: ToClient) {
        if self.rng.random_bool(0.01) {
            // The connection breaks, and with it all that is on the way.
            self.broken_connections.insert(connection);
        }
        if !self.broken_connections.contains(&connection) {
            // A fixed delay keeps the answers of one connection in order.
            self.at(
                self.now + 400,
                What::ToClient {
                    client,
                    connection,
                    message,
                },
            );
        }
    }

    pub fn at_client(&mut self, c: usize, connection: u64, message: ToClient) {
        if self.clients[c].connection != connection || self.clients[c].state == State::Idle {
            return;
        }
        match message {
            ToClient::Attached(None) => self.clients[c].state = State::Idle,
            ToClient::Attached(Some(attached)) => self.attached(c, attached),
            ToClient::Reply(reply) => self.replied(c, reply),
            ToClient::Answered => self.clients[c].asked_at = None,
        }
    }

    fn attached(&mut self, c: usize, attached: Attached) {
        let gives_up = self.rng.random_bool(self.plan.gives_up);
        let client = &mut self.clients[c];
        if attached.epoch < client.epoch_seen {
            client.state = State::Idle;
            return;
        }
        self.trace.line(|| {
            format!(
                "{:>8} client {c} at s{}: {attached:?}",
                self.now,
                client.server + 1
            )
        });
        client.epoch_seen = attached.epoch;
        client.floor_index = client.floor_index.min(attached.last_index);
        client.state = State::Ready;
        client.since = self.now;
        if gives_up {
            // What the table does not hold was not ordered, and will not be: its seqs are free again.
            let from = client.outstanding.partition_point(|o| o.seq < attached.next_seq);
            self.give_up(c, from);
        }
        self.send_all(c);
    }

    fn give_up(&mut self, c: usize, from: usize) {
        let client = &mut self.clients[c];
        let dropped: Vec<Out> = client.outstanding.drain(from..).collect();
        if let Some(first) = dropped.first() {
            client.next_seq = first.seq;
        }
        for out in dropped {
            self.trace
                .line(|| format!("{:>8} client {c} gives up {out:?}", self.now));
            self.ledger.refuse(out.payload);
        }
    }

    fn send_all(&mut self, c: usize) {
        for at in 0..self.clients[c].outstanding.len() {
            let out = self.clients[c].outstanding[at].clone();
            self.send_append(c, &out);
        }
    }

    fn send_append(&mut self, c: usize, out: &Out) {
        let client = &mut self.clients[c];
        client.unanswered += 1;
        let end = self.ledger.last().map_or(0, |h| h.end_offset());
        if let Some(kept) = client.outstanding.iter_mut().find(|o| o.seq == out.seq) {
            kept.sent_at = end;
        }
        let request = AppendRequest {
            client: ClientRef {
                connection: client.connection,
                channel: c as u32,
            },
            session: client.session,
            seq: out.seq,
            floor_index: client.floor_index,
            expected_offset: out.expected_offset,
            fencing_token: out.fencing_token,
            entry_count: out.entry_count,
            payload: Bytes::from_static(&ZEROS[..out.payload_len as usize]),
            payload_crc: out.payload,
            received_us: self.now,
            wall_us: self.now,
            trace: None,
        };
        self.request(c, ToServer::Append(Box::new(request)));
    }

    fn replied(&mut self, c: usize, reply: Reply) {
        let now = self.now;
        let client = &mut self.clients[c];
        client.unanswered = client.unanswered.saturating_sub(1);
        client.since = now;
        match reply.answer {
            Answer::Acked {
                base_offset,
                entry_count,
            } => {
                client.offset_seen = client.offset_seen.max(base_offset + u64::from(entry_count));
                let Some(at) = client.outstanding.iter().position(|o| o.seq == reply.seq) else {
                    return;
                };
                let out = client.outstanding.remove(at).expect("it is there");
                self.ledger.acked(out.payload, base_offset);
                self.acks += 1;
            }
            Answer::Refused { is_unknown: true, .. }
            | Answer::Refused {
                code: Code::NotHead | Code::GroupNotHere | Code::SessionMoved,
                ..
            } => {
                client.state = State::Idle;
            }
            Answer::Refused { code, .. } => {
                assert!(code != Code::SessionExpired, "no session is so old");
                client.was_refused = true;
            }
        }
    }

    /// All that was sent has its answer, and some was refused: send it again, or give it up.
    fn after_refusal(&mut self, c: usize) {
        self.clients[c].was_refused = false;
        let has_condition = |o: &Out| o.expected_offset != NO_EXPECTED_OFFSET || o.fencing_token != 0;
        if self.clients[c].outstanding.front().is_some_and(has_condition) || self.rng.random_bool(0.2) {
            self.give_up(c, 0);
        }
        self.send_all(c);
    }

    /// Now and then asks where the log ends, or has some of it trimmed.
    fn ask(&mut self, c: usize) {
        let end = self.ledger.last().map_or(0, |h| h.end_offset());
        if !self.rng.random_bool(self.plan.asks) || self.clients[c].asked_at.is_some() {
            return;
        }
        let before_offset = self.rng.random_range(0..=end + end / 20 + 1);
        let asked = if self.rng.random_bool(0.5) {
            Asked::Status
        } else {
            Asked::Trim { before_offset }
        };
        self.clients[c].asked_at = Some(end);
        self.request(c, ToServer::Ask(asked));
    }

    fn make_batches(&mut self, c: usize) {
        let is_busy = self.rng.random_bool(0.8);
        while is_busy && self.clients[c].remaining > 0 && self.clients[c].outstanding.len() < self.plan.window
        {
            let max = self.plan.payload_bytes_max;
            let payload_len = if self.rng.random_bool(0.5) {
                max
            } else {
                self.rng.random_range(16..=max)
            };
            let entry_count = self.rng.random_range(1..=3);
            let has_expectation = self.rng.random_bool(0.05);
            let has_token = self.rng.random_bool(0.05);
            let client = &mut self.clients[c];
            let expected_offset = if has_expectation {
                client.offset_seen
            } else {
                NO_EXPECTED_OFFSET
            };
            client.token += u64::from(has_token);
            let fencing_token = if has_token { client.token } else { 0 };
            let seq = client.next_seq;
            client.next_seq += 1;
            client.remaining -= 1;
            let payload = self
                .ledger
                .issue(client.session, seq, entry_count, expected_offset);
            let out = Out {
                seq,
                payload,
                payload_len,
                entry_count,
                expected_offset,
                fencing_token,
                sent_at: 0,
            };
            client.outstanding.push_back(out.clone());
            client.since = self.now;
            self.send_append(c, &out);
        }
    }
}
