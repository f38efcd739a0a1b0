//! The fleet's version, for operators.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetVersionView {
    /// Forms of this version may be written.
    pub version: u16,
    /// The greatest version that the leading coordinator's release reads.
    pub newest: u16,
    /// Servers and coordinators that must change before the version can be raised, with the next step for each.
    pub waits_for: Vec<String>,
}
