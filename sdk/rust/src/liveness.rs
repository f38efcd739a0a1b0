//! Liveness of the other side of a connection: pure.

use quorate_types::Micros;

use crate::limits::{
    HANDSHAKE_TIMEOUT_US, IDLE_PING_US, LIVENESS_TICK_US, PING_AFTER_TICKS, SILENT_TICKS_MAX,
};

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    Ping,
    /// The connection counts as broken, for this reason.
    Dead(&'static str),
}

pub struct Liveness {
    heard_at: Micros,
    /// Ticks since the last bytes, while an answer is awaited.
    silent_ticks: u32,
    has_pinged: bool,
    tick_at: Micros,
}

impl Liveness {
    pub fn new(now: Micros) -> Self {
        Self {
            heard_at: now,
            silent_ticks: 0,
            has_pinged: false,
            tick_at: now + LIVENESS_TICK_US,
        }
    }

    /// Bytes came.
    pub fn heard(&mut self, now: Micros) {
        self.heard_at = now;
        self.silent_ticks = 0;
        self.has_pinged = false;
    }

    /// Time of the next [`Liveness::check`].
    pub fn tick_at(&self) -> Micros {
        self.tick_at
    }

    pub fn check(&mut self, now: Micros, is_attached: bool, awaits_answer: bool) -> Verdict {
        if now < self.tick_at {
            return Verdict::Fine;
        }
        self.tick_at = now + LIVENESS_TICK_US;
        let silence_us = now.saturating_sub(self.heard_at);
        if !is_attached {
            let is_late = silence_us > HANDSHAKE_TIMEOUT_US;
            return if is_late {
                Verdict::Dead("the handshake took too long")
            } else {
                Verdict::Fine
            };
        }
        if !awaits_answer && !self.has_pinged {
            self.silent_ticks = 0;
            return if silence_us > IDLE_PING_US {
                self.ping()
            } else {
                Verdict::Fine
            };
        }
        self.silent_ticks += 1;
        if self.silent_ticks > SILENT_TICKS_MAX {
            Verdict::Dead("nothing came back for most of a second")
        } else if self.silent_ticks > PING_AFTER_TICKS && !self.has_pinged {
            self.ping()
        } else {
            Verdict::Fine
        }
    }

    fn ping(&mut self) -> Verdict {
        self.has_pinged = true;
        Verdict::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts other than fine, at the ticks up to `end`, in silence after `Liveness::new(0)`.
    fn verdicts(is_attached: bool, awaits_answer: bool, end: Micros) -> Vec<(Micros, Verdict)> {
        let mut liveness = Liveness::new(0);
        let mut found = Vec::new();
        while liveness.tick_at() <= end {
            let now = liveness.tick_at();
            match liveness.check(now, is_attached, awaits_answer) {
                Verdict::Fine => {}
                verdict => found.push((now, verdict)),
            }
        }
        found
    }

    #[test]
    fn silence_while_an_answer_is_awaited_leads_to_a_ping_and_then_to_the_end() {
        let found = verdicts(true, true, 900_000);
        assert!(
            matches!(found[..], [(400_000, Verdict::Ping), (900_000, Verdict::Dead(_))]),
            "{found:?}"
        );
    }

    #[test]
    fn a_pause_of_the_own_process_is_no_silence() {
        let mut liveness = Liveness::new(0);
        assert_eq!(liveness.check(200_000, true, true), Verdict::Fine);
        assert_eq!(liveness.check(9_000_000, true, true), Verdict::Fine);
    }

    #[test]
    fn an_idle_connection_is_pinged_now_and_then() {
        let found = verdicts(true, false, 15_200_000);
        assert!(matches!(found[..], [(15_100_000, Verdict::Ping)]), "{found:?}");
    }

    #[test]
    fn a_handshake_has_a_bound_in_time() {
        let found = verdicts(false, false, 2_100_000);
        assert!(matches!(found[..], [(2_100_000, Verdict::Dead(_))]), "{found:?}");
    }
}
