//! What a group will want in the next interval, from what it did in the last ones (after Pulsar §4.1).

use std::collections::VecDeque;

/// Intervals that an assumption rests on: a group that was idle for less is not idle.
pub const REMEMBERED: usize = 4;

/// One interval of a group at one of its servers, in requests/s of the declared size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Ordered: within the reservation or on lent capacity.
    pub accepted_per_s: u64,
    /// At the head only: what came, whatever became of it.
    pub offered_per_s: u64,
    /// Of that, at the head only: what the reservation did not let pass at once.
    pub beyond_per_s: u64,
    /// Most of it waited or was throttled.
    pub was_held_back: bool,
}

#[derive(Debug, Default)]
pub struct Demand {
    last: VecDeque<Measured>,
}

impl Demand {
    pub fn observe(&mut self, measured: Measured) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(measured);
    }

    /// Its owner is back: what was seen of it so far means nothing.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// What of its reservation it is assumed to use: with a quarter and a twentieth of the reservation to grow, and
    /// all of it until it has been watched for a while.
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

    /// What it wants above its reservation. Of a closed loop, which offers no more than it gets answered, only that it
    /// was held back can be seen: it is given room to double. Who makes up for a stall within what its reservation
    /// holds wants nothing more.
    pub fn extra_per_s(&self, reserved_per_s: u64) -> u64 {
        let wanted = |one: &Measured| {
            if one.beyond_per_s == 0 {
                0
            } else if one.was_held_back {
                let most = one.offered_per_s.max(one.accepted_per_s.saturating_mul(2));
                most.saturating_sub(reserved_per_s).max(reserved_per_s / 10 + 1)
            } else {
                // As much again above the reservation: a step beyond it is no flood.
                one.beyond_per_s.saturating_mul(2)
            }
        };
        // The two last: a moment's calm does not cost a group what it needs in the next one.
        self.last.iter().rev().take(2).map(wanted).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm(accepted_per_s: u64) -> Measured {
        Measured {
            accepted_per_s,
            offered_per_s: accepted_per_s,
            beyond_per_s: 0,
            was_held_back: false,
        }
    }

    fn beyond(beyond_per_s: u64) -> Measured {
        Measured {
            beyond_per_s,
            ..calm(1_000 + beyond_per_s)
        }
    }

    #[test]
    fn a_group_is_idle_once_it_was_watched_for_a_while() {
        let mut demand = Demand::default();
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
    fn who_is_held_back_wants_more_until_it_is_not() {
        let mut demand = Demand::default();
        demand.observe(calm(1_000));
        assert_eq!(demand.extra_per_s(1_000), 0);
        demand.observe(beyond(100));
        assert_eq!(
            demand.extra_per_s(1_000),
            200,
            "what it uses, and room to double that"
        );
        let held = Measured {
            accepted_per_s: 1_000,
            offered_per_s: 1_010,
            beyond_per_s: 600,
            was_held_back: true,
        };
        demand.observe(held);
        assert_eq!(demand.extra_per_s(1_000), 1_000);
        demand.observe(Measured {
            offered_per_s: 7_000,
            ..held
        });
        assert_eq!(demand.extra_per_s(1_000), 6_000);
        demand.observe(calm(100));
        demand.observe(calm(100));
        assert_eq!(demand.extra_per_s(1_000), 0);
    }

    #[test]
    fn who_makes_up_for_a_stall_within_its_reservation_wants_nothing_more() {
        let mut demand = Demand::default();
        demand.observe(calm(700));
        demand.observe(calm(1_400));
        assert_eq!(demand.extra_per_s(1_000), 0, "the bucket let all of it pass");
        // A disk that was behind held it back, and not its budget.
        demand.observe(Measured {
            was_held_back: true,
            ..calm(900)
        });
        assert_eq!(demand.extra_per_s(1_000), 0);
    }
}
