//! The second class of a group's requests: those beyond its reservation, on burst capacity that is granted for a while.
//!
//! Requests within the reservation never wait for burst requests. A grant ends by itself if it is not renewed. It ends
//! at once when an owner returns: the next request finds it gone.

use quorate_types::Micros;
use quorate_types::limits::BURST_DEPTH_MS;

use crate::buckets::{Buckets, Conformance};

const DEPTH_US: Micros = BURST_DEPTH_MS * 1_000;

/// The rate that a group may use above its reservation, and its end.
#[derive(Debug)]
pub struct GrantBuckets {
    buckets: Buckets,
    until: Micros,
}

impl GrantBuckets {
    pub fn new(tokens_per_s_milli: [u64; 3], until: Micros, now: Micros) -> Self {
        Self {
            buckets: Buckets::with_depth(tokens_per_s_milli, DEPTH_US, now),
            until,
        }
    }

    /// Changes the rate or the end. The use of the last moments still counts.
    pub fn renew(&mut self, tokens_per_s_milli: [u64; 3], until: Micros, now: Micros) {
        self.buckets.set_rates(tokens_per_s_milli, now);
        self.until = until;
    }

    pub fn end(&mut self) {
        self.until = 0;
    }

    pub fn until(&self) -> Micros {
        self.until
    }

    pub fn is_over(&self, now: Micros) -> bool {
        now >= self.until
    }

    pub fn take(&mut self, now: Micros, cost: [u64; 3]) -> bool {
        !self.is_over(now) && self.buckets.take(now, cost).is_ok()
    }

    /// The time until a request could pass; `Micros::MAX` if it cannot before the grant ends.
    pub fn wait_us(&self, now: Micros, cost: [u64; 3]) -> Micros {
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

    pub(crate) fn buckets(&self) -> &Buckets {
        &self.buckets
    }
}

/// The rate of its reservation that a group was assumed to use when the rest was granted to others.
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

    /// True once, at the first request beyond the assumed rate: the owner is back.
    pub fn returns_with(&mut self, now: Micros, cost: [u64; 3]) -> bool {
        !self.has_returned && {
            self.has_returned = self.buckets.observe(now, cost) == Conformance::BeyondSla;
            self.has_returned
        }
    }
}

/// Amounts that went through the queue since the group came, in thousandths of tokens; sums wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub offered: [u64; 3],
    pub reserved: [u64; 3],
    pub burst: [u64; 3],
    /// The part of `offered` that the reservation did not let pass at once, whether it passed later or not. A request
    /// that waits for another reason than the budget counts only if it exceeds the reservation.
    pub beyond: [u64; 3],
    /// The number of offers, and the number of those that had to wait or were throttled.
    pub offers: u64,
    pub held_back: u64,
    /// Costs of requests in the queue, times the microseconds that they were there.
    pub waited: [u64; 3],
}

impl Flow {
    /// The amounts since `before`.
    pub fn since(&self, before: &Flow) -> Flow {
        let less = |now: [u64; 3], then: [u64; 3]| std::array::from_fn(|i| now[i].wrapping_sub(then[i]));
        Flow {
            offered: less(self.offered, before.offered),
            reserved: less(self.reserved, before.reserved),
            burst: less(self.burst, before.burst),
            beyond: less(self.beyond, before.beyond),
            offers: self.offers.wrapping_sub(before.offers),
            held_back: self.held_back.wrapping_sub(before.held_back),
            waited: less(self.waited, before.waited),
        }
    }
}

pub(crate) fn add(sum: &mut [u64; 3], cost: [u64; 3]) {
    for i in 0..3 {
        sum[i] = sum[i].wrapping_add(cost[i]);
    }
}
