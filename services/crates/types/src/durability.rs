//! Durability: the condition under which an entry counts as committed.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Every replica holds it in memory.
    InMemory,
    /// Every replica has it on stable storage.
    Persistent,
}
