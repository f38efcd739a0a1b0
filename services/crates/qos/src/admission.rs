//! The queue in front of a group's head: requests over budget wait here, bounded, in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use quorate_types::cost::Budget;
use quorate_types::{Micros, limits};

use crate::buckets::Buckets;
use crate::grant::{Assumed, Flow, GrantBuckets, add};
use crate::reservation::Reservation;

/// Bounds of one group's queue. Beyond any of them a request is throttled.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    pub bytes_max: u64,
    pub batches_max: usize,
    pub wait_us_max: Micros,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            bytes_max: limits::QUEUE_BYTES_MAX,
            batches_max: limits::QUEUE_BATCHES_MAX,
            wait_us_max: limits::QUEUE_WAIT_MS_MAX * 1_000,
        }
    }
}

/// A request to be ordered now; its cost is taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted<T> {
    pub item: T,
    /// The time at which the reservation would have let it pass; `None`: it passes on burst capacity.
    pub start_us: Option<Micros>,
}

/// The answer to an offered request.
#[derive(Debug, PartialEq, Eq)]
pub enum Offer<T> {
    Admitted(Admitted<T>),
    /// It comes back from [`Admission::pop`], admitted or expired.
    Queued,
    /// Not taken. `within_sla`: the reservation alone would have let it pass in time, so this refusal counts against the
    /// SLA (answer `overloaded`). Otherwise the client exceeds it (answer `throttled`).
    Throttled {
        item: T,
        retry_after_us: Micros,
        within_sla: bool,
    },
}

/// A request that left the queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Ready<T> {
    Admitted(Admitted<T>),
    /// Its deadline, or the longest wait, passed, and it was not ordered. `within_sla` as in [`Offer`].
    Expired {
        item: T,
        retry_after_us: Micros,
        within_sla: bool,
    },
}

/// All requests that left the queue in one poll.
#[derive(Debug)]
pub struct Polled<T> {
    /// In the order in which they were offered.
    pub admitted: Vec<Admitted<T>>,
    /// With `within_sla` as in [`Offer`].
    pub expired: Vec<(T, bool)>,
}

/// Expired requests left the queue late by at most this: the precision of timers, and a turn of the server.
const SLACK_US_MAX: Micros = limits::QUEUE_SLACK_MS * 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Reserved,
    Burst,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    cost: [u64; 3],
    bytes: u64,
    offered_us: Micros,
    within_sla: bool,
}

/// Token buckets and the queue of one group. First in, first out; an expired request leaves from any place.
///
/// A request that the group's own budget does not let through may use the group's grant ([`GrantBuckets`]). Both
/// classes keep one order.
///
/// A refusal counts against the SLA if the [`Reservation`] would have let the request pass in time, all that waits before
/// it included. The queue and its bounds are part of that service, and so is the slack before deadlines.
///
/// A closed window ([`Admission::set_window_open`]) holds everything back for a reason other than the budget (too much uncommitted, too few
/// replicas). Requests then wait in the same queue.
#[derive(Debug)]
pub struct Admission<T> {
    limits: QueueLimits,
    buckets: Buckets,
    reservation: Reservation,
    grant: Option<GrantBuckets>,
    /// An owner on this server needs burst capacity back.
    yields: bool,
    /// Burst requests pass, if there is a grant: batches do not take long. A closed window opens within milliseconds,
    /// so waiting times are computed as if it were open.
    burst_open: bool,
    assumed: Option<Assumed>,
    returned: bool,
    flow: Flow,
    window_open: bool,
    /// The time since which the window is open.
    opened: Micros,
    /// Expired places are `None` until they reach the front. Place `n` has the number `first + n`.
    queue: VecDeque<Option<Waiting<T>>>,
    first: u64,
    deadlines: BinaryHeap<Reverse<(Micros, u64)>>,
    waiting: usize,
    waiting_bytes: u64,
    waiting_cost: [u128; 3],
}

impl<T> Admission<T> {
    pub fn new(budget: &Budget, limits: QueueLimits, now: Micros) -> Self {
        Self {
            limits,
            buckets: Buckets::new(budget, now),
            reservation: Reservation::new(budget, now),
            grant: None,
            yields: false,
            burst_open: true,
            assumed: None,
            returned: false,
            flow: Flow::default(),
            window_open: true,
            opened: now,
            queue: VecDeque::new(),
            first: 0,
            deadlines: BinaryHeap::new(),
            waiting: 0,
            waiting_bytes: 0,
            waiting_cost: [0; 3],
        }
    }

