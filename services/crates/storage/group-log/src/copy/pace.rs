//! The rate of copying.

use std::io;
use std::time::{Duration, Instant};

use crate::core::Core;

/// Up to so many due segments, copying keeps to its rate. Each further one doubles the rate.
const SEGMENTS_CALM: usize = 2;
/// From so many due segments on, copying has no rate.
const SEGMENTS_HURRY: usize = 6;
const PACE_BYTES: u64 = 256 << 10;

pub(crate) struct Pace {
    started: Instant,
    /// `None`: as fast as possible.
    bytes_per_s: Option<u64>,
    bytes: u64,
    checked: u64,
}

impl Pace {
    pub fn new(calm_bytes_per_s: u64, segments_due: usize) -> Self {
        let doublings = segments_due.saturating_sub(SEGMENTS_CALM) as u32;
        Self {
            started: Instant::now(),
            bytes_per_s: (segments_due < SEGMENTS_HURRY).then(|| calm_bytes_per_s << doublings),
            bytes: 0,
            checked: 0,
        }
    }

    /// Waits until the rate allows so many more bytes; an error when the thread is to stop.
    pub fn keep(&mut self, core: &Core, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes - self.checked < PACE_BYTES {
            return Ok(());
        }
        self.checked = self.bytes;
        loop {
            if core.is_stopping() {
                return Err(io::Error::other("stopping"));
            }
            let Some(rate) = self.bytes_per_s else {
                return Ok(());
            };
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
            let wait = due.saturating_sub(self.started.elapsed());
            if wait.is_zero() {
                return Ok(());
            }
            std::thread::sleep(wait.min(Duration::from_millis(50)));
        }
    }
}
