//! Logged commands are applied: each must lead to the epochs that it led to when it was decided.
//!
//! A release that decides differently would otherwise give an epoch that servers have another meaning, without a trace.

use std::fmt::{self, Display};

use crate::command::{Command, Timed};
use crate::state::{CoordinatorState, applied};

/// A command that this release decides differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its position among all commands.
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

/// Applies commands of a log, in order.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// The release whose commands they are.
    release: Option<String>,
}

impl Replay {
    pub fn apply(&mut self, state: &mut CoordinatorState, commands: &[Timed]) -> Result<(), Difference> {
        for timed in commands {
            if let Command::BeginRun { release, .. } = &timed.command {
                self.release = Some(release.clone());
            }
            let (_, replayed) = applied(state, timed.at_ms, &timed.command);
            if let Some(logged) = timed.issued.as_ref().filter(|logged| **logged != replayed) {
                return Err(Difference {
                    position: state.history.position(),
                    release: self.release.clone(),
                    command: timed.command.name(),
                    logged: format!("{logged:?}"),
                    replayed: format!("{replayed:?}"),
                });
            }
        }
        Ok(())
    }
}
