//! The head's part: ordering appends, once each, and answering them when they are committed.

use quorate_types::limits::RETRY_AFTER_MS_HELD;
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Micros, Role};
use quorate_wire::client::NO_EXPECTED_OFFSET;
use quorate_wire::{Batch, BatchHeader};

use crate::command::{AppendRequest, ClientRef, Command, Happened};
use crate::replica::Replica;
use crate::rounds::RestsOn;
use crate::sessions::{Placed, Verdict};

/// How long a client should wait before it tries a paused or read-only group again.
const RETRY_PAUSED_MS: u32 = 200;

/// An append in the log whose commitment a client waits for.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub index: Index,
    pub client: ClientRef,
    pub seq: u64,
    pub placed: Placed,
    pub received_us: Micros,
}

/// Why an append is not ordered.
enum Judgement {
    /// It was not, nor will this sending of it be.
    Refused(Code, RestsOn),
    /// It was ordered so long ago that its place is forgotten; the client must have been told.
    Forgotten,
}

impl Replica {
    pub(crate) fn append(&mut self, request: AppendRequest, out: &mut Vec<Command>) {
        match self.judge_append(&request) {
            Ok(None) => self.order(request, out),
            Ok(Some(placed)) => self.answer_again(&request, placed, out),
            Err(Judgement::Refused(code, rests_on)) => self.refuse_append(&request, code, rests_on, out),
            Err(Judgement::Forgotten) => out.push(Command::Refuse {
                client: request.client,
                seq: request.seq,
                entry_count: request.entry_count,
                code: Code::SessionExpired,
                happened: Happened::Unknown,
                retry_after_ms: 0,
            }),
        }
    }

    /// `Ok(None)`: to be ordered now; `Ok(Some)`: it lies there already.
    fn judge_append(&self, request: &AppendRequest) -> Result<Option<Placed>, Judgement> {
        let refuse = |code| Err(Judgement::Refused(code, RestsOn::Nothing));
        if self.role == Role::None {
            return refuse(Code::GroupNotHere);
        }
        if !self.is_head() {
            return refuse(Code::NotHead);
        }
        if request.session == 0 || request.seq == 0 {
            return refuse(Code::SessionMissing);
        }
        match self
            .log
            .sessions()
            .judge(request.session, request.seq, request.floor_index)
        {
            Verdict::Ordered(_) if planted::on(Bug::RetryOrderedAgain) => {}
            Verdict::Ordered(Some(placed)) => return Ok(Some(placed)),
            Verdict::Ordered(None) => return Err(Judgement::Forgotten),
            Verdict::Gap { .. } => return refuse(Code::SequenceGap),
            Verdict::Expired => return refuse(Code::SessionExpired),
            Verdict::Next => {}
        }
        if self.is_cut_off() {
            return refuse(Code::CutOff);
        }
        if !self.config.as_ref().is_some_and(|c| c.has_quorum()) {
            return refuse(Code::Paused);
        }
        if self.fault() || self.ring.fault() {
            return refuse(Code::ReadOnly);
        }
        self.judge_conditions(request)?;
        Ok(None)
    }

    /// A condition that fails is judged on the head's log, of which the end is not certain yet: the refusal waits for
    /// that ([`RestsOn`]), or a client could be told of entries that are lost with this head, or be told too little.
    fn judge_conditions(&self, request: &AppendRequest) -> Result<(), Judgement> {
        let (expected, end) = (request.expected_offset, self.log.next_offset());
        let is_asked = expected != NO_EXPECTED_OFFSET && !planted::on(Bug::ExpectedOffsetIgnored);
        if is_asked && expected != end {
            let rests_on = match self.log.index_of(expected) {
                // The log has grown beyond it, by this batch.
                Some(index) => RestsOn::Commit(index),
                None if expected < end => RestsOn::Nothing,
                // The log has not grown so far, unless another head has made it grow.
                None => RestsOn::Round,
            };
            return Err(Judgement::Refused(Code::ConditionFailed, rests_on));
        }
        let is_fenced = request.fencing_token < self.log.sessions().fence();
        if request.fencing_token != 0 && is_fenced && !planted::on(Bug::FencingIgnored) {
            let rests_on = RestsOn::Commit(self.log.last_index());
            return Err(Judgement::Refused(Code::Fenced, rests_on));
        }
        Ok(())
    }

