//! Clients that append: one session each, a window of batches, retries across heads. Now and then a batch is given
//! up, and its seq goes to the next one. Now and then a whole session is abandoned.

use std::collections::VecDeque;

use quorate_types::config::Beginning;
use quorate_types::limits::SESSIONS_PER_GROUP_MAX;
use quorate_types::{Code, Epoch, Index, Micros, Offset, Role};
use quorate_wire::client::{Attached, Message, Notice, Outcome, Refused, StatusOk, kind};
use rand::Rng;

use super::batches::Out;
use super::token::Grant;
use super::{ATTACH_TIMEOUT_US, Connection, State, Who};
use crate::faults::Fault;
use crate::plan::GroupPlan;
use crate::schedule::What;
use crate::world::World;

/// Batches beyond those that fill the session table, for what others than the crowd make.
const STRAYS_BATCHES: Index = 50;
/// The least number of batches that a client has to append to a log that began anew.
const BATCHES_ANEW: u32 = 8;
const ANSWER_TIMEOUT_US: Micros = 1_500_000;
/// `retry` of REFUSED.
const RETRY_AT_HEAD: u8 = 2;
const RETRY_WITH_HANDLE: u8 = 3;

#[derive(Debug)]
pub struct Writer {
    pub group: usize,
    pub(super) habit: Habit,
    /// Nobody hears of it before so many batches are committed; 0: it is there.
    away_until: Index,
    pub(super) grant: Grant,
    pub(super) session: u64,
    pub(super) connection: Connection,
    /// The head, by a server's word.
    hint: Option<usize>,
    pub(super) state: State,
    pub(super) since: Micros,
    pub(super) floor_index: Index,
    epoch_seen: Epoch,
    pub(super) next_seq: u64,
    /// New batches still to be made.
    pub(super) remaining: u32,
    pub(super) outstanding: VecDeque<Out>,
    pub(super) unanswered: u32,
    was_refused: bool,
    /// A server asked for so much patience before anything is sent again.
    resend_at: Micros,
    pub(super) offset_seen: Offset,
    pub(super) fencing_token: u64,
    /// Numbers of its questions so far; that of the one that waits for its answer.
    questions: u32,
    asking: Option<u32>,
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
    /// One, and no permission to append.
    Trespasses,
}

impl Habit {
    pub(super) fn renews(self) -> bool {
        matches!(self, Habit::Churns | Habit::Strays)
    }
}

impl Writer {
    pub fn new(group: usize, number: u64, plan: &GroupPlan, habit: Habit) -> Self {
        let grant = Grant {
            may_append: habit != Habit::Trespasses,
            may_read: false,
            life_s: plan.token_life_s,
        };
        let remaining = match habit {
            Habit::Keeps | Habit::Churns => plan.batches_per_client,
            Habit::Strays | Habit::Trespasses => 10,
        };
        Self {
            group,
            habit,
            away_until: 0,
            grant,
            session: (number + 1) << 32,
            connection: Connection::default(),
            hint: None,
            state: State::Idle,
            since: 0,
            floor_index: Index::MAX,
            epoch_seen: 0,
            next_seq: 1,
            remaining,
            outstanding: VecDeque::new(),
            unanswered: 0,
            was_refused: false,
            resend_at: 0,
            offset_seen: 0,
            fencing_token: 0,
            questions: 0,
            asking: None,
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.state = State::Idle;
    }

    pub fn is_done(&self) -> bool {
        self.remaining == 0 && self.outstanding.is_empty()
    }
}

impl World {
    pub fn writer_tick(&mut self, c: usize) {
        let now = self.now;
        let writer = &mut self.writers[c];
        if self.ledgers[writer.group].is_lost {
            return self.stop_writer(c);
        }
        if self.is_away(c) {
            let at = now + self.rng.random_range(5_000..50_000);
            return self.at(at, What::ClientTick { who: Who::Writer(c) });
        }
        let writer = &mut self.writers[c];
        match writer.state {
            State::Idle => self.attach_writer(c),
            State::Attaching if now - writer.since > ATTACH_TIMEOUT_US => writer.state = State::Idle,
            State::Attaching => {}
            State::Ready if writer.unanswered > 0 => {
                if now - writer.since > ANSWER_TIMEOUT_US {
                    writer.state = State::Idle;
                }
            }
            State::Ready if writer.was_refused && now < writer.resend_at => {}
            State::Ready if writer.was_refused => self.after_refusal(c),
            State::Ready => {
                self.make_batches(c);
                self.ask(c);
            }
        }
        if !self.writers[c].is_done() {
            let pause_us = match self.writers[c].habit {
                Habit::Churns => 100..2_000,
                Habit::Keeps | Habit::Strays | Habit::Trespasses => 500..12_000,
            };
            let at = now + self.rng.random_range(pause_us);
            self.at(at, What::ClientTick { who: Who::Writer(c) });
        }
    }