    /// Offers a request: `cost` in thousandths of tokens per resource (`Budget::batch_milli`), `bytes` of
    /// payload that it would hold in the queue, `deadline` on the caller's clock.
    pub fn offer(&mut self, now: Micros, item: T, cost: [u64; 3], bytes: u64, deadline: Micros) -> Offer<T> {
        add(&mut self.flow.offered, cost);
        self.flow.offers = self.flow.offers.wrapping_add(1);
        if self.window_open
            && self.waiting == 0
            && let Some(class) = self.take(now, now, cost)
        {
            if class == Class::Burst {
                add(&mut self.flow.beyond, cost);
            }
            return Offer::Admitted(self.admitted(now, item, cost, class));
        }
        if self.buckets.wait_us(now, cost, self.waiting_cost) > 0 {
            add(&mut self.flow.beyond, cost);
        }
        self.flow.held_back = self.flow.held_back.wrapping_add(1);
        let deadline = deadline.min(now.saturating_add(self.limits.wait_us_max));
        // Timers are late by a little. A request that is taken in must not expire for that alone.
        let slack_us = SLACK_US_MAX.min(deadline.saturating_sub(now) / 4);
        let start_max = deadline - slack_us;
        let full = self.waiting >= self.limits.batches_max
            || (self.waiting > 0 && self.waiting_bytes.saturating_add(bytes) > self.limits.bytes_max);
        let within_sla =
            self.reservation.start(now, cost, self.waiting_cost) <= start_max && (!full || self.is_late(now));
        let wait_us = self.wait_us(now, cost, self.waiting_cost);
        // A request that cannot pass before its deadline is refused at once, and not at its deadline.
        if full || now.saturating_add(wait_us) > start_max {
            if within_sla {
                self.reservation.pass(now, cost);
            }
            return Offer::Throttled {
                item,
                retry_after_us: self.retry_after(wait_us),
                within_sla,
            };
        }
        self.push(
            deadline,
            Waiting {
                item,
                cost,
                bytes,
                offered_us: now,
                within_sla,
            },
        );
        Offer::Queued
    }

    fn push(&mut self, deadline: Micros, waiting: Waiting<T>) {
        self.deadlines
            .push(Reverse((deadline, self.first + self.queue.len() as u64)));
        self.waiting += 1;
        self.waiting_bytes += waiting.bytes;
        for (sum, one) in self.waiting_cost.iter_mut().zip(waiting.cost) {
            *sum += u128::from(one);
        }
        self.queue.push_back(Some(waiting));
    }

    fn admitted(&mut self, offered_us: Micros, item: T, cost: [u64; 3], class: Class) -> Admitted<T> {
        let start_us = match class {
            Class::Reserved => Some(self.reservation.pass(offered_us, cost)),
            Class::Burst => None,
        };
        Admitted { item, start_us }
    }

    /// Whether the reservation would have let the first waiting request pass for some time.
    fn is_late(&self, now: Micros) -> bool {
        let front = self
            .queue
            .front()
            .map(|place| place.as_ref().expect("not an expired place"));
        let start = front.map(|waiting| self.reservation.start(waiting.offered_us, waiting.cost, [0; 3]));
        start.is_some_and(|start| start.saturating_add(SLACK_US_MAX) < now)
    }

    /// The next request that leaves the queue at `now`: expired ones first, then admitted ones, in order.
    pub fn pop(&mut self, now: Micros) -> Option<Ready<T>> {
        if let Some(expired) = self.pop_expired(now) {
            return Some(expired);
        }
        let front = self
            .queue
            .front()?
            .as_ref()
            .expect("the front is never an expired place");
        // A timer that is late takes no tokens from the group.
        let (from, cost) = (front.offered_us.max(self.opened), front.cost);
        let class = self.window_open.then(|| self.take(from, now, cost))??;
        let waiting = self.remove(self.first);
        Some(Ready::Admitted(self.admitted(
            waiting.offered_us,
            waiting.item,
            cost,
            class,
        )))
    }

