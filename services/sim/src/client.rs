//! Clients as `sdk/contract/wire.md` describes them: one session each, a window of batches, retries across heads;
//! now and then a batch given up, whose seq goes to the next one, or a whole session abandoned.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::config::Beginning;
use quorate_types::limits::SESSIONS_PER_GROUP_MAX;
use quorate_types::{Code, Epoch, Index, Micros, Offset, Role};
use quorate_wire::client::{self, Append, Attached, Message, NO_EXPECTED_OFFSET};
use rand::Rng;

use crate::faults::Fault;
use crate::schedule::What;
use crate::server::{FromClient, Request, through_wire};
use crate::world::World;

/// Batches beyond those that fill the session table, for what others than the crowd make.
const STRAYS_BATCHES: Index = 50;
const ATTACH_TIMEOUT_US: Micros = 400_000;
/// What a client has to append, at least, to a log that began anew.
const BATCHES_ANEW: u32 = 8;
const ANSWER_TIMEOUT_US: Micros = 1_500_000;

#[derive(Debug)]
pub struct Client {
    pub group: usize,
    habit: Habit,
    /// Nobody hears of it before so many batches are committed; 0: it is there.
    away_until: Index,
    session: u64,
    sessions: u64,
    connection: u64,
    server: usize,
    /// The server's process that it is connected to.
    incarnation: u64,
    /// Where a server said that the head is.
    hint: Option<usize>,
    state: State,
    since: Micros,
    up_at: Micros,
    down_at: Micros,
    floor_index: Index,
    epoch_seen: Epoch,
    next_seq: u64,
    /// New batches still to be made.
    remaining: u32,
    outstanding: VecDeque<Out>,
    unanswered: u32,
    was_refused: bool,
    offset_seen: Offset,
    token: u64,
    /// What was committed when its question was sent, while it waits for the answer.
    pub asked_at: Option<Offset>,
}

/// How a client uses its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// One for as long as it goes.
    Keeps,
    /// One for each batch, and fast: a crowd of these fills the session table.
    Churns,
    /// One for each batch; often it goes away with the batch unanswered, and asks what became of it when its session may
    /// have been forgotten.
    Strays,
}

