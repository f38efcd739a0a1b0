//! The head's part: ordering appends, once each, and answering them when they are committed.

use quorate_types::{Code, Index, Micros, Role};
use quorate_wire::client::NO_EXPECTED_OFFSET;
use quorate_wire::{Batch, BatchHeader};

use crate::command::{AppendRequest, ClientRef, Command, Happened};
use crate::replica::Replica;
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

impl Replica {
    pub(crate) fn append(&mut self, request: AppendRequest, out: &mut Vec<Command>) {
        match self.judge_append(&request) {
            Ok(None) => self.order(request, out),
            Ok(Some(placed)) => self.answer_again(&request, placed, out),
            Err((code, happened)) => out.push(Command::Refuse {
                client: request.client,
                seq: request.seq,
                entry_count: request.entry_count,
                code,
                happened,
                retry_after_ms: match code {
                    Code::Paused | Code::ReadOnly => RETRY_PAUSED_MS,
                    _ => 0,
                },
            }),
        }
    }

    /// `Ok(None)`: to be ordered now; `Ok(Some)`: it lies there already.
    fn judge_append(&self, request: &AppendRequest) -> Result<Option<Placed>, (Code, Happened)> {
        let refuse = |code| Err((code, Happened::No));
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
            Verdict::Ordered(Some(placed)) => return Ok(Some(placed)),
            // It was ordered so long ago that the client must have been told.
            Verdict::Ordered(None) => return Err((Code::SessionExpired, Happened::Unknown)),
            Verdict::Gap { .. } => return refuse(Code::SequenceGap),
            Verdict::Expired => return refuse(Code::SessionExpired),
            Verdict::Next => {}
        }
        if !self.config.as_ref().is_some_and(|c| c.has_quorum()) {
            return refuse(Code::Paused);
        }
        if self.fault() || self.ring_fault {
            return refuse(Code::ReadOnly);
        }
        if request.expected_offset != NO_EXPECTED_OFFSET && request.expected_offset != self.log.next_offset()
        {
            return refuse(Code::ConditionFailed);
        }
        if request.fencing_token != 0 && request.fencing_token < self.log.sessions().fence() {
            return refuse(Code::Fenced);
        }
        Ok(None)
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

    fn wait(&mut self, client: ClientRef, seq: u64, placed: Placed, received_us: Micros) {
        let at = self.waiters.partition_point(|w| w.index <= placed.index);
        self.waiters.insert(
            at,
            Waiter {
                index: placed.index,
                client,
                seq,
                placed,
                received_us,
            },
        );
    }

    /// Commits up to what the ring has told, while enough replicas are in it.
    pub(crate) fn commit_from_ring(&mut self, out: &mut Vec<Command>) {
        if !self.is_head() || !self.config.as_ref().is_some_and(|c| c.has_quorum()) {
            return;
        }
        self.advance_commit(self.ring_level, out);
        while self.waiters.front().is_some_and(|w| w.index <= self.commit_index) {
            let waiter = self.waiters.pop_front().expect("there is a front");
            out.push(ack(waiter.client, waiter.seq, waiter.placed, waiter.received_us));
        }
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
