//! The shares of a group's sessions in its reservation.
//!
//! Each session that is active has an equal share of the rate, and may use a tenth of a second of the whole rate at once. A
//! request within its session's share passes before those that wait for their turn, and may leave the group's budget in
//! debt: by a tenth of a second at most, all sessions together. So a session that floods its group delays its own requests.

use std::collections::VecDeque;

use quorate_types::Micros;
use quorate_types::cost::Budget;
use quorate_types::ids::IdMap;
use quorate_types::limits::{SESSION_IDLE_MS, SESSION_SHARES_MAX, SHARE_DEPTH_MS};

use crate::buckets::Buckets;

const DEPTH_US: Micros = SHARE_DEPTH_MS * 1_000;
const IDLE_US: Micros = SESSION_IDLE_MS * 1_000;
/// Idle sessions are looked for this often.
const CHECK_US: Micros = IDLE_US / 10;

#[derive(Debug)]
pub(crate) struct Shares {
    rate_milli: [u64; 3],
    /// Requests of all sessions that pass before their turn take from it.
    together: Buckets,
    sessions: IdMap<u64, Session>,
    checked: Micros,
}

#[derive(Debug)]
struct Session {
    share: Buckets,
    used: Micros,
    /// Places of its requests in the queue, in order. The first `granted` have their share already.
    places: VecDeque<u64>,
    granted: usize,
}

impl Shares {
    pub fn new(budget: &Budget, now: Micros) -> Self {
        let rate_milli = budget.tokens_per_s_milli;
        Self {
            rate_milli,
            together: Buckets::with_depth(rate_milli, DEPTH_US, now),
            sessions: IdMap::default(),
            checked: now,
        }
    }

    pub fn set_budget(&mut self, budget: &Budget, now: Micros) {
        self.rate_milli = budget.tokens_per_s_milli;
        self.together.set_rates(self.rate_milli, now);
    }

    /// The session is active. Those beyond the bound have no share, and wait for their turn.
    pub fn note(&mut self, now: Micros, session: u64) {
        if now >= self.checked.saturating_add(CHECK_US) {
            self.checked = now;
            self.sessions
                .retain(|_, each| !each.places.is_empty() || each.used.saturating_add(IDLE_US) > now);
        }
        let count = self.sessions.len();
        if let Some(known) = self.sessions.get_mut(&session) {
            known.used = known.used.max(now);
        } else if count < SESSION_SHARES_MAX {
            let new = Session {
                share: Buckets::with_depth(self.rate_milli, DEPTH_US, now),
                used: now,
                places: VecDeque::new(),
                granted: 0,
            };
            self.sessions.insert(session, new);
        }
    }

    /// Takes a request of `cost` from the session's share, if it holds that. A session that is alone needs no share.
    pub fn take(&mut self, now: Micros, session: u64, cost: [u64; 3]) -> bool {
        if self.sessions.len() < 2 {
            return false;
        }
        let is_all_granted = |each: &Session| each.places.len() == each.granted;
        if !self.sessions.get(&session).is_some_and(is_all_granted) {
            return false;
        }
        self.take_share(now, session, cost)
    }

    fn take_share(&mut self, now: Micros, session: u64, cost: [u64; 3]) -> bool {
        if self.wait_us(now, session, cost) > 0 {
            return false;
        }
        let taken = self.together.take(now, cost);
        assert_eq!(taken, Ok(()), "its wait is over");
        self.charge(now, session, cost);
        true
    }

    /// Microseconds until the session's share holds `cost`. `Micros::MAX`: it never does.
    pub fn wait_us(&self, now: Micros, session: u64, cost: [u64; 3]) -> Micros {
        if self.sessions.len() < 2 || !self.together.can_hold(cost) {
            return Micros::MAX;
        }
        let Some(own) = self.sessions.get(&session) else {
            return Micros::MAX;
        };
        let (rate_milli, depth_us) = self.equal_part();
        let mut share = own.share.clone();
        share.set_rates_and_depth(rate_milli, depth_us, now);
        share
            .wait_us(now, cost, [0; 3])
            .max(self.together.wait_us(now, cost, [0; 3]))
    }

    /// A request passed in its turn. It counts, so that a session which floods the group has no share beside that.
    pub fn charge(&mut self, now: Micros, session: u64, cost: [u64; 3]) {
        let (rate_milli, depth_us) = self.equal_part();
        if let Some(own) = self.sessions.get_mut(&session) {
            own.share.set_rates_and_depth(rate_milli, depth_us, now);
            own.share.charge_to_depth(now, cost);
        }
    }

    /// An equal part of the rate for each session, and the time in which it fills a bucket.
    fn equal_part(&self) -> ([u64; 3], Micros) {
        let count = self.sessions.len().max(1) as u64;
        (self.rate_milli.map(|rate| rate / count), DEPTH_US * count)
    }

    /// A request waits. `is_granted`: it has its share, and waits for something else.
    pub fn wait(&mut self, session: u64, place: u64, is_granted: bool) {
        if let Some(own) = self.sessions.get_mut(&session) {
            assert!(
                !is_granted || own.places.len() == own.granted,
                "a session's order"
            );
            own.places.push_back(place);
            own.granted += usize::from(is_granted);
        }
    }

    /// A request that waited has left the queue, from any place.
    pub fn leave(&mut self, session: u64, place: u64) {
        if let Some(own) = self.sessions.get_mut(&session)
            && let Ok(at) = own.places.binary_search(&place)
        {
            own.places.remove(at);
            own.granted -= usize::from(at < own.granted);
        }
    }

    pub fn clear(&mut self) {
        for own in self.sessions.values_mut() {
            own.places.clear();
            own.granted = 0;
        }
    }

    /// The first of those that wait and may pass before their turn now; its share is taken.
    pub fn next(&mut self, now: Micros, cost: impl Fn(u64) -> [u64; 3]) -> Option<u64> {
        let granted = self.sessions.values().filter(|own| own.granted > 0);
        if let Some(place) = granted.filter_map(|own| own.places.front()).min() {
            return Some(*place);
        }
        if self.sessions.len() < 2 {
            return None;
        }
        let fronts = self.sessions.iter();
        let may_pass = fronts.filter_map(|(session, own)| {
            let place = *own.places.front()?;
            (self.wait_us(now, *session, cost(place)) == 0).then_some((place, *session))
        });
        let (place, session) = may_pass.min()?;
        let taken = self.take_share(now, session, cost(place));
        assert!(taken, "its share holds it");
        Some(place)
    }

    /// The time at which [`Shares::next`] has something to name; `Micros::MAX` if never.
    pub fn next_wake(&self, now: Micros, cost: impl Fn(u64) -> [u64; 3]) -> Micros {
        let each = self.sessions.iter().filter_map(|(session, own)| {
            let place = *own.places.front()?;
            let wait_us = match own.granted {
                0 => self.wait_us(now, *session, cost(place)),
                _ => 0,
            };
            Some(now.saturating_add(wait_us))
        });
        each.min().unwrap_or(Micros::MAX)
    }
}