    /// Whether the client stays away: until the crowd has filled the session table once more, or is done.
    fn is_away(&mut self, c: usize) -> bool {
        let writer = &self.writers[c];
        let is_filling =
            |other: &Writer| other.group == writer.group && other.habit == Habit::Churns && !other.is_done();
        let stays = self.ledgers[writer.group].last_index() < writer.away_until
            && self.writers.iter().any(is_filling);
        if !stays {
            self.writers[c].away_until = 0;
        }
        stays
    }

    /// Leaves with its batch unanswered.
    pub(super) fn stray(&mut self, c: usize) {
        self.close(Who::Writer(c));
        let now_at = self.ledgers[self.writers[c].group].last_index();
        self.writers[c].away_until = now_at + SESSIONS_PER_GROUP_MAX as Index + STRAYS_BATCHES;
        self.trace.line(Some(self.writers[c].group), || {
            format!("client {c} goes away with a batch unanswered")
        });
    }

    /// The group is lost: nobody will say what became of what is outstanding.
    fn stop_writer(&mut self, c: usize) {
        let writer = &mut self.writers[c];
        writer.remaining = 0;
        for out in std::mem::take(&mut writer.outstanding) {
            self.ledgers[writer.group].unknown(out.number);
        }
    }

    /// Its group was lost and begins anew: it has a new session, and goes to no head of before.
    pub fn writer_begins_anew(&mut self, c: usize, beginning: Beginning) {
        let slept = self.writers[c].is_done();
        self.close(Who::Writer(c));
        self.abandon_session(c);
        let writer = &mut self.writers[c];
        writer.state = State::Idle;
        writer.epoch_seen = beginning.epoch;
        writer.offset_seen = beginning.offset;
        writer.fencing_token = 0;
        writer.remaining = writer.remaining.max(BATCHES_ANEW);
        if slept {
            self.at(self.now, What::ClientTick { who: Who::Writer(c) });
        }
    }

    fn attach_writer(&mut self, c: usize) {
        let group_id = Self::group_id(self.writers[c].group);
        let abandons = self.plan.groups[self.writers[c].group].abandons;
        if !self.writers[c].outstanding.is_empty() && !self.is_healing && self.rng.random_bool(abandons) {
            self.abandon_session(c);
        }
        let last = self.writers[c].connection.server;
        let named = self.writers[c].hint.take().or_else(|| self.head_place(group_id));
        // Its handle is old, now and then.
        let named = named.map(|named| if self.rng.random_bool(0.1) { last } else { named });
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
        self.open(Who::Writer(c), server);
        self.send_attach(c);
    }

    /// On its connection, where it may be attached already.
    pub(super) fn send_attach(&mut self, c: usize) {
        if self.writers[c].state != State::Idle {
            self.request(Who::Writer(c), Some(Message::Detach));
        }
        let (group_id, wall_s) = (Self::group_id(self.writers[c].group), self.wall_s());
        let writer = &mut self.writers[c];
        writer.state = State::Attaching;
        writer.since = self.now;
        writer.unanswered = 0;
        writer.was_refused = false;
        writer.asking = None;
        let message = Message::Attach {
            group_id,
            session: writer.session,
            token: writer.grant.token(wall_s),
        };
        self.request(Who::Writer(c), Some(message));
    }

    /// Forgets its session, and what became of what was not answered.
    pub(super) fn abandon_session(&mut self, c: usize) {
        let writer = &mut self.writers[c];
        self.trace.line(Some(writer.group), || {
            format!("client {c} abandons session {:x}", writer.session)
        });
        for out in std::mem::take(&mut writer.outstanding) {
            self.ledgers[writer.group].unknown(out.number);
        }
        writer.session += 1;
        writer.floor_index = Index::MAX;
        writer.next_seq = 1;
        self.counts.sessions += 1;
    }

    pub(super) fn at_writer(&mut self, c: usize, message: Message) {
        if self.writers[c].state == State::Idle {
            return;
        }
        match message {
            Message::Attached(attached) => self.attached(c, &attached),
            Message::Notice(notice) => self.noticed(c, &notice),
            Message::Acked(acks) => {
                for (seq, base_offset) in acks {
                    self.acked(c, seq, base_offset);
                }
            }
            Message::StatusOk(StatusOk { request, .. }) | Message::TrimOk { request, .. } => {
                self.asked(c, request);
            }
            Message::Refused(refused) => match refused.op {
                kind::STATUS | kind::TRIM => self.asked(c, refused.id as u32),
                kind::APPEND => self.refused(c, &refused),
                // It is not attached: it looks elsewhere.
                _ => self.writers[c].state = State::Idle,
            },
            _ => {}
        }
    }

    /// Its question was answered.
    fn asked(&mut self, c: usize, request: u32) {
        let writer = &mut self.writers[c];
        writer.asking = writer.asking.filter(|asking| *asking != request);
    }

