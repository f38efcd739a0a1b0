//! Pacing: token buckets of the rate that the group's head announces, pure. `sdk/contract/pacing.md`

use quorate_types::Micros;
use quorate_types::cost::Charges;

/// Share sent above the announced rate. A head announces a rate again only when it has changed by more than a
/// twentieth. So it may accept a twentieth more than a client knows. It grants burst capacity to groups that want more than they
/// have, and sees that only if clients send more.
const HEADROOM: f64 = 1.0 / 16.0;

/// Seconds. A shorter wait is the rounding error of sums.
const ROUNDING_S: f64 = 1e-7;

/// A bucket for each resource, as at the head. Each holds one second of its rate, and is full at the start.
#[derive(Debug)]
pub(super) struct Pacing {
    /// `None`: unknown, and no batch waits.
    charges: Option<Charges>,
    announced_per_s: u64,
    /// Thousandths of tokens.
    rates: [f64; 3],
    levels: [f64; 3],
    updated: Micros,
}

impl Pacing {
    pub fn new(charges: Option<Charges>) -> Self {
        Self {
            charges,
            announced_per_s: 0,
            rates: [0.0; 3],
            levels: [0.0; 3],
            updated: 0,
        }
    }

    /// Sets other charges, of a newer handle. The buckets are full after it.
    pub fn set_charges(&mut self, charges: Option<Charges>) {
        if charges != self.charges {
            *self = Self::new(charges);
        }
    }

    /// Thousandths of tokens of a batch, as many as its head takes.
    pub fn cost(&self, entry_count: u64, entry_bytes: u64) -> [u64; 3] {
        self.charges
            .map_or([0; 3], |charges| charges.batch_milli(entry_count, entry_bytes))
    }

    /// Sets the announced rate; 0: unknown, and no batch waits. Tokens are kept, up to the new rate's second.
    pub fn set_rate(&mut self, announced_per_s: u64, now: Micros) {
        let Some(charges) = self.charges else { return };
        if announced_per_s == self.announced_per_s {
            return;
        }
        self.refill(now);
        let share = announced_per_s as f64 * (1.0 + HEADROOM) / charges.rate_per_s.max(1) as f64;
        let is_first = self.announced_per_s == 0;
        self.rates = charges.tokens_per_s_milli.map(|milli| milli as f64 * share);
        for (level, rate) in self.levels.iter_mut().zip(self.rates) {
            *level = if is_first { rate } else { level.min(rate) };
        }
        self.announced_per_s = announced_per_s;
    }

    /// Takes the cost and answers 0, or answers the microseconds until it can be taken. A batch that costs more than a
    /// bucket holds passes when the bucket is full, and leaves it in debt, as at the head.
    pub fn take(&mut self, now: Micros, cost: [u64; 3]) -> Micros {
        if self.charges.is_none() || self.announced_per_s == 0 {
            return 0;
        }
        self.refill(now);
        let missing = |i: usize| (cost[i] as f64).min(self.rates[i]) - self.levels[i];
        let waits = (0..3)
            .filter(|i| self.rates[*i] > 0.0)
            .map(|i| missing(i) / self.rates[i]);
        let wait_s = waits.fold(0.0, f64::max);
        if wait_s > ROUNDING_S {
            return ((wait_s * 1e6).ceil() as Micros).max(1);
        }
        for (level, milli) in self.levels.iter_mut().zip(cost) {
            *level -= milli as f64;
        }
        0
    }

    /// A clock set back adds no tokens.
    fn refill(&mut self, now: Micros) {
        let elapsed_s = now.saturating_sub(self.updated) as f64 / 1e6;
        self.updated = self.updated.max(now);
        for (level, rate) in self.levels.iter_mut().zip(self.rates) {
            *level = (*level + elapsed_s * rate).min(rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vectors {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        charges: Option<Charges>,
        events: VecDeque<Event>,
    }

    #[derive(Deserialize)]
    struct Event {
        at_us: Micros,
        #[serde(flatten)]
        what: What,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum What {
        Announced {
            rate_per_s: u64,
        },
        Batch {
            entries: u64,
            entry_bytes: u64,
            sent_us: Micros,
        },
    }

    /// The Python and TypeScript clients pass the same vectors.
    #[test]
    fn batches_leave_at_the_times_of_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../contract/vectors/pacing.json");
        let vectors: Vectors = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(!vectors.cases.is_empty());
        for case in vectors.cases {
            replay(case);
        }
    }

    fn replay(case: Case) {
        let mut pacing = Pacing::new(case.charges);
        let (mut coming, mut waiting, mut now) = (case.events, VecDeque::new(), 0);
        while !coming.is_empty() || !waiting.is_empty() {
            let mut ready = Micros::MAX;
            if let Some(&(entries, entry_bytes, sent_us)) = waiting.front() {
                let wait_us = pacing.take(now, pacing.cost(entries, entry_bytes));
                if wait_us == 0 {
                    assert!(now.abs_diff(sent_us) <= 2, "{}: {now}, not {sent_us}", case.name);
                    waiting.pop_front();
                    continue;
                }
                ready = now + wait_us;
            }
            if coming.front().is_none_or(|event| ready <= event.at_us) {
                now = ready;
                continue;
            }
            let event = coming.pop_front().expect("looked at above");
            now = event.at_us;
            match event.what {
                What::Announced { rate_per_s } => pacing.set_rate(rate_per_s, now),
                What::Batch {
                    entries,
                    entry_bytes,
                    sent_us,
                } => waiting.push_back((entries, entry_bytes, sent_us)),
            }
        }
    }
}
