//! Another guarantee for a project.

use quorate_guarantees::Guarantee;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuaranteeChange {
    pub project_id: Uuid,
    /// `None`: the project has none any more.
    pub guarantee: Option<Guarantee>,
    /// The number of the change: one above the present one.
    pub revision: u64,
}
