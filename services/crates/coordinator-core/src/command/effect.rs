//! Effects of commands: actions of the engine once a command is durable.

use quorate_types::ServerId;
use quorate_types::control::{RefuseCode, ToServer};
use quorate_types::place::IssuedEpoch;
use quorate_types::sla::{Refusal, ScarceResource};
use serde::Serialize;

/// Why a registration is refused: a code for the server, a sentence for its operator.
pub type Refused = (RefuseCode, String);

/// The effects of one command are carried out in order.
#[allow(clippy::large_enum_variant)] // A few at a time, moved once: boxes would cost more than the bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The registering connection belongs to this server from here on. `joined`: with a join token, so the welcome
    /// carries the new credential.
    Accept {
        server: ServerId,
        joined: bool,
    },
    /// The registering connection is refused and closed.
    Refuse {
        code: RefuseCode,
        message: String,
    },
    /// A message to the server's connection; lost when it has none, since registration sends everything again.
    Send {
        server: ServerId,
        message: ToServer,
    },
    /// The server counts as failed: its connection is closed, so that it registers again.
    Disconnect {
        server: ServerId,
    },
    /// An epoch was issued: the log keeps it with the command.
    Issued(IssuedEpoch),
    Reply(Reply),
}

/// Why a project's guarantee was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuaranteeRefusal {
    pub scarce_resource: ScarceResource,
    /// For people.
    pub message: String,
    /// Fits now.
    pub largest_shared_tokens_per_s: u64,
}

/// The answer to the API call that gave the command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Admitted {
        created: bool,
    },
    Refused(Refusal),
    /// A guarantee that does not fit.
    GuaranteeRefused(GuaranteeRefusal),
    /// The command contradicts the state; `code` says how.
    Conflict {
        code: &'static str,
        message: String,
    },
    Deleted,
    TokenIssued,
    /// There is no such group or server.
    Unknown,
    /// The state is as was asked, now or already.
    Done,
}
