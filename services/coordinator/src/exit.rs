//! Exit codes of the process (`docs/internals/processes.md`).

use std::path::Path;
use std::process::ExitCode;

use crate::disk::LogError;
use quorate_coordinator_core::coordinator::Ending;
use quorate_coordinator_core::engine::Behind;
use quorate_coordinator_core::log::Difference;
use quorate_quorum::{MemberId, Point};

/// The process cannot start or go on; the message names the remedy.
#[derive(Debug)]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureCode {
    /// A command of an operator was not done; the coordinators are as they were, or the message says otherwise.
    NotDone = 1,
    /// Bad flags or configuration.
    Configuration = 2,
    PortInUse = 4,
    /// The disk or its contents are unusable.
    Disk = 5,
    /// The log is older than what servers were told, or is replayed to other decisions than were made.
    Behind = 6,
}

impl Failure {
    pub fn configuration(message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::Configuration,
            message: message.into(),
        }
    }

    pub fn disk(message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::Disk,
            message: message.into(),
        }
    }

    /// The coordinator cannot go on.
    pub fn of(ending: &Ending, data_dir: &Path) -> Self {
        match ending {
            Ending::Behind(behind) => Self::behind(behind),
            Ending::EntriesLost {
                member,
                acknowledged,
                last,
            } => Self::entries_lost(data_dir, *member, *acknowledged, *last),
            Ending::DecidedOtherwise(difference) => Self::decided_otherwise(data_dir, difference),
            Ending::Unreadable(problem) => Self::disk(format!("{}: {problem}", data_dir.display())),
        }
    }

    /// Servers know more than the log says.
    pub fn behind(behind: &Behind) -> Self {
        Self {
            code: FailureCode::Behind,
            message: format!(
                "the log is behind its servers: {}. It was restored from an older copy, or its end is lost. Nothing was \
                 issued. Put the newer log in place and start again; docs/operating/coordinator-behind.md says \
                 how",
                behind.evidence
            ),
        }
    }

    /// The member's disk is an older copy.
    fn entries_lost(data_dir: &Path, member: MemberId, acknowledged: Point, last: Point) -> Self {
        Self {
            code: FailureCode::Behind,
            message: format!(
                "{}: the log ends at {last}, and member {member} had acknowledged {acknowledged}: it is an older copy, or the \
                 disk has lost writes. It takes no part. Put the newest copy in place and start again; or wipe the \
                 folder, let it --join as a new member, and `quorate-coordinator replace {member}`; \
                 docs/operating/coordinators.md says how",
                data_dir.display()
            ),
        }
    }

    /// This release decides otherwise than the one that wrote the log.
    pub fn decided_otherwise(data_dir: &Path, difference: &Difference) -> Self {
        Self {
            code: FailureCode::Behind,
            message: format!(
                "{}: this release would decide otherwise than the one that wrote the log: {difference}. Nothing was \
                 changed. Start the release that wrote it, stop it with SIGTERM, which leaves a snapshot, and start this \
                 one then",
                data_dir.display()
            ),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        let code = match &error {
            LogError::EndLost { .. } => FailureCode::Behind,
            _ => FailureCode::Disk,
        };
        Self {
            code,
            message: error.to_string(),
        }
    }
}
