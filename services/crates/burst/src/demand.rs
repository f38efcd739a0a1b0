//! The demand of a group in the next interval, estimated from the last ones (after Pulsar §4.1).

use std::collections::VecDeque;

/// Intervals that an assumption rests on: a group that was idle for fewer is not idle.
pub const REMEMBERED: usize = 4;

/// A group that is not held back gets this part more than it has used beyond its reservation.
const HEADROOM: u64 = 16;

/// Rates of a group in one interval at one of its servers, in requests/s of the declared size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuredRates {
    /// Ordered: within the reservation or on burst capacity.
    pub accepted_per_s: u64,
    /// At the head only: every request that came, admitted or not.
    pub offered_per_s: u64,
    /// At the head only: the part of `offered_per_s` that the reservation did not let pass at once.
    pub beyond_per_s: u64,
    /// At the head only: requests that would have passed beside those accepted, had none waited in the queue: the larger of
    /// those left in it, and of those that a closed loop would have sent (Pulsar §4.2, Equation 6).
    pub waiting_per_s: u64,
    /// Most requests waited or were throttled.
    pub was_held_back: bool,
    /// The most that it may have above its reservation; `None`: as much as it gets.
    pub extra_max_per_s: Option<u64>,
}

impl MeasuredRates {
    /// The part that a share of so many requests/s, beside the reservation, does not account for.
    #[must_use]
    pub fn beside_share(self, share_per_s: u64) -> Self {
        Self {
            accepted_per_s: self.accepted_per_s.saturating_sub(share_per_s),
            offered_per_s: self.offered_per_s.saturating_sub(share_per_s),
            ..self
        }
    }

    /// Of a group that may use its reservation alone: it wants nothing beyond.
    #[must_use]
    pub fn within_reservation(self) -> Self {
        Self {
            offered_per_s: self.accepted_per_s,
            beyond_per_s: 0,
            waiting_per_s: 0,
            was_held_back: false,
            ..self
        }
    }
}

#[derive(Debug, Default)]
pub struct DemandHistory {
    last: VecDeque<MeasuredRates>,
}