    fn attached(&mut self, c: usize, attached: &Attached) {
        let gives_up = self
            .rng
            .random_bool(self.plan.groups[self.writers[c].group].gives_up);
        let hint = self.server_at(&attached.head_address);
        let writer = &mut self.writers[c];
        let is_head = is_head(attached.role);
        writer.floor_index = writer.floor_index.min(attached.last_index);
        if !is_head || attached.epoch < writer.epoch_seen {
            writer.state = State::Idle;
            writer.hint = hint.filter(|head| *head != writer.connection.server);
            return;
        }
        self.trace.line(Some(writer.group), || {
            format!(
                "client {c} attached at s{}: next_seq {}, epoch {}",
                writer.connection.server + 1,
                attached.next_seq,
                attached.epoch
            )
        });
        writer.epoch_seen = attached.epoch;
        writer.state = State::Ready;
        writer.since = self.now;
        // A head may have forgotten a session that it does not know, where there are more than the table holds. The
        // batches must be sent again then, and are refused as expired.
        let is_believed = attached.next_seq > 1 || !self.plan.groups[writer.group].churns;
        if gives_up && is_believed {
            // A batch that the table does not hold was not ordered, and will not be: its seq is free again.
            let from = writer.outstanding.partition_point(|o| o.seq < attached.next_seq);
            self.give_up(c, from);
        }
        self.send_all(c);
    }

    /// The head's word on the log, given when it attached the writer, holds as long as it stays the head.
    fn noticed(&mut self, c: usize, notice: &Notice) {
        let writer = &mut self.writers[c];
        if writer.state != State::Ready {
            return;
        }
        if !is_head(notice.role) || notice.epoch > writer.epoch_seen + 1 {
            writer.state = State::Idle;
        }
        writer.epoch_seen = writer.epoch_seen.max(notice.epoch);
    }

    fn acked(&mut self, c: usize, seq: u64, base_offset: Offset) {
        let now = self.now;
        let writer = &mut self.writers[c];
        writer.unanswered = writer.unanswered.saturating_sub(1);
        writer.since = now;
        let Some(at) = writer.outstanding.iter().position(|o| o.seq == seq) else {
            return;
        };
        let out = writer.outstanding.remove(at).expect("it is there");
        writer.offset_seen = writer.offset_seen.max(base_offset + u64::from(out.entry_count));
        self.ledgers[writer.group].acked(out.number, base_offset);
    }

    fn refused(&mut self, c: usize, refused: &Refused) {
        let writer = &mut self.writers[c];
        writer.unanswered = writer.unanswered.saturating_sub(1);
        writer.since = self.now;
        let is = |code: Code| refused.code == code as u16;
        if is(Code::SessionExpired) {
            // Forgotten: what was sent may have happened.
            return self.abandon_and_leave(c);
        }
        if is(Code::SessionMoved) {
            // Somebody else has the session: it is not the writer's any more.
            return;
        }
        let is_elsewhere = refused.retry == RETRY_AT_HEAD || refused.retry == RETRY_WITH_HANDLE;
        if refused.outcome == Outcome::Unknown as u8
            || is_elsewhere
            || is(Code::UnknownChannel)
            || is(Code::GroupLost)
        {
            writer.state = State::Idle;
        } else {
            writer.was_refused = true;
            let patience = u64::from(refused.retry_after_ms) * 1_000;
            writer.resend_at = writer.resend_at.max(self.now + patience);
        }
    }

    fn abandon_and_leave(&mut self, c: usize) {
        self.counts.expired_sessions += 1;
        self.abandon_session(c);
        self.close(Who::Writer(c));
    }

    /// Sends refused batches again, or gives them up, once every batch that was sent has its answer.
    fn after_refusal(&mut self, c: usize) {
        let writer = &mut self.writers[c];
        writer.was_refused = false;
        let has_condition = writer.outstanding.front().is_some_and(Out::has_condition);
        let trespasses = writer.habit == Habit::Trespasses;
        if trespasses || has_condition || self.rng.random_bool(0.1) {
            self.give_up(c, 0);
        }
        self.send_all(c);
    }

    /// Now and then asks where the log ends, or has some of it trimmed.
    fn ask(&mut self, c: usize) {
        let g = self.writers[c].group;
        let (begin, end) = (self.ledgers[g].begin_offset(), self.ledgers[g].end_offset());
        if self.writers[c].state != State::Ready
            || self.writers[c].asking.is_some()
            || !self.rng.random_bool(self.plan.groups[g].asks)
        {
            return;
        }
        let before_offset = self.rng.random_range(begin..=end + (end - begin) / 20 + 1);
        self.writers[c].questions += 1;
        let request = self.writers[c].questions;
        let message = if self.rng.random_bool(0.5) {
            Message::Status { request }
        } else {
            Message::Trim {
                request,
                before_offset,
            }
        };
        self.writers[c].asking = Some(request);
        self.request(Who::Writer(c), Some(message));
    }

    /// The batch that the writer sent under this number on this connection and that has no answer.
    pub fn outstanding(&self, connection: u64, c: usize, seq: u64) -> Option<&Out> {
        let writer = self.writers.get(c)?;
        let mut outstanding = writer.outstanding.iter();
        outstanding.find(|out| writer.connection.id == connection && out.seq == seq)
    }
}

fn is_head(role: u8) -> bool {
    role == Role::Head as u8 || role == Role::Sole as u8
}
