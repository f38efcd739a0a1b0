//! The part of a group's service that its owner lets clients use.

use serde::{Deserialize, Serialize};

/// The access to a group, as an organization's spend cap sets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The reservation, and burst capacity beyond it.
    #[default]
    Full,
    /// The reservation alone.
    Reserved,
    /// Neither appends nor reads. The log stays.
    Suspended,
}

impl Access {
    pub fn is_full(&self) -> bool {
        *self == Access::Full
    }

    pub fn is_suspended(self) -> bool {
        self == Access::Suspended
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Access::Full => "full",
            Access::Reserved => "reserved",
            Access::Suspended => "suspended",
        })
    }
}