impl DemandHistory {
    pub fn observe(&mut self, measured: MeasuredRates) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(measured);
    }

    /// The owner is back: earlier measurements say nothing any more.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// The part of its reservation that the group is assumed to use: its highest rate, a quarter more, and a twentieth of
    /// the reservation. It is the whole reservation until [`REMEMBERED`] intervals were measured.
    pub fn assumed_per_s(&self, reserved_per_s: u64) -> u64 {
        if self.last.len() < REMEMBERED {
            return reserved_per_s;
        }
        let most = self.last.iter().map(|one| one.accepted_per_s).max().unwrap_or(0);
        let grown = most
            .saturating_add(most / 4)
            .saturating_add(reserved_per_s / 20 + 1);
        grown.min(reserved_per_s)
    }

    /// The rate that the group wants above its reservation: what it uses and what waits (Pulsar §4.2). One that is held
    /// back wants no more than twice what it uses, since an open loop's queue says little about its rate. A group that makes
    /// up for a stall within its reservation wants nothing more.
    pub fn extra_per_s(&self, reserved_per_s: u64) -> u64 {
        let wanted = |one: &MeasuredRates| {
            let wanted = if one.beyond_per_s == 0 {
                0
            } else if one.was_held_back {
                let more = one.waiting_per_s.min(one.accepted_per_s);
                let most = one.offered_per_s.max(one.accepted_per_s.saturating_add(more));
                most.saturating_sub(reserved_per_s).max(reserved_per_s / 10 + 1)
            } else {
                // A little more, so that a rate that grows slowly is not held back again and again.
                let beyond = one.beyond_per_s;
                beyond.saturating_add(beyond / HEADROOM + 1)
            };
            wanted.min(one.extra_max_per_s.unwrap_or(u64::MAX))
        };
        // Two intervals count, so that one calm interval does not end a group's demand.
        self.last.iter().rev().take(2).map(wanted).max().unwrap_or(0)
    }

    /// The rate that the group wants in all, where `in_force_per_s` passes at once: what it uses, or more if that holds it
    /// back.
    pub fn wanted_per_s(&self, in_force_per_s: u64) -> u64 {
        let used = self.last.iter().rev().take(2).map(|one| one.accepted_per_s);
        match self.extra_per_s(in_force_per_s) {
            0 => used.max().unwrap_or(0).min(in_force_per_s),
            more => in_force_per_s.saturating_add(more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm(accepted_per_s: u64) -> MeasuredRates {
        MeasuredRates {
            accepted_per_s,
            offered_per_s: accepted_per_s,
            beyond_per_s: 0,
            waiting_per_s: 0,
            was_held_back: false,
            extra_max_per_s: None,
        }
    }

    fn beyond(beyond_per_s: u64) -> MeasuredRates {
        MeasuredRates {
            beyond_per_s,
            ..calm(1_000 + beyond_per_s)
        }
    }

    #[test]
    fn a_group_is_idle_after_enough_idle_intervals() {
        let mut demand = DemandHistory::default();
        for _ in 1..REMEMBERED {
            demand.observe(calm(0));
            assert_eq!(demand.assumed_per_s(1_000), 1_000);
        }
        demand.observe(calm(0));
        assert_eq!(demand.assumed_per_s(1_000), 51);
        demand.observe(calm(400));
        assert_eq!(demand.assumed_per_s(1_000), 551);
        demand.observe(calm(5_000));
        assert_eq!(demand.assumed_per_s(1_000), 1_000, "never more than was reserved");
        demand.forget();
        assert_eq!(demand.assumed_per_s(1_000), 1_000);
    }

    #[test]
    fn a_group_that_is_held_back_wants_more_until_it_is_not() {
        let mut demand = DemandHistory::default();
        demand.observe(calm(1_000));
        assert_eq!(demand.extra_per_s(1_000), 0);
        demand.observe(beyond(100));
        assert_eq!(demand.extra_per_s(1_000), 107, "its excess, and a little more");
        let held = MeasuredRates {
            accepted_per_s: 1_000,
            offered_per_s: 1_010,
            beyond_per_s: 600,
            waiting_per_s: 700,
            was_held_back: true,
            extra_max_per_s: None,
        };
        demand.observe(held);
        assert_eq!(demand.extra_per_s(1_000), 700, "what waits");
        demand.observe(MeasuredRates {
            waiting_per_s: 90_000,
            ..held
        });
        assert_eq!(demand.extra_per_s(1_000), 1_000, "no more than twice its use");
        demand.observe(MeasuredRates {
            offered_per_s: 7_000,
            ..held
        });
        assert_eq!(demand.extra_per_s(1_000), 6_000);
        demand.observe(calm(100));
        demand.observe(calm(100));
        assert_eq!(demand.extra_per_s(1_000), 0);
    }

    #[test]
    fn a_group_wants_what_it_uses_or_more_if_that_holds_it_back() {
        let mut demand = DemandHistory::default();
        demand.observe(calm(300));
        assert_eq!(demand.wanted_per_s(1_000), 300);
        demand.observe(beyond(100));
        assert_eq!(demand.wanted_per_s(1_000), 1_107);
        let capped = MeasuredRates {
            extra_max_per_s: Some(50),
            ..beyond(100)
        };
        let mut demand = DemandHistory::default();
        demand.observe(capped);
        assert_eq!(demand.extra_per_s(1_000), 50, "it may have no more");
        assert_eq!(beyond(100).beside_share(300).accepted_per_s, 800);
        assert_eq!(calm(100).beside_share(300).offered_per_s, 0);
    }

    #[test]
    fn a_group_that_makes_up_for_a_stall_within_its_reservation_wants_nothing_more() {
        let mut demand = DemandHistory::default();
        demand.observe(calm(700));
        demand.observe(calm(1_400));
        assert_eq!(demand.extra_per_s(1_000), 0, "the bucket let all of it pass");
        // A slow disk held it back, and not its budget.
        demand.observe(MeasuredRates {
            was_held_back: true,
            ..calm(900)
        });
        assert_eq!(demand.extra_per_s(1_000), 0);
    }
}
