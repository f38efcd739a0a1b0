//! The process's clocks: one that only grows, for durations, and the wall clock, for timestamps.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use quorate_types::Micros;

static START: OnceLock<Instant> = OnceLock::new();

/// Microseconds since the process began; never goes back.
pub fn now_us() -> Micros {
    START.get_or_init(Instant::now).elapsed().as_micros() as Micros
}

/// Microseconds since 1970; may jump.
pub fn wall_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64)
}
