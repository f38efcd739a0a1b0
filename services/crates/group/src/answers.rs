//! Messages to clients about a group, made from its replica's state.

use quorate_chain::{Asked, Replica};
use quorate_types::limits::{RETRY_AFTER_MS_HELD, SESSION_WINDOW_BATCHES};
use quorate_types::{Code, Durability};
use quorate_wire::client::{Attached, Message, Notice, StatusOk, kind};

use crate::refusal::Refusal;

pub(crate) fn head_address(replica: &Replica) -> String {
    let head = replica.config().and_then(|config| config.head());
    head.map(|member| member.address.clone()).unwrap_or_default()
}

pub(crate) fn attached(replica: &Replica, session: u64, rate_per_s: u64) -> Message {
    let log = replica.log();
    Message::Attached(Attached {
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
        rate_per_s,
        head_address: head_address(replica),
    })
}

/// To all attached clients: another epoch, or another rate.
pub(crate) fn notice(replica: &Replica, rate_per_s: u64) -> Message {
    Message::Notice(Notice {
        epoch: replica.epoch(),
        role: replica.role() as u8,
        state: replica.state() as u8,
        rate_per_s,
        head_address: head_address(replica),
    })
}

/// The replica answers what a client asked.
pub(crate) fn asked(replica: &Replica, request: u32, asked: Asked, refused: Option<Code>) -> Message {
    match (asked, refused) {
        (Asked::Status, None) => Message::StatusOk(status(replica, request)),
        (Asked::Trim { .. }, None) => Message::TrimOk {
            request,
            trim_offset: replica.trim_offset(),
        },
        (_, Some(code)) => {
            let op = match asked {
                Asked::Status => kind::STATUS,
                Asked::Trim { .. } => kind::TRIM,
            };
            let mut refusal = Refusal::new(op, u64::from(request), code);
            refusal.head_address = head_address(replica);
            // A trim that was under way when the head was deposed may go on under the next one.
            refusal.is_unknown = matches!(code, Code::EpochChanged | Code::CutOff);
            if matches!(code, Code::Paused | Code::Syncing | Code::Overloaded) {
                refusal.retry_after_ms = RETRY_AFTER_MS_HELD as u32;
            }
            if code == Code::TrimBeyondCommit {
                let commit_offset = replica.commit_offset();
                refusal.detail = Some(format!("The commit offset is {commit_offset}."));
            }
            refusal.into_message()
        }
    }
}

fn status(replica: &Replica, request: u32) -> StatusOk {
    StatusOk {
        request,
        role: replica.role() as u8,
        state: replica.state() as u8,
        epoch: replica.epoch(),
        commit_offset: replica.commit_offset(),
        durable_offset: replica.durable_offset(),
        trim_offset: replica.trim_offset(),
        next_offset: replica.log().next_offset(),
        head_address: head_address(replica),
    }
}
