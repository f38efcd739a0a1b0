//! Refusals, bounded by address: a caller that guesses, or is misconfigured and tries for ever, costs a hash and a
//! closed connection each time. Answers and log lines are for the first failures alone.

use std::collections::HashMap;
use std::net::IpAddr;

/// Failures of an address that are answered at once.
const BURST: u32 = 20;
/// The interval after which one more is.
const REFILL_MS: u64 = 1_000;
/// Addresses that are remembered. Beyond that, quiet ones are forgotten first.
const ADDRESSES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub struct Refusals {
    failures: HashMap<IpAddr, Failures>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    left: u32,
    refilled_at_ms: u64,
}

impl Refusals {
    /// Notes a failure, and says whether it may be answered. `now_ms` is of a clock that never goes back.
    pub fn may_answer(&mut self, from: IpAddr, now_ms: u64) -> bool {
        if self.failures.len() >= ADDRESSES_MAX && !self.failures.contains_key(&from) {
            self.failures.retain(|_, known| {
                now_ms.saturating_sub(known.refilled_at_ms) < REFILL_MS * u64::from(BURST)
            });
            if self.failures.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let known = self.failures.entry(from).or_insert(Failures {
            left: BURST,
            refilled_at_ms: now_ms,
        });
        let refill = now_ms.saturating_sub(known.refilled_at_ms) / REFILL_MS;
        if refill > 0 {
            known.left = u32::try_from(u64::from(known.left) + refill)
                .unwrap_or(BURST)
                .min(BURST);
            known.refilled_at_ms += refill * REFILL_MS;
        }
        let answers = known.left > 0;
        known.left = known.left.saturating_sub(1);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_uses_up_its_answers_and_others_keep_theirs() {
        let mut refusals = Refusals::default();
        let (noisy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let answered = (0..1_000).filter(|_| refusals.may_answer(noisy, 5)).count();
        assert_eq!(answered, BURST as usize);
        assert!(refusals.may_answer(other, 5));
        assert!(!refusals.may_answer(noisy, REFILL_MS) && refusals.may_answer(noisy, REFILL_MS + 5));
    }

    #[test]
    fn remembered_addresses_are_bounded() {
        let mut refusals = Refusals::default();
        for n in 0..10_000u32 {
            refusals.may_answer(IpAddr::from(n.to_be_bytes()), 0);
        }
        assert_eq!(refusals.failures.len(), ADDRESSES_MAX);
        assert!(refusals.may_answer(IpAddr::from([200, 0, 0, 1]), REFILL_MS * u64::from(BURST)));
    }
}
