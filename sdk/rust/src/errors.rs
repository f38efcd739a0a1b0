//! Errors, typed by what the caller has to do about them.

use std::fmt;
use std::time::Duration;

use quorate_types::{Code, Micros};
use quorate_wire::WireError;
use quorate_wire::client::Refused;
use thiserror::Error;

use crate::codes::{CODES, CodeInfo, client_side};

static UNLISTED: CodeInfo = CodeInfo {
    code: 0,
    name: "unlisted",
    fault: "service",
    retry: "never",
    meaning: "The server gave a code that this client does not know.",
    action: "Upgrade it.",
};

/// A failure: a code of `sdk/contract/errors.json`, and details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: u16,
    /// Details; may be empty.
    pub message: String,
    /// Whether the same call may succeed later.
    pub is_retryable: bool,
    pub retry_after: Duration,
}

impl Failure {
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        let retryable = info(code).retry != "never";
        Self {
            code,
            message: message.into(),
            is_retryable: retryable,
            retry_after: Duration::ZERO,
        }
    }

    pub fn of(code: Code, message: impl Into<String>) -> Self {
        Self::new(code as u16, message)
    }

    pub(crate) fn refused(refused: &Refused) -> Self {
        Self {
            code: refused.code,
            message: refused.message.clone(),
            is_retryable: refused.retry != 0,
            retry_after: Duration::from_millis(u64::from(refused.retry_after_ms)),
        }
    }

    pub fn info(&self) -> &'static CodeInfo {
        info(self.code)
    }

    pub fn is(&self, code: Code) -> bool {
        self.code == code as u16
    }

    pub(crate) fn retry_after_us(&self) -> Micros {
        self.retry_after.as_micros() as Micros
    }
}

/// Meaning of a code.
pub fn info(code: u16) -> &'static CodeInfo {
    CODES
        .binary_search_by_key(&code, |info| info.code)
        .map_or(&UNLISTED, |at| &CODES[at])
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        write!(f, "{}: {}", info.name, info.meaning)?;
        // Servers explain their codes with the same text.
        let detail = self
            .message
            .strip_prefix(info.meaning)
            .unwrap_or(&self.message)
            .trim();
        let detail = detail.strip_prefix(info.action).unwrap_or(detail).trim();
        if !detail.is_empty() {
            write!(f, " ({})", detail.trim_end_matches('.'))?;
        }
        write!(f, " {}", info.action)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Failure::of(error.code(), error.to_string())
    }
}

/// An append that was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AppendError {
    /// It did not happen and will not.
    #[error("{0} It did not happen.")]
    Refused(Failure),
    /// It may have happened, or may still happen. If twice does no harm, append again; else read the log.
    #[error("{0} Whether it happened is unknown.")]
    Unknown(Failure),
}

impl AppendError {
    pub fn failure(&self) -> &Failure {
        match self {
            AppendError::Refused(failure) | AppendError::Unknown(failure) => failure,
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, AppendError::Unknown(_))
    }
}

/// A read, tail, trim or status call that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ReadError(pub Failure);

/// No replica of the group could be attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ConnectError(pub Failure);

/// The text is not a handle.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the handle {0}; get a new one from GET /v1/groups/{{group_id}}/handle")]
pub struct HandleError(pub String);

pub(crate) fn closed() -> Failure {
    Failure::new(client_side::CLIENT_CLOSED, "")
}

/// Reason why [`crate::Client::connect`] gave no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectFailed {
    #[error(transparent)]
    Handle(#[from] HandleError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_and_unknown_ones_are_described() {
        assert!(CODES.is_sorted_by_key(|info| info.code));
        assert_eq!(info(Code::Throttled as u16).name, "throttled");
        assert_eq!(info(client_side::NO_ANSWER).fault, "network");
        assert_eq!(info(60_000).name, "unlisted");
    }

    #[test]
    fn texts_do_not_repeat_the_meaning() {
        let failure = Failure::of(
            Code::Trimmed,
            format!("{} It is 12.", Code::Trimmed.explanation()),
        );
        let text = failure.to_string();
        assert_eq!(text.matches("The offset lies before").count(), 1, "{text}");
        assert!(text.contains("It is 12"), "{text}");
    }
}
