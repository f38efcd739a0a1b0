//! Pacing: a token bucket of the rate that the group's head announces, pure. `sdk/contract/pacing.md`

use quorate_types::Micros;

/// Share sent above the announced rate. A head announces a rate again only when it has changed by more than a
/// twentieth. So it may accept a twentieth more than a client knows. It grants burst capacity to groups that want more than they
/// have, and sees that only if clients send more.
const HEADROOM: f64 = 1.0 / 16.0;

/// Tokens. A smaller lack is the rounding error of sums.
const ROUNDING: f64 = 1e-6;

/// A token is a request of the declared size. The bucket holds one second of its rate, and is full at the start.
#[derive(Debug)]
pub(super) struct Pacing {
    /// The declared size; 0: unknown, and no batch waits.
    pub request_size_bytes: u32,
    announced_per_s: u64,
    rate: f64,
    level: f64,
    updated: Micros,
}

impl Pacing {
    pub fn new(request_size_bytes: u32) -> Self {
        Self {
            request_size_bytes,
            announced_per_s: 0,
            rate: 0.0,
            level: 0.0,
            updated: 0,
        }
    }

    /// Tokens of a batch, never more than its head takes. The head charges a part for each entry and a part for each
    /// byte, and both for each token.
    pub fn cost(&self, entry_count: u64, entry_bytes: u64) -> f64 {
        if self.request_size_bytes == 0 {
            return 0.0;
        }
        (entry_bytes as f64 / f64::from(self.request_size_bytes)).min(entry_count as f64)
    }

    /// Sets the announced rate; 0: unknown, and no batch waits. Tokens are kept, up to the new rate's second.
    pub fn set_rate(&mut self, announced_per_s: u64, now: Micros) {
        if announced_per_s == self.announced_per_s {
            return;
        }
        self.refill(now);
        let rate = announced_per_s as f64 * (1.0 + HEADROOM);
        self.level = if self.rate > 0.0 {
            self.level.min(rate)
        } else {
            rate
        };
        (self.announced_per_s, self.rate) = (announced_per_s, rate);
    }

    /// Takes the cost and answers 0, or answers the microseconds until it can be taken. A batch that costs more than the
    /// bucket holds passes when the bucket is full, and leaves it in debt, as at the head.
    pub fn take(&mut self, now: Micros, cost: f64) -> Micros {
        if self.rate <= 0.0 || self.request_size_bytes == 0 {
            return 0;
        }
        self.refill(now);
        let missing = cost.min(self.rate) - self.level;
        if missing > ROUNDING {
            return ((missing / self.rate * 1e6).ceil() as Micros).max(1);
        }
        self.level -= cost;
        0
    }

    /// A clock set back adds no tokens.
    fn refill(&mut self, now: Micros) {
        let elapsed_s = now.saturating_sub(self.updated) as f64 / 1e6;
        self.updated = self.updated.max(now);
        self.level = (self.level + elapsed_s * self.rate).min(self.rate);
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
        request_size_bytes: u32,
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
        let mut pacing = Pacing::new(case.request_size_bytes);
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
