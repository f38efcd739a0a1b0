//! Microseconds of a monotonic clock, which begins with the process's first use of it.

use std::sync::OnceLock;
use std::time::Duration;

use quorate_types::Micros;
use tokio::time::Instant;

fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub fn now_us() -> Micros {
    start().elapsed().as_micros() as Micros
}

/// The instant of a time of this clock, at most a day away, for timers.
pub(crate) fn instant_of(at: Micros) -> Instant {
    const DAY_US: Micros = 86_400_000_000;
    let now = now_us();
    Instant::now() + Duration::from_micros(at.saturating_sub(now).min(DAY_US))
}

pub(crate) fn deadline_after(timeout: Duration) -> Micros {
    now_us().saturating_add(timeout.as_micros().min(1 << 60) as Micros)
}