    fn order(&mut self, request: AppendRequest, out: &mut Vec<Command>) {
        let config = self.config.as_ref().expect("a head is configured");
        let payload_len = request.payload.len() as u32;
        let header = BatchHeader {
            group_id: config.group_id,
            epoch: config.epoch,
            index: self.log.last_index() + 1,
            base_offset: self.log.next_offset(),
            cumulative_bytes: self.log.cumulative_bytes() + u64::from(payload_len)
                - 4 * u64::from(request.entry_count),
            session: request.session,
            seq: request.seq,
            timestamp_us: request.wall_us,
            fencing_token: request.fencing_token,
            entry_count: request.entry_count,
            payload_len,
            payload_crc: request.payload_crc,
        };
        let placed = Placed {
            index: header.index,
            base_offset: header.base_offset,
            entry_count: header.entry_count,
        };
        self.store(
            Batch {
                header,
                payload: request.payload,
                trace: request.trace,
            },
            out,
        );
        self.wait(request.client, request.seq, placed, request.received_us);
    }

    /// A retry of what is in the log: answered now if committed, else with its commitment.
    fn answer_again(&mut self, request: &AppendRequest, placed: Placed, out: &mut Vec<Command>) {
        if placed.index <= self.commit_index {
            out.push(ack(request.client, request.seq, placed, request.received_us));
        } else {
            self.wait(request.client, request.seq, placed, request.received_us);
        }
    }

    /// One waits for a batch: whoever sent it last.
    fn wait(&mut self, client: ClientRef, seq: u64, placed: Placed, received_us: Micros) {
        let waiter = Waiter {
            index: placed.index,
            client,
            seq,
            placed,
            received_us,
        };
        match self.waiters.binary_search_by_key(&placed.index, |w| w.index) {
            Ok(at) => self.waiters[at] = waiter,
            Err(at) => self.waiters.insert(at, waiter),
        }
    }

    /// The client's channel is gone: nothing is kept for answering it.
    pub fn forget_client(&mut self, client: ClientRef) {
        self.waiters.retain(|w| w.client != client);
        self.rounds.forget_client(client);
        self.trim.forget_client(client);
    }

    /// Commits up to what the ring has told, while enough replicas are in it.
    pub(crate) fn commit_from_ring(&mut self, out: &mut Vec<Command>) {
        let is_enough =
            planted::on(Bug::MinReplicasIgnored) || self.config.as_ref().is_some_and(|c| c.has_quorum());
        if !self.is_head() || !is_enough {
            return;
        }
        let level = if planted::on(Bug::AckBeforeTail) {
            self.log.last_index()
        } else {
            self.ring_level()
        };
        self.advance_commit(level, out);
        while self.waiters.front().is_some_and(|w| w.index <= self.commit_index) {
            let waiter = self.waiters.pop_front().expect("there is a front");
            out.push(ack(waiter.client, waiter.seq, waiter.placed, waiter.received_us));
        }
    }
}

/// How long the client of a refused append should wait.
pub(crate) fn retry_after_ms(code: Code) -> u32 {
    match code {
        Code::Paused | Code::ReadOnly => RETRY_PAUSED_MS,
        Code::Overloaded => RETRY_AFTER_MS_HELD as u32,
        _ => 0,
    }
}

fn ack(client: ClientRef, seq: u64, placed: Placed, received_us: Micros) -> Command {
    let Placed {
        base_offset,
        entry_count,
        ..
    } = placed;
    Command::Ack {
        client,
        seq,
        base_offset,
        entry_count,
        received_us,
    }
}
