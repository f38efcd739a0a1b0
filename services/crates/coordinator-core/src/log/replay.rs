//! A log is replayed: each command must lead to the epochs that it led to when it was decided.
//!
//! A release that decides differently would otherwise give an epoch that servers have another meaning, without a trace.

use std::fmt::{self, Display};

use super::scan::Recovered;
use crate::command::Command;
use crate::state::{CoordinatorState, applied};

/// A command that this release decides differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its position in the log.
    pub position: u64,
    /// The release that logged it, where the log says so.
    pub release: Option<String>,
    pub command: String,
    pub logged: String,
    pub replayed: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            position,
            command,
            logged,
            replayed,
            ..
        } = self;
        let release = self.release.as_deref().unwrap_or("an unknown release");
        write!(
            f,
            "command {position} ({command}), logged by {release}, issued {logged} then and {replayed} now"
        )
    }
}

/// The state that a log leads to. `begin` is the state before the first command of a log without a snapshot.
///
/// Commands of releases that did not log what followed from them are believed.
pub fn replay(
    recovered: Recovered,
    begin: impl FnOnce() -> CoordinatorState,
) -> Result<CoordinatorState, Difference> {
    let mut state = recovered.snapshot.unwrap_or_else(begin);
    state.restore();
    let mut release = None;
    for timed in &recovered.commands {
        if let Command::BeginRun { release: by, .. } = &timed.command {
            release = Some(by.clone());
        }
        let (_, replayed) = applied(&mut state, timed.at_ms, &timed.command);
        if let Some(logged) = timed.issued.as_ref().filter(|logged| **logged != replayed) {
            return Err(Difference {
                position: state.history.position(),
                release,
                command: timed.command.name(),
                logged: format!("{logged:?}"),
                replayed: format!("{replayed:?}"),
            });
        }
    }
    Ok(state)
}
