//! The second class of a group's requests: those beyond its reservation, on capacity that is lent for a while.
//!
//! What is within the reservation never waits for it. What is lent ends by itself when nobody renews it, and is taken
//! back at once when an owner returns: the next request finds it gone.

use quorate_types::Micros;
use quorate_types::limits::LENT_DEPTH_MS;

use crate::buckets::{Buckets, Conformance};

const DEPTH_US: Micros = LENT_DEPTH_MS * 1_000;

/// What a group may use above its reservation, until when.
#[derive(Debug)]
pub struct Lent {
    buckets: Buckets,
    until: Micros,
}

impl Lent {
    pub fn new(tokens_per_s_milli: [u64; 3], until: Micros, now: Micros) -> Self {
        Self {
            buckets: Buckets::with_depth(tokens_per_s_milli, DEPTH_US, now),
            until,
        }
    }

    /// Another amount, or the same for longer: what was used of the last moments stays used.
    pub fn renew(&mut self, tokens_per_s_milli: [u64; 3], until: Micros, now: Micros) {
        self.buckets.set_rates(tokens_per_s_milli, now);
        self.until = until;
    }

    pub fn end(&mut self) {
        self.until = 0;
    }

    pub fn is_over(&self, now: Micros) -> bool {
        now >= self.until
    }

    pub fn take(&mut self, now: Micros, cost: [u64; 3]) -> bool {
        !self.is_over(now) && self.buckets.take(now, cost).is_ok()
    }

    /// When a request could pass; not before it ends, if it cannot.
    pub fn wait_us(&mut self, now: Micros, cost: [u64; 3]) -> Micros {
        if self.is_over(now) {
            return Micros::MAX;
        }
        let wait_us = self.buckets.wait_us(now, cost, [0; 3]);
        if now.saturating_add(wait_us) < self.until {
            wait_us
        } else {
            Micros::MAX
        }
    }

    pub(crate) fn buckets(&mut self) -> &mut Buckets {
        &mut self.buckets
    }
}

/// What a group was assumed to use of its reservation when the rest of it was lent to others.
#[derive(Debug)]
pub struct Assumed {
    buckets: Buckets,
    has_returned: bool,
}

impl Assumed {
    pub fn new(tokens_per_s_milli: [u64; 3], now: Micros) -> Self {
        Self {
            buckets: Buckets::with_depth(tokens_per_s_milli, DEPTH_US, now),
            has_returned: false,
        }
    }

    pub fn renew(&mut self, tokens_per_s_milli: [u64; 3], now: Micros) {
        self.buckets.set_rates(tokens_per_s_milli, now);
        self.has_returned = false;
    }

    /// True once, at the first request beyond what was assumed: the owner is back.
    pub fn returns_with(&mut self, now: Micros, cost: [u64; 3]) -> bool {
        !self.has_returned && {
            self.has_returned = self.buckets.observe(now, cost) == Conformance::BeyondSla;
            self.has_returned
        }
    }
}

/// What went through the queue since the group came, in thousandths of tokens; sums wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub offered: [u64; 3],
    pub reserved: [u64; 3],
    pub lent: [u64; 3],
    /// Of what was offered: what the reservation did not let pass at once, whatever became of it. What waits for another
    /// reason than the budget counts only when it is more than the reservation holds.
    pub beyond: [u64; 3],
    /// How often something was offered, and how often it had to wait or was throttled.
    pub offers: u64,
    pub held_back: u64,
}

impl Flow {
    /// What came since `before`.
    pub fn since(&self, before: &Flow) -> Flow {
        let less = |now: [u64; 3], then: [u64; 3]| std::array::from_fn(|i| now[i].wrapping_sub(then[i]));
        Flow {
            offered: less(self.offered, before.offered),
            reserved: less(self.reserved, before.reserved),
            lent: less(self.lent, before.lent),
            beyond: less(self.beyond, before.beyond),
            offers: self.offers.wrapping_sub(before.offers),
            held_back: self.held_back.wrapping_sub(before.held_back),
        }
    }
}

pub(crate) fn add(sum: &mut [u64; 3], cost: [u64; 3]) {
    for i in 0..3 {
        sum[i] = sum[i].wrapping_add(cost[i]);
    }
}
