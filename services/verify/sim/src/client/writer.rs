//! Clients that append: one session each, a window of batches, retries across heads. Now and then a batch is given
//! up, and its seq goes to the next one. Now and then a whole session is abandoned.

use quorate_types::config::Beginning;
use quorate_types::{Code, Micros, Offset, Role};
use quorate_wire::client::{Attached, Message, Notice, Outcome, Refused, StatusOk, kind};
use rand::Rng;

use super::connection::ATTACH_TIMEOUT_US;
use super::{batches, connection, session};
use crate::fleet::{ClientId, ClientState, Habit, Outstanding, Scheduled, World, Writer};

/// The least number of batches that a client has to append after a reset.
const BATCHES_AFTER_RESET: u32 = 8;

const ANSWER_TIMEOUT_US: Micros = 1_500_000;

/// `retry` of REFUSED.
const RETRY_AT_HEAD: u8 = 2;

const RETRY_WITH_HANDLE: u8 = 3;

pub fn tick(world: &mut World, c: usize) {
    let now = world.now;
    let writer = &mut world.writers[c];
    if world.ledgers[writer.group].is_lost {
        return stop(world, c);
    }
    if is_away(world, c) {
        let at = now + world.rng.random_range(5_000..50_000);
        return world.schedule(
            at,
            Scheduled::ClientTick {
                client: ClientId::Writer(c),
            },
        );
    }
    let writer = &mut world.writers[c];
    match writer.state {
        ClientState::Idle => session::attach(world, c),
        ClientState::Attaching if now - writer.since > ATTACH_TIMEOUT_US => writer.state = ClientState::Idle,
        ClientState::Attaching => {}
        ClientState::Ready if writer.unanswered > 0 => {
            if now - writer.since > ANSWER_TIMEOUT_US {
                writer.state = ClientState::Idle;
            }
        }
        ClientState::Ready if writer.was_refused && now < writer.resend_at => {}
        ClientState::Ready if writer.was_refused => after_refusal(world, c),
        ClientState::Ready => {
            batches::make(world, c);
            ask(world, c);
        }
    }
    if !world.writers[c].is_done() {
        let pause_us = match world.writers[c].habit {
            Habit::RenewsSession => 100..2_000,
            Habit::KeepsSession | Habit::LeavesAndReturns | Habit::LacksPermission => 500..12_000,
        };
        let at = now + world.rng.random_range(pause_us);
        world.schedule(
            at,
            Scheduled::ClientTick {
                client: ClientId::Writer(c),
            },
        );
    }
}

/// Whether the client stays away: until others have filled the session table once more, or are done.
fn is_away(world: &mut World, c: usize) -> bool {
    let writer = &world.writers[c];
    let is_filling = |other: &Writer| {
        other.group == writer.group && other.habit == Habit::RenewsSession && !other.is_done()
    };
    let stays =
        world.ledgers[writer.group].last_index() < writer.away_until && world.writers.iter().any(is_filling);
    if !stays {
        world.writers[c].away_until = 0;
    }
    stays
}

/// The group is lost: the outcome of outstanding batches stays unknown.
fn stop(world: &mut World, c: usize) {
    let writer = &mut world.writers[c];
    writer.remaining = 0;
    for out in std::mem::take(&mut writer.outstanding) {
        world.ledgers[writer.group].unknown(out.number);
    }
}

/// Its group was reset: it has a new session, and goes to no earlier head.
pub fn reset(world: &mut World, c: usize, beginning: Beginning) {
    let slept = world.writers[c].is_done();
    connection::close(world, ClientId::Writer(c));
    session::abandon(world, c);
    let writer = &mut world.writers[c];
    writer.state = ClientState::Idle;
    writer.epoch_seen = beginning.epoch;
    writer.offset_seen = beginning.offset;
    writer.fencing_token = 0;
    writer.remaining = writer.remaining.max(BATCHES_AFTER_RESET);
    if slept {
        world.schedule(
            world.now,
            Scheduled::ClientTick {
                client: ClientId::Writer(c),
            },
        );
    }
}

pub(super) fn receive(world: &mut World, c: usize, message: Message) {
    if world.writers[c].state == ClientState::Idle {
        return;
    }
    match message {
        Message::Attached(attached) => take_attached(world, c, &attached),
        Message::Notice(notice) => take_notice(world, c, &notice),
        Message::Acked(acks) => {
            for (seq, base_offset) in acks {
                take_ack(world, c, seq, base_offset);
            }
        }
        Message::StatusOk(StatusOk { request, .. }) | Message::TrimOk { request, .. } => {
            question_answered(world, c, request);
        }
        Message::Refused(refused) => match refused.op {
            kind::STATUS | kind::TRIM => question_answered(world, c, refused.id as u32),
            kind::APPEND => take_refusal(world, c, &refused),
            // It is not attached: it looks elsewhere.
            _ => world.writers[c].state = ClientState::Idle,
        },
        _ => {}
    }
}

/// Its question was answered.
fn question_answered(world: &mut World, c: usize, request: u32) {
    let writer = &mut world.writers[c];
    writer.asking = writer.asking.filter(|asking| *asking != request);
}

