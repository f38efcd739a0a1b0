//! The next address to connect to: pure. All endpoints of the handle, head first; redirects at once. Between sweeps over
//! the endpoints comes a new handle, and a wait that grows exponentially with full jitter.

use std::collections::VecDeque;

use quorate_types::Micros;

use crate::limits::{BACKOFF_BASE_US, BACKOFF_MAX_US, REDIRECTS_AT_ONCE_MAX, REFRESH_INTERVAL_US_MIN};

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Dial {
        address: String,
        delay_us: Micros,
    },
    /// Ask for a new handle, then ask the route again.
    Refresh {
        delay_us: Micros,
    },
}

pub struct Route {
    addresses: Vec<String>,
    /// Addresses left to try in this sweep.
    sweep: VecDeque<String>,
    can_refresh: bool,
    redirect: Option<String>,
    redirects: u32,
    attempt: u32,
    delay_us: Micros,
    delay_us_min: Micros,
    wants_refresh: bool,
    has_progressed: bool,
    refreshed_at: Option<Micros>,
}

impl Route {
    pub fn new(addresses: Vec<String>, can_refresh: bool) -> Self {
        assert!(!addresses.is_empty(), "a handle has endpoints");
        Self {
            sweep: addresses.iter().cloned().collect(),
            addresses,
            can_refresh,
            redirect: None,
            redirects: 0,
            attempt: 0,
            delay_us: 0,
            delay_us_min: 0,
            wants_refresh: false,
            has_progressed: false,
            refreshed_at: None,
        }
    }

    /// `random` is any number, fresh for each call.
    pub fn next(&mut self, now: Micros, random: u64) -> Step {
        if let Some(address) = self.redirect.take() {
            return Step::Dial {
                address,
                delay_us: self.take_delay(),
            };
        }
        if self.sweep.is_empty() {
            self.sweep = self.addresses.iter().cloned().collect();
            self.wants_refresh = true;
            self.back_off(random);
        }
        let is_due = self
            .refreshed_at
            .is_none_or(|at| now.saturating_sub(at) >= REFRESH_INTERVAL_US_MIN);
        if self.wants_refresh && self.can_refresh && is_due {
            self.wants_refresh = false;
            self.refreshed_at = Some(now);
            return Step::Refresh {
                delay_us: self.take_delay(),
            };
        }
        let address = self.sweep.pop_front().expect("a sweep has addresses");
        Step::Dial {
            address,
            delay_us: self.take_delay(),
        }
    }

    /// A replica named the head. Without an address the sweep continues.
    pub fn redirect(&mut self, address: &str, random: u64) {
        if address.is_empty() {
            return;
        }
        self.redirect = Some(address.to_string());
        self.redirects += 1;
        if self.redirects > REDIRECTS_AT_ONCE_MAX {
            self.back_off(random);
        }
    }

    /// The handle seems out of date: the next step is a refresh, if possible.
    pub fn want_handle(&mut self) {
        self.wants_refresh = true;
    }

    /// Waits at least so long before the next dial, as a server asked.
    pub fn wait_at_least(&mut self, delay_us: Micros) {
        self.delay_us_min = self.delay_us_min.max(delay_us.min(BACKOFF_MAX_US));
    }

    /// A new handle came.
    pub fn replace(&mut self, addresses: Vec<String>) {
        assert!(!addresses.is_empty(), "a handle has endpoints");
        self.sweep = addresses.iter().cloned().collect();
        self.addresses = addresses;
    }

    /// The connection is the right one. When it breaks, its address is tried first.
    pub fn attached(&mut self, address: &str) {
        self.redirect = None;
        self.wants_refresh = false;
        self.delay_us = 0;
        self.delay_us_min = 0;
        self.has_progressed = false;
        let others = self.addresses.iter().filter(|other| *other != address).cloned();
        self.sweep = std::iter::once(address.to_string()).chain(others).collect();
    }

    /// An answer came over the connection: waits start small again.
    pub fn progressed(&mut self) {
        self.has_progressed = true;
        self.attempt = 0;
        self.redirects = 0;
    }

    /// The attached connection broke. Without an answer on it, the next dial waits.
    pub fn lost(&mut self, random: u64) {
        if !self.has_progressed {
            self.back_off(random);
        }
    }

    /// Try the others before this one.
    pub fn avoid(&mut self, address: &str) {
        self.sweep.retain(|other| other != address);
    }

    fn back_off(&mut self, random: u64) {
        let ceiling = BACKOFF_MAX_US.min(BACKOFF_BASE_US << self.attempt.min(20));
        self.attempt += 1;
        self.delay_us = random % (ceiling + 1);
    }

    fn take_delay(&mut self) -> Micros {
        let delay_us = self.delay_us.max(self.delay_us_min);
        self.delay_us = 0;
        self.delay_us_min = 0;
        delay_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(can_refresh: bool) -> Route {
        Route::new(vec!["a".into(), "b".into()], can_refresh)
    }

    fn dial(address: &str, delay_us: Micros) -> Step {
        Step::Dial {
            address: address.into(),
            delay_us,
        }
    }

    #[test]
    fn a_sweep_tries_all_addresses_and_the_next_one_waits() {
        let mut route = route(false);
        assert_eq!(route.next(0, 7), dial("a", 0));
        assert_eq!(route.next(0, 7), dial("b", 0));
        assert_eq!(route.next(0, BACKOFF_BASE_US), dial("a", BACKOFF_BASE_US));
        assert_eq!(route.next(0, 7), dial("b", 0));
        assert_eq!(route.next(0, 2 * BACKOFF_BASE_US), dial("a", 2 * BACKOFF_BASE_US));
    }

    #[test]
    fn a_redirect_is_followed_at_once_unless_replicas_disagree() {
        let mut route = route(false);
        for _ in 0..REDIRECTS_AT_ONCE_MAX {
            route.redirect("c", 9);
            assert_eq!(route.next(0, 7), dial("c", 0));
        }
        route.redirect("c", 9);
        assert_eq!(route.next(0, 7), dial("c", 9));
        route.redirect("", 9);
        assert_eq!(route.next(0, 7), dial("a", 0));
    }

    #[test]
    fn a_handle_is_refreshed_between_sweeps_but_not_too_often() {
        let mut route = route(true);
        let _ = (route.next(0, 0), route.next(0, 0));
        assert_eq!(route.next(5, 0), Step::Refresh { delay_us: 0 });
        route.replace(vec!["d".into()]);
        assert_eq!(route.next(5, 0), dial("d", 0));
        assert_eq!(route.next(6, 0), dial("d", 0));
        assert_eq!(
            route.next(5 + REFRESH_INTERVAL_US_MIN, 0),
            Step::Refresh { delay_us: 0 }
        );
    }

    #[test]
    fn a_broken_connection_is_tried_again_first_and_without_wait_if_it_ever_answered() {
        let mut route = route(false);
        let _ = route.next(0, 0);
        route.attached("b");
        route.progressed();
        route.lost(5);
        assert_eq!(route.next(0, 0), dial("b", 0));
        route.attached("b");
        route.lost(5);
        route.avoid("b");
        assert_eq!(route.next(0, 0), dial("a", 5));
    }
}
