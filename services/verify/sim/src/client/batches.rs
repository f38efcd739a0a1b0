//! Batches that writers append, with a number of their own in the payload, some with a condition.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_wire::client::{Append, Message, NO_EXPECTED_OFFSET};
use rand::Rng;

use super::{connection, session};
use crate::fleet::{ClientId, ClientState, Habit, Outstanding, World};
use crate::plan::KEPT_BATCHES;

/// Gives its batches up from position `from` on. Their seqs go to others.
pub(super) fn give_up(world: &mut World, c: usize, from: usize) {
    let writer = &mut world.writers[c];
    let dropped: Vec<Outstanding> = writer.outstanding.drain(from..).collect();
    if let Some(first) = dropped.first() {
        writer.next_seq = first.seq;
    }
    for out in dropped {
        let writer = &world.writers[c];
        world.trace.line(Some(writer.group), || {
            format!("client {c} gives up seq {}", out.seq)
        });
        world.ledgers[writer.group].refuse(out.number);
        world.counts.refusals += 1;
    }
}

pub(super) fn send_all(world: &mut World, c: usize) {
    for at in 0..world.writers[c].outstanding.len() {
        let out = world.writers[c].outstanding[at].clone();
        send_append(world, c, &out);
    }
}

fn send_append(world: &mut World, c: usize, out: &Outstanding) {
    let g = world.writers[c].group;
    let (end, timeout_ms) = (world.ledgers[g].end_offset(), world.plan.groups[g].timeout_ms);
    let writer = &mut world.writers[c];
    if writer.state != ClientState::Ready {
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
    world.ledgers[g].sent(out.number, connection, out.seq);
    connection::send(world, ClientId::Writer(c), Some(Message::Append(append)));
}

pub(super) fn make(world: &mut World, c: usize) {
    let g = world.writers[c].group;
    let renews = world.writers[c].habit.renews();
    if renews && world.writers[c].outstanding.is_empty() && world.writers[c].next_seq > 1 {
        // Each batch has a session of its own. The connection would serve, but ATTACHED has the floor.
        session::abandon(world, c);
        return session::send_attach(world, c);
    }
    let kept = if world.is_healing { 0 } else { KEPT_BATCHES };
    let window = if renews { 1 } else { world.plan.groups[g].window };
    let is_busy = world.rng.random_bool(0.8);
    while is_busy && world.writers[c].remaining > kept && world.writers[c].outstanding.len() < window {
        make_one(world, c, g);
    }
    let may_leave =
        world.writers[c].habit == Habit::LeavesAndReturns && !world.writers[c].outstanding.is_empty();
    if may_leave && world.rng.random_bool(0.5) {
        session::leave(world, c);
    }
}

fn make_one(world: &mut World, c: usize, g: usize) {
    let max = world.plan.groups[g].payload_bytes_max;
    let payload_len = if world.rng.random_bool(0.5) {
        max
    } else {
        world.rng.random_range(40..=max)
    };
    let entry_count = world.rng.random_range(1..=3u32);
    let has_expectation = world.rng.random_bool(0.05);
    let has_token = world.rng.random_bool(0.05);
    let writer = &mut world.writers[c];
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
    let number = world.ledgers[g].issue(world.now, writer.session, seq, entry_count, expected_offset);
    let payload = payload(number as u64, entry_count, payload_len);
    let payload_crc = crc32fast::hash(&payload);
    world.ledgers[g].made(number, payload_crc);
    let out = Outstanding {
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
    writer.since = world.now;
    send_append(world, c, &out);
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
