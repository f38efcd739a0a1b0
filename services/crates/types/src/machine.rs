//! The machine that costs were measured on: its processor and cores make costs comparable.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    pub cores: u32,
}

impl fmt::Display for Machine {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} × {}", self.cores, self.cpu)
    }
}

/// Longer names are shortened.
pub const CPU_NAME_CHARS_MAX: usize = 128;

impl Machine {
    /// From the text of /proc/cpuinfo, and how many cores may be used.
    pub fn of_cpuinfo(cpuinfo: &str, cores: usize) -> Self {
        let named = |line: &str| {
            let (field, name) = line.split_once(':')?;
            (field.trim() == "model name").then(|| name.trim().chars().take(CPU_NAME_CHARS_MAX).collect())
        };
        Self {
            cpu: cpuinfo
                .lines()
                .find_map(named)
                .unwrap_or_else(|| "unknown processor".to_string()),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
        }
    }
}
