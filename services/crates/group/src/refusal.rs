//! Refusals: answers to clients that do not get what they asked for.

use quorate_types::{Code, Micros};
use quorate_wire::client::{self, Message};

use crate::outcome::{Basis, may_have_happened};

/// A refusal to be sent.
#[derive(Debug)]
pub struct Refusal {
    /// The kind of the refused message.
    pub op: u8,
    pub id: u64,
    pub code: Code,
    /// Whether it may have happened all the same.
    pub is_unknown: bool,
    pub retry_after_ms: u32,
    pub head_address: String,
    pub detail: Option<String>,
}

impl Refusal {
    pub fn new(op: u8, id: u64, code: Code) -> Self {
        Self {
            op,
            id,
            code,
            is_unknown: false,
            retry_after_ms: 0,
            head_address: String::new(),
            detail: None,
        }
    }

    /// The refusal of a message that no group took in. Nobody knows what was ordered of it.
    pub fn without_group(message: &Message, code: Code) -> Self {
        let (op, id) = refused_as(message);
        let is_append = matches!(message, Message::Append(_));
        Self {
            is_unknown: is_append && may_have_happened(Basis::Nothing),
            ..Self::new(op, id, code)
        }
    }

    pub fn into_message(self) -> Message {
        let explanation = self.code.explanation();
        let message = match self.detail {
            Some(detail) => format!("{explanation} {detail}"),
            None => explanation.to_string(),
        };
        let outcome = if self.is_unknown {
            client::Outcome::Unknown
        } else {
            client::Outcome::Refused
        };
        Message::Refused(client::Refused {
            op: self.op,
            outcome: outcome as u8,
            retry: client::retry_byte(self.code),
            code: self.code as u16,
            retry_after_ms: self.retry_after_ms,
            id: self.id,
            head_address: self.head_address,
            message,
        })
    }
}

/// The `op` and `id` under which a client's message is refused.
pub fn refused_as(message: &Message) -> (u8, u64) {
    let id = match message {
        Message::Append(append) => append.seq,
        Message::Read { request, .. }
        | Message::Subscribe { request, .. }
        | Message::Credit { request, .. }
        | Message::Cancel { request }
        | Message::Trim { request, .. }
        | Message::Status { request } => u64::from(*request),
        _ => 0,
    };
    (message.kind(), id)
}

/// Rounded up, at least one: a client that comes back at once would only be refused again.
pub(crate) fn retry_ms(retry_after_us: Micros) -> u32 {
    retry_after_us.div_ceil(1_000).clamp(1, 60_000) as u32
}
