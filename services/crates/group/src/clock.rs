//! Whether the server's wall clock can be believed: the coordinator's clock is beside it.
//!
//! The coordinator says its time with each answer. Between answers that time goes on with the clock that never goes
//! back. So a step of either wall clock shows at once, and a coordinator that is away vouches on. A server that had no
//! answer since its process began has nobody to vouch for its clock. In doubt nothing is trimmed by time stamps, and
//! batches are stamped as doubtful. Retention by age then goes by how long the process has held them (`quorate-chain`).
//!
//! One of the two clocks must be right. Then no age that counts exceeds the true one.

use std::collections::VecDeque;

use quorate_types::Micros;
use quorate_types::limits::CLOCK_DIFFERENCE_US_MAX;
use quorate_types::planted::{self, Bug};

/// Requests whose answers are remembered to come. More are never under way: the coordinator is dialed anew before.
const ASKED_MAX: usize = 16;

/// Compares the server's clocks with the coordinator's, answer by answer.
#[derive(Debug, Default)]
pub struct ServerClock {
    /// Requests under way on the present connection, and when they left. Number 0 is the registration.
    asked: VecDeque<(u64, Micros)>,
    vouch: Vouch,
}

impl ServerClock {
    /// A request leaves whose answer will have the coordinator's time.
    pub fn asked(&mut self, number: u64, now: Micros) {
        if number == 0 {
            self.asked.clear();
        }
        if self.asked.len() >= ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((number, now));
    }

    /// The answer to a request. An answer that was long under way says nothing: the coordinator's clock was read at any
    /// time since the request left.
    pub fn answered(&mut self, number: u64, now: Micros, unix_ms: Option<u64>) {
        let Some(at) = self.asked.iter().position(|(asked, _)| *asked == number) else {
            return;
        };
        let (_, asked_us) = self.asked[at];
        self.asked.drain(..=at);
        let Some(unix_us) = unix_ms.and_then(|ms| ms.checked_mul(1_000)) else {
            return;
        };
        if now.saturating_sub(asked_us) <= CLOCK_DIFFERENCE_US_MAX {
            self.vouch.offset_us = unix_us.checked_signed_diff(now);
        }
    }

    pub fn vouch(&self) -> Vouch {
        self.vouch
    }
}

/// The coordinator's wall clock, as the difference from the server's clock that never goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vouch {
    pub offset_us: Option<i64>,
}

/// Why a server's wall clock is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The coordinator has not said its time to this process.
    NotCompared,
    /// It is ahead of the coordinator's by so much, or behind.
    Differs { ahead_us: i64 },
}

impl Vouch {
    /// The coordinator's time, as it must be by now: not later than it is.
    fn coordinator_us(self, now: Micros) -> Option<u64> {
        now.checked_add_signed(self.offset_us?)
    }

    /// The difference that is left while the wall clock is believed.
    pub fn judge(self, now: Micros, wall_us: u64) -> Result<i64, Doubt> {
        let coordinator_us = self.coordinator_us(now).ok_or(Doubt::NotCompared)?;
        let ahead_us = wall_us.checked_signed_diff(coordinator_us).unwrap_or(i64::MAX);
        if ahead_us.unsigned_abs() > CLOCK_DIFFERENCE_US_MAX {
            return Err(Doubt::Differs { ahead_us });
        }
        Ok(ahead_us)
    }

    /// The time by which batches are old. A batch may have been stamped early by the difference that goes unnoticed, and by
    /// the time for which an answer may be under way.
    pub(crate) fn time_for_ages(self, now: Micros, wall_us: u64) -> Option<u64> {
        if planted::on(Bug::ClockNotCompared) {
            return Some(wall_us);
        }
        self.judge(now, wall_us).ok()?;
        let earlier_us = wall_us.min(self.coordinator_us(now)?);
        Some(earlier_us.saturating_sub(2 * CLOCK_DIFFERENCE_US_MAX))
    }
}