    /// All requests that leave the queue at `now`.
    pub fn poll(&mut self, now: Micros) -> Polled<T> {
        let mut polled = Polled {
            admitted: Vec::new(),
            expired: Vec::new(),
        };
        while let Some(ready) = self.pop(now) {
            match ready {
                Ready::Admitted(admitted) => polled.admitted.push(admitted),
                Ready::Expired { item, within_sla, .. } => polled.expired.push((item, within_sla)),
            }
        }
        polled
    }

    /// The time at which [`Admission::pop`] next returns something, if nothing is offered meanwhile: the caller's
    /// timer. It is later than `now` after `pop` returned `None`, and `None` if nothing waits.
    pub fn next_wake(&mut self, now: Micros) -> Option<Micros> {
        let front_cost = self
            .queue
            .front()?
            .as_ref()
            .expect("the front is never an expired place")
            .cost;
        let deadline = self
            .next_deadline()
            .expect("every request in the queue has a deadline");
        if !self.window_open {
            return Some(deadline);
        }
        let own_us = self.buckets.wait_us(now, front_cost, [0; 3]);
        let grant_us = match &self.grant {
            Some(grant) if !self.yields && self.burst_open => grant.wait_us(now, front_cost),
            _ => Micros::MAX,
        };
        Some(deadline.min(now.saturating_add(own_us.min(grant_us))))
    }

    /// Takes from the group's own budget, at the time from `from` on at which it lets the request through. By `now` it may
    /// not have done so; then the request takes from the grant. `None`: from neither.
    fn take(&mut self, from: Micros, now: Micros, cost: [u64; 3]) -> Option<Class> {
        let start = self.buckets.start(from, cost, [0; 3]);
        if start <= now.max(from) {
            let passes = self.buckets.take(start, cost);
            assert_eq!(passes, Ok(()), "it passes when its wait is over");
            add(&mut self.flow.reserved, cost);
            if let Some(assumed) = &mut self.assumed
                && assumed.returns_with(now, cost)
            {
                self.returned = true;
            }
            return Some(Class::Reserved);
        }
        let passes =
            !self.yields && self.burst_open && self.grant.as_mut().is_some_and(|grant| grant.take(now, cost));
        if !passes {
            return None;
        }
        add(&mut self.flow.burst, cost);
        Some(Class::Burst)
    }

    fn wait_us(&self, now: Micros, cost: [u64; 3], ahead: [u128; 3]) -> Micros {
        match &self.grant {
            Some(grant) if !self.yields && !grant.is_over(now) => {
                let both = self.buckets.joined(grant.buckets(), now);
                both.wait_us(now, cost, ahead)
            }
            _ => self.buckets.wait_us(now, cost, ahead),
        }
    }

    /// Grants a rate (thousandths of tokens each second) until `until`. A rate of zero ends the grant.
    pub fn grant(&mut self, now: Micros, tokens_per_s_milli: [u64; 3], until: Micros) {
        match &mut self.grant {
            Some(grant) if tokens_per_s_milli == [0; 3] => grant.end(),
            None if tokens_per_s_milli == [0; 3] => {}
            Some(grant) => grant.renew(tokens_per_s_milli, until, now),
            None => self.grant = Some(GrantBuckets::new(tokens_per_s_milli, until, now)),
        }
    }

    /// Ends the grant. Its recent use still counts: a group that gets a grant again at once would have it twice
    /// otherwise.
    pub fn end_grant(&mut self) {
        if let Some(grant) = &mut self.grant {
            grant.end();
        }
    }

    /// Whether the group ever had a grant: for others, [`Admission::set_yields`] has no meaning.
    pub fn has_grant(&self) -> bool {
        self.grant.is_some()
    }

    /// While it yields, no request passes on burst capacity.
    pub fn set_yields(&mut self, yields: bool) {
        self.yields = yields;
    }

    /// As [`Admission::set_yields`], for a moment ([`crate::BurstWindow`]).
    pub fn set_burst_open(&mut self, is_open: bool) {
        self.burst_open = is_open;
    }

