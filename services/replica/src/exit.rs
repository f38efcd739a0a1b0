//! Why the process ended.

/// The reason of the process's end, as its exit code (`docs/internals/processes.md`).
#[derive(Debug, thiserror::Error)]
pub enum Exit {
    #[error("{0}")]
    BadFlags(String),
    #[error("{0}")]
    DependencyMissing(String),
    #[error("{0}")]
    PortInUse(String),
    #[error("{0}")]
    DiskUnusable(String),
}

impl Exit {
    pub fn code(&self) -> u8 {
        match self {
            Exit::BadFlags(_) => 2,
            Exit::DependencyMissing(_) => 3,
            Exit::PortInUse(_) => 4,
            Exit::DiskUnusable(_) => 5,
        }
    }
}