fn take_attached(world: &mut World, c: usize, attached: &Attached) {
    let gives_up = world
        .rng
        .random_bool(world.plan.groups[world.writers[c].group].gives_up);
    let hint = world.server_at(&attached.head_address);
    let writer = &mut world.writers[c];
    let is_head = is_head(attached.role);
    writer.floor_index = writer.floor_index.min(attached.last_index);
    if !is_head || attached.epoch < writer.epoch_seen {
        writer.state = ClientState::Idle;
        writer.hint = hint.filter(|head| *head != writer.connection.server);
        return;
    }
    world.trace.line(Some(writer.group), || {
        format!(
            "client {c} attached at s{}: next_seq {}, epoch {}",
            writer.connection.server + 1,
            attached.next_seq,
            attached.epoch
        )
    });
    writer.epoch_seen = attached.epoch;
    writer.state = ClientState::Ready;
    writer.since = world.now;
    // A head may have forgotten a session that it does not know, where there are more than the table holds. The
    // batches must be sent again then, and are refused as expired.
    let is_believed = attached.next_seq > 1 || !world.plan.groups[writer.group].churns;
    if gives_up && is_believed {
        // A batch that the table does not hold was not ordered, and will not be: its seq is free again.
        let from = writer.outstanding.partition_point(|o| o.seq < attached.next_seq);
        batches::give_up(world, c, from);
    }
    batches::send_all(world, c);
}

/// ATTACHED holds as long as its server stays the head.
fn take_notice(world: &mut World, c: usize, notice: &Notice) {
    let writer = &mut world.writers[c];
    if writer.state != ClientState::Ready {
        return;
    }
    if !is_head(notice.role) || notice.epoch > writer.epoch_seen + 1 {
        writer.state = ClientState::Idle;
    }
    writer.epoch_seen = writer.epoch_seen.max(notice.epoch);
}

fn take_ack(world: &mut World, c: usize, seq: u64, base_offset: Offset) {
    let now = world.now;
    let writer = &mut world.writers[c];
    writer.unanswered = writer.unanswered.saturating_sub(1);
    writer.since = now;
    let Some(at) = writer.outstanding.iter().position(|o| o.seq == seq) else {
        return;
    };
    let out = writer.outstanding.remove(at).expect("it is there");
    writer.offset_seen = writer.offset_seen.max(base_offset + u64::from(out.entry_count));
    world.ledgers[writer.group].acked(out.number, base_offset);
}

fn take_refusal(world: &mut World, c: usize, refused: &Refused) {
    let writer = &mut world.writers[c];
    writer.unanswered = writer.unanswered.saturating_sub(1);
    writer.since = world.now;
    let is = |code: Code| refused.code == code as u16;
    if is(Code::SessionExpired) {
        // Batches that were sent may have been committed.
        return take_session_expired(world, c);
    }
    if is(Code::SessionMoved) {
        // Another connection has the session: it is not the writer's any more.
        return;
    }
    let is_elsewhere = refused.retry == RETRY_AT_HEAD || refused.retry == RETRY_WITH_HANDLE;
    if refused.outcome == Outcome::Unknown as u8
        || is_elsewhere
        || is(Code::UnknownChannel)
        || is(Code::GroupLost)
    {
        writer.state = ClientState::Idle;
    } else {
        writer.was_refused = true;
        let patience = u64::from(refused.retry_after_ms) * 1_000;
        writer.resend_at = writer.resend_at.max(world.now + patience);
    }
}

fn take_session_expired(world: &mut World, c: usize) {
    world.counts.expired_sessions += 1;
    session::abandon(world, c);
    connection::close(world, ClientId::Writer(c));
}

/// Sends refused batches again, or gives them up, once every batch that was sent has its answer.
fn after_refusal(world: &mut World, c: usize) {
    let writer = &mut world.writers[c];
    writer.was_refused = false;
    let has_condition = writer.outstanding.front().is_some_and(Outstanding::has_condition);
    let lacks_permission = writer.habit == Habit::LacksPermission;
    if lacks_permission || has_condition || world.rng.random_bool(0.1) {
        batches::give_up(world, c, 0);
    }
    batches::send_all(world, c);
}

/// Now and then asks where the log ends, or trims some of it.
fn ask(world: &mut World, c: usize) {
    let g = world.writers[c].group;
    let (begin, end) = (world.ledgers[g].begin_offset(), world.ledgers[g].end_offset());
    if world.writers[c].state != ClientState::Ready
        || world.writers[c].asking.is_some()
        || !world.rng.random_bool(world.plan.groups[g].asks)
    {
        return;
    }
    let before_offset = world.rng.random_range(begin..=end + (end - begin) / 20 + 1);
    world.writers[c].questions += 1;
    let request = world.writers[c].questions;
    let message = if world.rng.random_bool(0.5) {
        Message::Status { request }
    } else {
        Message::Trim {
            request,
            before_offset,
        }
    };
    world.writers[c].asking = Some(request);
    connection::send(world, ClientId::Writer(c), Some(message));
}

fn is_head(role: u8) -> bool {
    role == Role::Head as u8 || role == Role::Sole as u8
}