    /// The group is assumed to use no more than this (thousandths of tokens each second), and others were granted the
    /// rest. With `None` it may use its whole reservation.
    pub fn assume(&mut self, now: Micros, tokens_per_s_milli: Option<[u64; 3]>) {
        match (&mut self.assumed, tokens_per_s_milli) {
            (_, None) => self.assumed = None,
            (Some(assumed), Some(tokens)) => assumed.renew(tokens, now),
            (none, Some(tokens)) => *none = Some(Assumed::new(tokens, now)),
        }
    }

    /// Whether the group has used more than was assumed, since this was last asked.
    pub fn take_returned(&mut self) -> bool {
        std::mem::take(&mut self.returned)
    }

    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// A new budget. Waiting requests keep their cost. A smaller reservation promises them nothing.
    pub fn set_budget(&mut self, now: Micros, budget: &Budget) {
        if self.buckets.is_more_than(budget) {
            for waiting in self.queue.iter_mut().flatten() {
                waiting.within_sla = false;
            }
        }
        self.buckets.set_budget(budget, now);
        self.reservation.set_budget(budget);
    }

    /// Bytes that may wait. One request may, however large, if nothing else does.
    pub fn set_bytes_max(&mut self, bytes_max: u64) {
        self.limits.bytes_max = bytes_max;
    }

    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    pub fn set_window_open(&mut self, now: Micros, open: bool) {
        if open && !self.window_open {
            self.opened = now;
        }
        self.window_open = open;
    }

    /// Takes everything out, in order: the group has another head now, or was deleted.
    pub fn drain(&mut self) -> Vec<T> {
        self.deadlines.clear();
        self.first += self.queue.len() as u64;
        (self.waiting, self.waiting_bytes, self.waiting_cost) = (0, 0, [0; 3]);
        self.queue
            .drain(..)
            .flatten()
            .map(|waiting| waiting.item)
            .collect()
    }

    /// Takes out the requests that nobody waits for, in order. They take no tokens.
    pub fn remove_where(&mut self, mut is_over: impl FnMut(&T) -> bool) -> Vec<T> {
        let numbered = (self.first..).zip(&self.queue);
        let over: Vec<u64> = numbered
            .filter(|(_, place)| place.as_ref().is_some_and(|waiting| is_over(&waiting.item)))
            .map(|(number, _)| number)
            .collect();
        over.into_iter().map(|number| self.remove(number).item).collect()
    }

    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub fn queued_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    fn pop_expired(&mut self, now: Micros) -> Option<Ready<T>> {
        if self.next_deadline()? > now {
            return None;
        }
        let Reverse((_, number)) = self.deadlines.pop().expect("there is a next deadline");
        let waiting = self.remove(number);
        if waiting.within_sla {
            self.reservation.pass(waiting.offered_us, waiting.cost);
        }
        let wait_us = self.wait_us(now, waiting.cost, self.waiting_cost);
        let retry_after_us = self.retry_after(wait_us);
        Some(Ready::Expired {
            item: waiting.item,
            retry_after_us,
            within_sla: waiting.within_sla,
        })
    }

    /// The earliest deadline of a request that still waits.
    fn next_deadline(&mut self) -> Option<Micros> {
        while let Some(Reverse((deadline, number))) = self.deadlines.peek() {
            if *number >= self.first && self.queue[(number - self.first) as usize].is_some() {
                return Some(*deadline);
            }
            self.deadlines.pop();
        }
        None
    }

    fn remove(&mut self, number: u64) -> Waiting<T> {
        let place = (number - self.first) as usize;
        let waiting = self.queue[place].take().expect("a place is emptied once");
        self.waiting -= 1;
        self.waiting_bytes -= waiting.bytes;
        for (sum, one) in self.waiting_cost.iter_mut().zip(waiting.cost) {
            *sum -= u128::from(one);
        }
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        waiting
    }

    /// The time at which half of the requests ahead will have passed. It is early enough to keep the group busy, and
    /// late enough for a retry to find room.
    fn retry_after(&self, wait_us: Micros) -> Micros {
        let min_us = if self.window_open {
            limits::RETRY_AFTER_MS_MIN
        } else {
            limits::RETRY_AFTER_MS_HELD
        } * 1_000;
        (wait_us / 2).clamp(min_us, limits::RETRY_AFTER_MS_MAX * 1_000)
    }
}
