//! The reservation for reads as a server of its own: it decides which pages are owed to readers, and since when.
//!
//! It lets the pages of a group pass in the order in which they are ready, as its buckets allow, and is never held up. A page
//! that leaves before it would have passed there leaves on what is spare, and costs the reservation nothing. All other pages
//! are owed: they are late by the time between the two. So a reader that asks for more than was reserved is judged for its
//! reservation alone, however much it got beside that.

use std::collections::BTreeMap;

use quorate_types::Micros;
use quorate_types::cost::ReadBudget;

use crate::buckets::Buckets;

/// Pages that wait at once in one group. Further ones are not judged.
const PAGES_MAX: usize = 16_384;

/// A page that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTicket(u64);

#[derive(Debug, Clone, Copy)]
struct WaitingPage {
    ready_us: Micros,
    cost: [u64; 3],
    /// The time at which the reservation let it pass.
    start_us: Option<Micros>,
}

#[derive(Debug, Clone)]
pub struct ReadReservation {
    buckets: Buckets,
    /// In the order in which they were ready.
    waiting: BTreeMap<u64, WaitingPage>,
    next: u64,
    /// Pages from here on have not passed.
    first_unpassed: u64,
}

impl ReadReservation {
    /// Full buckets that hold one second of the reservation.
    pub fn new(reads: &ReadBudget, now: Micros) -> Self {
        Self {
            buckets: Buckets::with_depth(reads.reserved_milli, 1_000_000, now),
            waiting: BTreeMap::new(),
            next: 0,
            first_unpassed: 0,
        }
    }

    /// Another reservation counts from now on.
    pub fn set_budget(&mut self, reads: &ReadBudget, now: Micros) {
        self.advance(now);
        self.buckets.set_rates(reads.reserved_milli, now);
    }

    /// A page can leave; it costs so much (thousandths of tokens). `None`: it will not be judged.
    pub fn ready(&mut self, now: Micros, cost: [u64; 3]) -> Option<PageTicket> {
        if self.waiting.len() >= PAGES_MAX {
            return None;
        }
        let page = WaitingPage {
            ready_us: now,
            cost,
            start_us: None,
        };
        self.waiting.insert(self.next, page);
        self.next += 1;
        Some(PageTicket(self.next - 1))
    }

    /// The page leaves. Microseconds since the reservation let it pass; `None`: it has not, so the page was not owed.
    pub fn leaves(&mut self, now: Micros, page: PageTicket) -> Option<Micros> {
        self.advance(now);
        let start_us = self.waiting.remove(&page.0)?.start_us?;
        Some(now.saturating_sub(start_us))
    }

    /// The page's reader is gone.
    pub fn forget(&mut self, page: PageTicket) {
        self.waiting.remove(&page.0);
    }

    /// Lets pages pass up to now.
    fn advance(&mut self, now: Micros) {
        for (number, page) in self.waiting.range_mut(self.first_unpassed..) {
            let start_us = self.buckets.start(page.ready_us, page.cost);
            if start_us > now {
                return;
            }
            let passes = self.buckets.take(start_us, page.cost);
            assert_eq!(passes, Ok(()), "it passes when its wait is over");
            page.start_us = Some(start_us);
            self.first_unpassed = number + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{EntryCost, ShortBatch};

    use super::*;

    const S: Micros = 1_000_000;
    const ONE: [u64; 3] = [1_000, 0, 0];

    /// So many pages of [`ONE`] pass each second.
    fn reserved(pages_per_s: u64) -> ReadBudget {
        ReadBudget {
            rate_per_s: pages_per_s,
            reserved_milli: ONE.map(|milli| milli * pages_per_s),
            cost: EntryCost {
                fixed_milli: ONE,
                per_byte_milli: [0; 3],
            },
            short_page: ShortBatch::default(),
            from_disk: EntryCost {
                fixed_milli: [0; 3],
                per_byte_milli: [0; 3],
            },
        }
    }

    #[test]
    fn pages_within_the_reservation_are_owed_from_when_they_are_ready() {
        let mut reads = ReadReservation::new(&reserved(10), 0);
        for n in 0..30 {
            let now = n * S / 10;
            let page = reads.ready(now, ONE).expect("few wait");
            assert_eq!(reads.leaves(now + 700, page), Some(700));
        }
    }

    #[test]
    fn a_page_on_spare_capacity_is_not_owed_and_takes_nothing_from_the_reservation() {
        let mut reads = ReadReservation::new(&reserved(10), 0);
        let mut owed = 0;
        // A hundred times the reservation, all of it served at once, for ten seconds.
        for n in 0..10_000 {
            let page = reads.ready(n * 1_000, ONE).expect("few wait");
            owed += u32::from(reads.leaves(n * 1_000, page).is_some());
        }
        assert_eq!(owed, 10 + 99, "a second of it, and what ten seconds bring");
        // Now the server is slow: the reservation is there at once, as nothing was borrowed from it.
        let page = reads.ready(10 * S, ONE).expect("few wait");
        assert_eq!(reads.leaves(10 * S + 80_000, page), Some(80_000));
    }

    #[test]
    fn pages_beyond_the_reservation_are_owed_in_their_turn() {
        let mut reads = ReadReservation::new(&reserved(10), 0);
        let pages: Vec<PageTicket> = (0..12).map(|_| reads.ready(0, ONE).expect("few wait")).collect();
        let late: Vec<_> = pages.into_iter().map(|page| reads.leaves(S / 5, page)).collect();
        assert_eq!(late[..10], [Some(S / 5); 10], "a second of it");
        assert_eq!(late[10..], [Some(S / 10), Some(0)], "one each tenth of a second");
    }

    #[test]
    fn pages_whose_readers_are_gone_hold_up_nobody() {
        let mut reads = ReadReservation::new(&reserved(10), 0);
        let pages: Vec<PageTicket> = (0..100).map(|_| reads.ready(0, ONE).expect("few wait")).collect();
        for page in &pages[..99] {
            reads.forget(*page);
        }
        assert_eq!(reads.leaves(40, pages[99]), Some(40));
        assert_eq!(reads.leaves(40, pages[0]), None, "it is judged once");
    }

    #[test]
    fn nothing_is_owed_without_a_reservation_and_too_many_are_not_judged() {
        let mut reads = ReadReservation::new(&reserved(0), 0);
        let page = reads.ready(0, ONE).expect("few wait");
        assert_eq!(reads.leaves(100 * S, page), None);
        for _ in 0..PAGES_MAX {
            assert!(reads.ready(0, ONE).is_some());
        }
        assert_eq!(reads.ready(0, ONE), None);
        reads.set_budget(&reserved(5), 100 * S);
        let first = PageTicket(1);
        assert_eq!(
            reads.leaves(101 * S, first),
            Some(800_000),
            "from the new reservation on"
        );
    }
}
