//! Exit codes of the process (`docs/internals/processes.md`).

use std::process::ExitCode;

/// The process cannot start or go on; the message names the remedy.
#[derive(Debug)]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureCode {
    /// Bad flags or configuration.
    Configuration = 2,
    PortInUse = 4,
    /// The disk or its contents are unusable.
    Disk = 5,
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

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

impl From<crate::log_file::LogError> for Failure {
    fn from(error: crate::log_file::LogError) -> Self {
        Self::disk(error.to_string())
    }
}
