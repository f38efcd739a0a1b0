//! Tokens of a purse that a group may be using, as the coordinator knows it. Messages to a head may be under way or lost, so
//! the largest amount counts that it was told since its last report.

use std::collections::VecDeque;

/// Amounts told and not confirmed. Beyond, the two oldest count as one.
const TOLD_MAX: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purse {
    /// In use by the head's last report; `None`: it has not reported.
    reported: Option<u64>,
    /// Decisions that may have reached the head after that report, with their amounts.
    told: VecDeque<(u64, u64)>,
}

impl Purse {
    /// The most that the head may be using, once it has reported.
    pub fn possible(&self) -> Option<u64> {
        let told = self.told.iter().map(|(_, amount)| *amount);
        Some(told.fold(self.reported?, u64::max))
    }

    /// No decision is under way.
    pub fn is_confirmed(&self) -> bool {
        self.told.is_empty()
    }

    /// The amount that the head uses once it has all messages.
    pub fn latest(&self) -> Option<u64> {
        self.told.back().map(|(_, amount)| *amount).or(self.reported)
    }

    /// The head is told an amount. Decisions rise.
    pub fn tell(&mut self, decision: u64, amount: u64) {
        self.told.push_back((decision, amount));
        if self.told.len() > TOLD_MAX {
            let (_, oldest) = self.told.pop_front().expect("there are several");
            let next = self.told.front_mut().expect("there are several");
            next.1 = next.1.max(oldest);
        }
    }

    /// The head's report: it has carried out all decisions up to this one, and uses the amount.
    pub fn hear(&mut self, decision: u64, amount: u64) {
        self.told.retain(|(told, _)| *told > decision);
        self.reported = Some(amount);
    }

    /// Messages under way on the former connection reach nobody.
    pub fn begin_stream(&mut self) {
        self.told.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn less_is_less_only_once_the_head_says_so() {
        let mut purse = Purse::default();
        assert_eq!(
            (purse.possible(), purse.latest()),
            (None, None),
            "it has not reported"
        );
        purse.hear(0, 0);
        purse.tell(1, 100);
        assert_eq!(purse.possible(), Some(100), "it may have come already");
        purse.tell(2, 10);
        assert_eq!((purse.possible(), purse.latest()), (Some(100), Some(10)));
        purse.hear(1, 100);
        assert_eq!(purse.possible(), Some(100));
        purse.hear(2, 10);
        assert_eq!(purse.possible(), Some(10));
        purse.tell(3, 90);
        purse.begin_stream();
        assert_eq!(
            (purse.possible(), purse.latest()),
            (Some(10), Some(10)),
            "the message is lost"
        );
    }

    proptest! {
        #[test]
        fn a_head_never_uses_more_than_is_thought_possible(
            steps in prop::collection::vec((0u8..5, 0u64..100), 1..200),
        ) {
            let mut purse = Purse::default();
            purse.hear(0, 0);
            let (mut next, mut in_use, mut applied) = (1, 0, 0);
            let mut under_way: VecDeque<(u64, u64)> = VecDeque::new();
            let mut reports: VecDeque<(u64, u64)> = VecDeque::new();
            for (step, amount) in steps {
                match step {
                    0 | 1 => {
                        purse.tell(next, amount);
                        under_way.push_back((next, amount));
                        next += 1;
                    }
                    2 => if let Some((decision, amount)) = under_way.pop_front() {
                        (applied, in_use) = (decision, amount);
                    },
                    3 => reports.push_back((applied, in_use)),
                    _ => if let Some((decision, amount)) = reports.pop_front() {
                        purse.hear(decision, amount);
                    },
                }
                prop_assert!(in_use <= purse.possible().expect("it reported"));
            }
        }
    }
}