impl Habit {
    fn renews(self) -> bool {
        self != Habit::Keeps
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Attaching,
    Ready,
}

#[derive(Debug, Clone)]
pub struct Out {
    seq: u64,
    /// Its number in the ledger.
    number: usize,
    payload: Bytes,
    payload_crc: u32,
    entry_count: u32,
    pub expected_offset: Offset,
    pub fencing_token: u64,
    /// What was committed when it was last sent.
    pub sent_at: Offset,
}

#[derive(Debug)]
pub enum ToClient {
    Message(Message),
    /// The connection is gone.
    Gone,
}

impl Client {
    pub fn new(group: usize, number: u64, batches: u32, habit: Habit) -> Self {
        Self {
            group,
            habit,
            away_until: 0,
            session: (number + 1) << 32,
            sessions: 1,
            connection: 0,
            server: 0,
            incarnation: 0,
            hint: None,
            state: State::Idle,
            since: 0,
            up_at: 0,
            down_at: 0,
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
        if self.ledgers[client.group].is_lost {
            return self.stop_client(c);
        }
        if self.is_away(c) {
            let at = now + self.rng.random_range(5_000..50_000);
            return self.at(at, What::ClientTick { client: c });
        }
        let client = &mut self.clients[c];
        match client.state {
            State::Idle => self.attach_client(c),
            State::Attaching if now - client.since > ATTACH_TIMEOUT_US => client.state = State::Idle,
            State::Attaching => {}
            State::Ready if client.unanswered > 0 => {
                if now - client.since > ANSWER_TIMEOUT_US {
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
            let pause_us = match self.clients[c].habit {
                Habit::Churns => 100..2_000,
                Habit::Keeps | Habit::Strays => 500..12_000,
            };
            let at = now + self.rng.random_range(pause_us);
            self.at(at, What::ClientTick { client: c });
        }
    }

    /// Whether the client stays away: until the crowd has filled the session table once more, or is done.
    fn is_away(&mut self, c: usize) -> bool {
        let client = &self.clients[c];
        let is_filling =
            |other: &Client| other.group == client.group && other.habit == Habit::Churns && !other.is_done();
        let stays = self.ledgers[client.group].last_index() < client.away_until
            && self.clients.iter().any(is_filling);
        if !stays {
            self.clients[c].away_until = 0;
        }
        stays
    }

    /// Leaves with its batch unanswered.
    fn stray(&mut self, c: usize) {
        self.cut_client(c);
        let now_at = self.ledgers[self.clients[c].group].last_index();
        self.clients[c].away_until = now_at + SESSIONS_PER_GROUP_MAX as Index + STRAYS_BATCHES;
        self.trace.line(Some(self.clients[c].group), || {
            format!("client {c} goes away with a batch unanswered")
        });
    }

    /// The group is lost: nobody will say what became of what is outstanding.
    fn stop_client(&mut self, c: usize) {
        let client = &mut self.clients[c];
        client.remaining = 0;
        for out in std::mem::take(&mut client.outstanding) {
            self.ledgers[client.group].unknown(out.number);
        }
    }

    /// Its group was lost and begins anew: it has a new session, and goes to no head of before.
    pub fn client_begins_anew(&mut self, c: usize, beginning: Beginning) {
        let slept = self.clients[c].is_done();
        self.cut_client(c);
        self.abandon_session(c);
        let client = &mut self.clients[c];
        client.state = State::Idle;
        client.epoch_seen = beginning.epoch;
        client.offset_seen = beginning.offset;
        client.token = 0;
        client.remaining = client.remaining.max(BATCHES_ANEW);
        if slept {
            self.at(self.now, What::ClientTick { client: c });
        }
    }

    fn attach_client(&mut self, c: usize) {
        let group_id = Self::group_id(self.clients[c].group);
        let abandons = self.plan.groups[self.clients[c].group].abandons;
        if !self.clients[c].outstanding.is_empty() && !self.is_healing && self.rng.random_bool(abandons) {
            self.abandon_session(c);
        }
        let named = self.clients[c].hint.take().or_else(|| self.head_place(group_id));
        let astray = named.is_none()
            || self.rng.random_bool(if self.is_fault_on(Fault::Astray) {
                0.3
            } else {
                0.02
            });
        let server = if astray {
            self.rng.random_range(0..self.servers.len())
        } else {
            named.expect("not astray")
        };
        self.cut_client(c);
        let connection = self.new_connection();
        let client = &mut self.clients[c];
        client.connection = connection;
        client.server = server;
        client.incarnation = self.servers[server].incarnation;
        (client.up_at, client.down_at) = (self.now, self.now);
        self.send_attach(c);
    }

    fn send_attach(&mut self, c: usize) {
        let group_id = Self::group_id(self.clients[c].group);
        let client = &mut self.clients[c];
        client.state = State::Attaching;
        client.since = self.now;
        client.unanswered = 0;
        client.was_refused = false;
        client.asked_at = None;
        let message = Message::Attach {
            group_id,
            session: client.session,
            token: String::new(),
        };
        self.request(c, Request::Message(message));
    }

    /// Forgets its session, and what became of what was not answered.
    fn abandon_session(&mut self, c: usize) {
        let client = &mut self.clients[c];
        self.trace.line(Some(client.group), || {
            format!("client {c} abandons session {:x}", client.session)
        });
        for out in std::mem::take(&mut client.outstanding) {
            self.ledgers[client.group].unknown(out.number);
        }
        client.session += 1;
        client.sessions += 1;
        client.floor_index = Index::MAX;
        client.next_seq = 1;
        self.counts.sessions += 1;
    }

    /// The client's connection, if it has one, is gone: its server learns of it.
    pub fn cut_client(&mut self, c: usize) {
        if self.clients[c].connection != 0 {
            self.request(c, Request::Gone);
            self.clients[c].connection = 0;
            self.clients[c].state = State::Idle;
        }
    }

    fn request(&mut self, c: usize, what: Request) {
        // The end of a connection may come long after.
        let delay = match what {
            Request::Gone if self.rng.random_bool(0.3) => self.rng.random_range(1_000..300_000),
            _ => self.rng.random_range(10..1_000),
        };
        let client = &mut self.clients[c];
        client.up_at = client.up_at.max(self.now + delay);
        let (at, server, incarnation) = (client.up_at, client.server, client.incarnation);
        let what = match what {
            Request::Message(message) => Request::Message(through_wire(&message)),
            Request::Gone => Request::Gone,
        };
        let message = Box::new(FromClient {
            connection: client.connection,
            what,
        });
        self.at(
            at,
            What::FromClient {
                server,
                incarnation,
                client: c,
                message,
            },
        );
    }

    /// A server answers on a client's connection.
    pub fn respond(&mut self, s: usize, to: quorate_chain::ClientRef, message: Message) {
        let c = to.channel as usize;
        let client = &mut self.clients[c];
        if client.connection != to.connection || client.server != s {
            return;
        }
        let breaks = self.rng.random_bool(0.003);
        let delay = self.rng.random_range(10..1_000);
        client.down_at = client.down_at.max(self.now + delay);
        let what = if breaks {
            ToClient::Gone
        } else {
            ToClient::Message(through_wire(&message))
        };
        let (at, connection) = (client.down_at, to.connection);
        self.at(
            at,
            What::ToClient {
                client: c,
                connection,
                message: Box::new(what),
            },
        );
    }

    pub fn at_client(&mut self, c: usize, connection: u64, message: ToClient) {
        if self.clients[c].connection != connection || self.clients[c].state == State::Idle {
            return;
        }
        match message {
            ToClient::Gone => self.cut_client(c),
            ToClient::Message(Message::Attached(attached)) => self.attached(c, &attached),
            ToClient::Message(Message::Acked(acks)) => {
                for (seq, base_offset) in acks {
                    self.acked(c, seq, base_offset);
                }
            }
            ToClient::Message(Message::StatusOk(_) | Message::TrimOk { .. }) => {
                self.clients[c].asked_at = None
            }
            ToClient::Message(Message::Refused(refused)) if refused.op == client::kind::STATUS => {
                self.clients[c].asked_at = None;
            }
            ToClient::Message(Message::Refused(refused)) => self.refused(c, &refused),
            ToClient::Message(_) => {}
        }
    }

    fn attached(&mut self, c: usize, attached: &Attached) {
        let gives_up = self
            .rng
            .random_bool(self.plan.groups[self.clients[c].group].gives_up);
        let hint = self.server_at(&attached.head_address);
        let client = &mut self.clients[c];
        let is_head = attached.role == Role::Head as u8 || attached.role == Role::Sole as u8;
        client.floor_index = client.floor_index.min(attached.last_index);
        if !is_head || attached.epoch < client.epoch_seen {
            client.state = State::Idle;
            client.hint = hint.filter(|head| *head != client.server);
            return;
        }
        self.trace.line(Some(client.group), || {
            format!(
                "client {c} attached at s{}: next_seq {}, epoch {}",
                client.server + 1,
                attached.next_seq,
                attached.epoch
            )
        });
        client.epoch_seen = attached.epoch;
        client.state = State::Ready;
        client.since = self.now;
        // A session that the head does not know may have been forgotten, where there are more than the table holds: then
        // what was sent must be sent again, and is refused as expired.
        let is_believed = attached.next_seq > 1 || !self.plan.groups[client.group].churns;
        if gives_up && is_believed {
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
            let client = &self.clients[c];
            self.trace.line(Some(client.group), || {
                format!("client {c} gives up seq {}", out.seq)
            });
            self.ledgers[client.group].refuse(out.number);
            self.counts.refusals += 1;
        }
    }

    fn send_all(&mut self, c: usize) {
        for at in 0..self.clients[c].outstanding.len() {
            let out = self.clients[c].outstanding[at].clone();
            self.send_append(c, &out);
        }
    }

    fn send_append(&mut self, c: usize, out: &Out) {
        let end = self.ledgers[self.clients[c].group].end_offset();
        let client = &mut self.clients[c];
        if client.state != State::Ready {
            return;
        }
        client.unanswered += 1;
        if let Some(kept) = client.outstanding.iter_mut().find(|o| o.seq == out.seq) {
            kept.sent_at = end;
        }
        let append = Append {
            seq: out.seq,
            floor_index: client.floor_index,
            timeout_ms: 0,
            entry_count: out.entry_count,
            payload_crc: out.payload_crc,
            expected_offset: out.expected_offset,
            fencing_token: out.fencing_token,
            payload: out.payload.clone(),
        };
        self.request(c, Request::Message(Message::Append(append)));
    }

    fn acked(&mut self, c: usize, seq: u64, base_offset: Offset) {
        let now = self.now;
        let client = &mut self.clients[c];
        client.unanswered = client.unanswered.saturating_sub(1);
        client.since = now;
        let Some(at) = client.outstanding.iter().position(|o| o.seq == seq) else {
            return;
        };
        let out = client.outstanding.remove(at).expect("it is there");
        client.offset_seen = client.offset_seen.max(base_offset + u64::from(out.entry_count));
        self.ledgers[client.group].acked(out.number, base_offset);
    }

    fn refused(&mut self, c: usize, refused: &client::Refused) {
        let client = &mut self.clients[c];
        client.unanswered = client.unanswered.saturating_sub(1);
        client.since = self.now;
        let is = |code: Code| refused.code == code as u16;
        if is(Code::SessionExpired) {
            // Forgotten: what was sent may have happened.
            return self.abandon_and_leave(c);
        }
        if refused.outcome == 2
            || is(Code::NotHead)
            || is(Code::GroupNotHere)
            || is(Code::SessionMoved)
            || is(Code::UnknownChannel)
            || is(Code::Syncing)
        {
            client.state = State::Idle;
        } else {
            client.was_refused = true;
        }
    }

    fn abandon_and_leave(&mut self, c: usize) {
        self.counts.expired_sessions += 1;
        self.abandon_session(c);
        self.cut_client(c);
    }

    /// All that was sent has its answer, and some was refused: send it again, or give it up.
    fn after_refusal(&mut self, c: usize) {
        self.clients[c].was_refused = false;
        let has_condition = |o: &Out| o.expected_offset != NO_EXPECTED_OFFSET || o.fencing_token != 0;
        if self.clients[c].outstanding.front().is_some_and(has_condition) || self.rng.random_bool(0.1) {
            self.give_up(c, 0);
        }
        self.send_all(c);
    }

    fn make_batches(&mut self, c: usize) {
        let g = self.clients[c].group;
        let renews = self.clients[c].habit.renews();
        if renews && self.clients[c].outstanding.is_empty() && self.clients[c].next_seq > 1 {
            // Each batch in a session of its own; the connection would serve, but an attach tells the floor.
            self.abandon_session(c);
            return self.send_attach(c);
        }
        // Some of the work is kept for the time after the faults.
        let kept = if self.is_healing { 0 } else { 3 };
        let window = if renews { 1 } else { self.plan.groups[g].window };
        let is_busy = self.rng.random_bool(0.8);
        while is_busy && self.clients[c].remaining > kept && self.clients[c].outstanding.len() < window {
            self.make_batch(c, g);
        }
        let strays = self.clients[c].habit == Habit::Strays && !self.clients[c].outstanding.is_empty();
        if strays && self.rng.random_bool(0.5) {
            self.stray(c);
        }
    }

    /// Now and then asks where the log ends, or has some of it trimmed.
    fn ask(&mut self, c: usize) {
        let g = self.clients[c].group;
        let (begin, end) = (self.ledgers[g].begin_offset(), self.ledgers[g].end_offset());
        if self.clients[c].state != State::Ready
            || self.clients[c].asked_at.is_some()
            || !self.rng.random_bool(self.plan.groups[g].asks)
        {
            return;
        }
        let before_offset = self.rng.random_range(begin..=end + (end - begin) / 20 + 1);
        let message = if self.rng.random_bool(0.5) {
            Message::Status { request: 1 }
        } else {
            Message::Trim {
                request: 1,
                before_offset,
            }
        };
        self.clients[c].asked_at = Some(end);
        self.request(c, Request::Message(message));
    }

    pub fn connection(&self, c: usize) -> u64 {
        self.clients[c].connection
    }

    /// What the client has sent under this number and not been answered.
    pub fn outstanding(&self, c: usize, seq: u64) -> Option<&Out> {
        self.clients[c].outstanding.iter().find(|out| out.seq == seq)
    }

    fn make_batch(&mut self, c: usize, g: usize) {
        let max = self.plan.groups[g].payload_bytes_max;
        let payload_len = if self.rng.random_bool(0.5) {
            max
        } else {
            self.rng.random_range(40..=max)
        };
        let entry_count = self.rng.random_range(1..=3u32);
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
        let number = self.ledgers[g].issue(client.session, seq, entry_count, expected_offset);
        let payload = payload(number as u64, entry_count, payload_len);
        let payload_crc = crc32fast::hash(&payload);
        self.ledgers[g].made(number, payload_crc);
        let out = Out {
            seq,
            number,
            payload,
            payload_crc,
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

/// Entries with their lengths; the first begins with the batch's number, which makes the payload its own.
fn payload(number: u64, entry_count: u32, len: u32) -> Bytes {
    let bytes = len.max(12 + 4 * entry_count) - 4 * entry_count;
    let rest = bytes - 8;
    let mut out = BytesMut::with_capacity(len as usize + 16);
    for entry in 0..entry_count {
        let share = rest / entry_count + if entry == 0 { rest % entry_count } else { 0 };
        if entry == 0 {
            out.put_u32_le(share + 8);
            out.put_u64_le(number);
        } else {
            out.put_u32_le(share);
        }
        out.put_bytes(0, share as usize);
    }
    out.freeze()
}
