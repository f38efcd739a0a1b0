//! Batches that writers append, with a number of their own in the payload, some with a condition.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::Offset;
use quorate_wire::client::{Append, Message, NO_EXPECTED_OFFSET};
use rand::Rng;

use super::writer::Habit;
use super::{State, Who};
use crate::world::World;

/// A batch that its writer has made and knows no end of.
#[derive(Debug, Clone)]
pub struct Out {
    pub(super) seq: u64,
    /// Its number in the ledger.
    pub(super) number: usize,
    payload: Bytes,
    payload_crc: u32,
    pub(super) entry_count: u32,
    pub expected_offset: Offset,
    pub fencing_token: u64,
    /// The end of the committed log when it was last sent.
    pub sent_at: Offset,
}

impl Out {
    pub(super) fn has_condition(&self) -> bool {
        self.expected_offset != NO_EXPECTED_OFFSET || self.fencing_token != 0
    }
}

impl World {
    /// Gives its batches up from there on; their seqs go to others.
    pub(super) fn give_up(&mut self, c: usize, from: usize) {
        let writer = &mut self.writers[c];
        let dropped: Vec<Out> = writer.outstanding.drain(from..).collect();
        if let Some(first) = dropped.first() {
            writer.next_seq = first.seq;
        }
        for out in dropped {
            let writer = &self.writers[c];
            self.trace.line(Some(writer.group), || {
                format!("client {c} gives up seq {}", out.seq)
            });
            self.ledgers[writer.group].refuse(out.number);
            self.counts.refusals += 1;
        }
    }

    pub(super) fn send_all(&mut self, c: usize) {
        for at in 0..self.writers[c].outstanding.len() {
            let out = self.writers[c].outstanding[at].clone();
            self.send_append(c, &out);
        }
    }

    fn send_append(&mut self, c: usize, out: &Out) {
        let g = self.writers[c].group;
        let (end, timeout_ms) = (self.ledgers[g].end_offset(), self.plan.groups[g].timeout_ms);
        let writer = &mut self.writers[c];
        if writer.state != State::Ready {
            return;
        }
        let connection = writer.connection.id;
        writer.unanswered += 1;
        if let Some(kept) = writer.outstanding.iter_mut().find(|o| o.seq == out.seq) {
            kept.sent_at = end;
        }
        let append = Append {
            seq: out.seq,
            floor_index: writer.floor_index,
            timeout_ms,
            entry_count: out.entry_count,
            payload_crc: out.payload_crc,
            expected_offset: out.expected_offset,
            fencing_token: out.fencing_token,
            payload: out.payload.clone(),
        };
        self.ledgers[g].sent(out.number, connection, out.seq);
        self.request(Who::Writer(c), Some(Message::Append(append)));
    }

    pub(super) fn make_batches(&mut self, c: usize) {
        let g = self.writers[c].group;
        let renews = self.writers[c].habit.renews();
        if renews && self.writers[c].outstanding.is_empty() && self.writers[c].next_seq > 1 {
            // Each batch in a session of its own; the connection would serve, but an attach tells the floor.
            self.abandon_session(c);
            return self.send_attach(c);
        }
        // Some of the work is kept for the time after the faults.
        let kept = if self.is_healing { 0 } else { 3 };
        let window = if renews { 1 } else { self.plan.groups[g].window };
        let is_busy = self.rng.random_bool(0.8);
        while is_busy && self.writers[c].remaining > kept && self.writers[c].outstanding.len() < window {
            self.make_batch(c, g);
        }
        let strays = self.writers[c].habit == Habit::Strays && !self.writers[c].outstanding.is_empty();
        if strays && self.rng.random_bool(0.5) {
            self.stray(c);
        }
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
        let writer = &mut self.writers[c];
        let expected_offset = if has_expectation {
            writer.offset_seen
        } else {
            NO_EXPECTED_OFFSET
        };
        writer.fencing_token += u64::from(has_token);
        let fencing_token = if has_token { writer.fencing_token } else { 0 };
        let seq = writer.next_seq;
        writer.next_seq += 1;
        writer.remaining -= 1;
        let number = self.ledgers[g].issue(writer.session, seq, entry_count, expected_offset);
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
        writer.outstanding.push_back(out.clone());
        writer.since = self.now;
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
