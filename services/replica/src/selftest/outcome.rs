//! The result of a test, for the server that starts after it.

use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub provider: String,
    pub is_ok: bool,
    /// For people.
    pub words: String,
}

impl Outcome {
    /// Replaces the file.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let text = serde_json::to_string(self).expect("it serialises");
        std::fs::write(file, text + "\n").map_err(|e| format!("--out {}: {e}", file.display()))
    }
}
