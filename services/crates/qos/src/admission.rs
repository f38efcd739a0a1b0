//! The queue in front of a group's head: requests over budget wait here, bounded, in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use quorate_types::cost::Budget;
use quorate_types::{Micros, limits};

use crate::buckets::Buckets;
use crate::delays::Delays;
use crate::grant::{Assumed, Flow, GrantBuckets, add};
use crate::queue_limits::QueueLimits;
use crate::reservation::Reservation;
use crate::shares::Shares;

/// A request to be ordered now; its cost is taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted<T> {
    pub item: T,
    /// Whether the group's reservation would have let it pass in time.
    pub is_owed: bool,
    /// The time at which it would have done so; `None` for a request that is not owed, or passes on burst capacity.
    pub start_us: Option<Micros>,
}

/// The answer to an offered request.
#[derive(Debug, PartialEq, Eq)]
pub enum Offer<T> {
    Admitted(Admitted<T>),
    /// It comes back from [`Admission::pop`], admitted or expired.
    Queued,
    /// Not taken. `within_sla`: it is owed, as the reservation alone would have let it pass in time. So this refusal counts
    /// against the SLA (answer `overloaded`). Otherwise the client exceeds it (answer `throttled`).
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

/// A request waits only if it will pass so long before its deadline: timers are late by a little.
const SLACK_US_MAX: Micros = limits::QUEUE_SLACK_MS * 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Reserved,
    Burst,
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    session: u64,
    cost: [u64; 3],
    bytes: u64,
    offered_us: Micros,
    /// It would pass too late after this.
    start_max: Micros,
    owed: Owed,
    /// It is within its session's share, and waits for the window alone.
    is_granted: bool,
    /// [`Delays::passed_us`] when it came.
    passed_us: Micros,
}

/// The reservation's decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// It lets the request pass at this time.
    From(Micros),
    /// It did so by a budget that has become smaller since.
    Formerly,
    No,
}

/// Token buckets and the queue of one group. First in, first out; an expired request leaves from any place.
///
/// A request within its session's share ([`Shares`]) passes before its turn. Those that wait have the time that it takes
/// added to the times that they were promised: a group's own sessions delay each other, and not the service.
///
/// A request that the group's own budget does not let through may use the group's grant ([`GrantBuckets`]). Both
/// classes keep one order.
///
/// The [`Reservation`] decides at the offer whether a request is owed. A request that is not owed waits only for burst
/// capacity. It is refused once that has ended, or an owed one behind it could pass.
///
/// A closed window ([`Admission::set_window_open`]) holds everything back for a reason other than the budget (too much
/// uncommitted, too few replicas). Requests then wait in the same queue.
#[derive(Debug)]
pub struct Admission<T> {
    limits: QueueLimits,
    buckets: Buckets,
    reservation: Reservation,
    shares: Shares,
    delays: Delays,
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
    /// The time up to which [`Flow::waited`] counts.
    waited_until: Micros,
    /// Requests that wait and are not owed, and their bytes.
    others: (usize, u64),
    others_cost: [u128; 3],
    /// The first place with an owed request.
    first_owed: Option<u64>,
    /// Requests that wait and are within their sessions' shares.
    granted: usize,
}

impl<T> Admission<T> {
    pub fn new(budget: &Budget, limits: QueueLimits, now: Micros) -> Self {
        Self {
            limits,
            buckets: Buckets::new(budget, now),
            reservation: Reservation::new(budget, now),
            shares: Shares::new(budget, now),
            delays: Delays::default(),
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
            waited_until: now,
            others: (0, 0),
            others_cost: [0; 3],
            first_owed: None,
            granted: 0,
        }
    }

    /// Offers a request of a session: `cost` in thousandths of tokens per resource (`Budget::batch_milli`), `bytes` of
    /// payload that it would hold in the queue, `deadline` on the caller's clock. Requests of a session keep their order.
    pub fn offer(
        &mut self,
        now: Micros,
        item: T,
        session: u64,
        cost: [u64; 3],
        bytes: u64,
        deadline: Micros,
    ) -> Offer<T> {
        self.note_waiting(now);
        add(&mut self.flow.offered, cost);
        self.flow.offers = self.flow.offers.wrapping_add(1);
        let deadline = deadline.min(now.saturating_add(self.limits.wait_us_max));
        let start_max = deadline - SLACK_US_MAX.min(deadline.saturating_sub(now) / 4);
        self.shares.note(now, session);
        let is_granted = self.shares.take(now, session, cost);
        let start = if is_granted {
            self.overtake(now, cost);
            Some(now)
        } else {
            self.reservation
                .offer(now, cost, bytes, start_max, &self.limits.reserved())
        };
        let owed = start.map_or(Owed::No, Owed::From);
        if is_granted && self.window_open && self.granted == 0 {
            self.take_share(now, cost);
            return Offer::Admitted(admitted(item, start, Class::Reserved));
        }
        if self.window_open
            && self.waiting == 0
            && let Some(class) = self.take(now, now, cost, owed)
        {
            self.shares.charge(now, session, cost);
            if class == Class::Burst {
                add(&mut self.flow.beyond, cost);
            }
            return Offer::Admitted(admitted(item, start, class));
        }
        let wait_us = self.buckets.wait_us(now, cost, self.waiting_cost);
        if wait_us > 0 && !is_granted {
            add(&mut self.flow.beyond, cost);
        }
        self.flow.held_back = self.flow.held_back.wrapping_add(1);
        let wait_us = wait_us.min(self.wait_with_grant_us(now, cost));
        let wait_us = wait_us.min(self.shares.wait_us(now, session, cost));
        let may_burst = self.has_grant_at(now) && now.saturating_add(wait_us) <= start_max;
        // A request that is to pass too late is refused at once, and not at its deadline.
        if (owed == Owed::No && !may_burst) || self.is_full(now, owed, bytes) {
            return Offer::Throttled {
                item,
                retry_after_us: self.retry_after(wait_us),
                within_sla: start.is_some(),
            };
        }
        let waiting = Waiting {
            item,
            session,
            cost,
            bytes,
            offered_us: now,
            start_max,
            owed,
            is_granted,
            passed_us: self.delays.passed_us(),
        };
        self.push(deadline, waiting);
        Offer::Queued
    }

    fn is_full(&self, now: Micros, owed: Owed, bytes: u64) -> bool {
        if owed == Owed::No {
            let (count, others_bytes) = self.others;
            return self.limits.for_others().is_full(count, others_bytes, bytes);
        }
        let is_full = |limits: QueueLimits| limits.is_full(self.waiting, self.waiting_bytes, bytes);
        is_full(self.limits) && (self.is_late(now) || is_full(self.limits.at_most()))
    }

    /// Whether the first owed request should have passed some time ago.
    fn is_late(&self, now: Micros) -> bool {
        let start =
            (self.first_owed.zip(self.first_owed())).and_then(|(number, one)| self.start(number, one));
        start.is_some_and(|start| start.saturating_add(SLACK_US_MAX) < now)
    }

    /// The time at which the reservation lets the request at this place pass, after those that passed before their turn.
    fn start(&self, number: u64, waiting: &Waiting<T>) -> Option<Micros> {
        let Owed::From(start) = waiting.owed else {
            return None;
        };
        if waiting.is_granted {
            return Some(start);
        }
        let delay_us = self.delays.since(waiting.passed_us, number, self.first);
        Some(start.saturating_add(delay_us))
    }

    fn first_owed(&self) -> Option<&Waiting<T>> {
        let place = &self.queue[(self.first_owed? - self.first) as usize];
        Some(
            place
                .as_ref()
                .expect("an owed request that left is not the first"),
        )
    }

    fn push(&mut self, deadline: Micros, waiting: Waiting<T>) {
        let number = self.first + self.queue.len() as u64;
        self.deadlines.push(Reverse((deadline, number)));
        self.shares.wait(waiting.session, number, waiting.is_granted);
        self.granted += usize::from(waiting.is_granted);
        if waiting.owed == Owed::No {
            self.others = (self.others.0 + 1, self.others.1 + waiting.bytes);
            for (sum, one) in self.others_cost.iter_mut().zip(waiting.cost) {
                *sum += u128::from(one);
            }
        } else {
            self.first_owed.get_or_insert(number);
        }
        self.waiting += 1;
        self.waiting_bytes += waiting.bytes;
        for (sum, one) in self.waiting_cost.iter_mut().zip(waiting.cost) {
            *sum += u128::from(one);
        }
        self.queue.push_back(Some(waiting));
    }

    /// The next request that leaves the queue at `now`: expired ones first, then admitted ones, in order.
    pub fn pop(&mut self, now: Micros) -> Option<Ready<T>> {
        self.note_waiting(now);
        if let Some(number) = self.expired(now) {
            return Some(self.refuse(now, number));
        }
        self.front()?;
        if !self.window_open {
            return None;
        }
        let (queue, first) = (&self.queue, self.first);
        if let Some(number) = self.shares.next(now, |place| cost_at(queue, first, place)) {
            return Some(Ready::Admitted(self.pass_before_its_turn(now, number)));
        }
        let front = self.front()?;
        // A timer that is late takes no tokens from the group.
        let (from, cost, owed) = (front.offered_us.max(self.opened), front.cost, front.owed);
        let Some(class) = self.take(from, now, cost, owed) else {
            let may_pass = !self.is_grant_over(now) || self.can_spare(now, cost);
            let is_in_the_way = owed == Owed::No && (!may_pass || self.owed_wake(now) <= now);
            return is_in_the_way.then(|| self.refuse(now, self.first));
        };
        let start = self.start(self.first, self.front()?);
        let waiting = self.remove(self.first);
        self.shares.charge(now, waiting.session, cost);
        Some(Ready::Admitted(admitted(waiting.item, start, class)))
    }

    /// The request at this place passes within its session's share, which is taken.
    fn pass_before_its_turn(&mut self, now: Micros, number: u64) -> Admitted<T> {
        let place = &self.queue[(number - self.first) as usize];
        let mut start = self.start(number, place.as_ref().expect("it waits"));
        let waiting = self.remove(number);
        match waiting.owed {
            _ if waiting.is_granted => {}
            // It is owed after all.
            Owed::No => {
                self.overtake(now, waiting.cost);
                start = Some(now);
            }
            Owed::From(_) | Owed::Formerly if number >= self.first => {
                self.delays.leave(number, self.buckets.worth_us(waiting.cost));
            }
            Owed::From(_) | Owed::Formerly => {}
        }
        self.take_share(now, waiting.cost);
        admitted(waiting.item, start, Class::Reserved)
    }

    /// The reservation lets this pass before all that waits.
    fn overtake(&mut self, now: Micros, cost: [u64; 3]) {
        self.reservation.pass_at_once(now, cost);
        self.delays.pass(self.buckets.worth_us(cost));
    }

    fn front(&self) -> Option<&Waiting<T>> {
        let place = self.queue.front()?;
        Some(place.as_ref().expect("the front is never an expired place"))
    }

    /// The time at which the first owed request could pass if it were the front; never before `now`.
    fn owed_wake(&self, now: Micros) -> Micros {
        let owed = self.first_owed();
        owed.map_or(Micros::MAX, |owed| {
            now.saturating_add(self.buckets.wait_us(now, owed.cost, [0; 3]))
        })
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
        let front = self.front()?;
        let (cost, owed) = (front.cost, front.owed);
        let deadline = self
            .next_deadline()
            .expect("every request in the queue has a deadline");
        if !self.window_open {
            return Some(deadline);
        }
        let may_reserve = owed != Owed::No || self.can_spare(now, cost);
        let own = if may_reserve {
            now.saturating_add(self.buckets.wait_us(now, cost, [0; 3]))
        } else {
            self.grant.as_ref().map_or(now, GrantBuckets::until)
        };
        let own = if owed == Owed::No {
            own.min(self.owed_wake(now))
        } else {
            own
        };
        let grant_us = match &self.grant {
            Some(grant) if !self.yields && self.burst_open => grant.wait_us(now, cost),
            _ => Micros::MAX,
        };
        let (queue, first) = (&self.queue, self.first);
        let of_shares = (self.shares).next_wake(now, |place| cost_at(queue, first, place));
        Some(deadline.min(own).min(now.saturating_add(grant_us)).min(of_shares))
    }

    /// Takes from the group's own budget, at the time from `from` on at which it lets the request through. By `now` it may
    /// not have done so; then the request takes from the grant. `None`: from neither. A request that is not owed takes
    /// only what the budget can spare.
    fn take(&mut self, from: Micros, now: Micros, cost: [u64; 3], owed: Owed) -> Option<Class> {
        let start = self.buckets.start(from, cost);
        if start > now || (owed == Owed::No && !self.can_spare(now, cost)) {
            return self.take_grant(now, cost).then_some(Class::Burst);
        }
        let passes = self.buckets.take(start, cost);
        assert_eq!(passes, Ok(()), "it passes when its wait is over");
        self.note_reserved(now, cost);
        Some(Class::Reserved)
    }

    /// A share that a session has: the group's budget may be in debt for it.
    fn take_share(&mut self, now: Micros, cost: [u64; 3]) {
        self.buckets.charge_now(now, cost);
        self.note_reserved(now, cost);
    }

    fn note_reserved(&mut self, now: Micros, cost: [u64; 3]) {
        add(&mut self.flow.reserved, cost);
        if let Some(assumed) = &mut self.assumed
            && assumed.returns_with(now, cost)
        {
            self.returned = true;
        }
    }

    fn can_spare(&self, now: Micros, cost: [u64; 3]) -> bool {
        let owed = std::array::from_fn(|i| self.waiting_cost[i] - self.others_cost[i]);
        self.reservation.can_spare(now, cost, owed, &self.buckets) && self.keeps_owed(now, cost)
    }

    /// Whether all owed requests that wait pass in time behind this one. The reservation may have taken in a later one that
    /// has left since: its tokens are there only after those before it.
    fn keeps_owed(&self, now: Micros, cost: [u64; 3]) -> bool {
        let Some(first) = self.first_owed else {
            return true;
        };
        let mut buckets = self.buckets.clone();
        let mut start_of = |cost| {
            let start = buckets.start(now, cost);
            // A start that never comes is too late for all.
            (start < Micros::MAX && buckets.take(start, cost).is_ok()).then_some(start)
        };
        if start_of(cost).is_none() {
            return false;
        }
        let places = (first..).zip(self.queue.range((first - self.first) as usize..));
        let waiting = places.filter_map(|(number, place)| Some((number, place.as_ref()?)));
        let mut owed = waiting.filter(|(_, waiting)| waiting.owed != Owed::No);
        owed.all(|(number, waiting)| {
            let promised = self.start(number, waiting).unwrap_or(Micros::MAX);
            start_of(waiting.cost).is_some_and(|start| start <= promised)
        })
    }

    fn take_grant(&mut self, now: Micros, cost: [u64; 3]) -> bool {
        let is_open = !self.yields && self.burst_open;
        let passes = is_open && self.grant.as_mut().is_some_and(|grant| grant.take(now, cost));
        if passes {
            add(&mut self.flow.burst, cost);
        }
        passes
    }

    fn is_grant_over(&self, now: Micros) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.is_over(now))
    }

    fn has_grant_at(&self, now: Micros) -> bool {
        !self.yields && !self.is_grant_over(now)
    }

    /// The wait behind all that waits, with the grant. A grant in debt may make it longer than by the group's own budget.
    fn wait_with_grant_us(&self, now: Micros, cost: [u64; 3]) -> Micros {
        match &self.grant {
            Some(grant) if self.has_grant_at(now) => {
                self.buckets
                    .joined(grant.buckets(), now)
                    .wait_us(now, cost, self.waiting_cost)
            }
            _ => Micros::MAX,
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

    /// The amounts, with the time that requests in the queue have waited until now.
    pub fn flow_at(&self, now: Micros) -> Flow {
        let mut flow = self.flow;
        add(&mut flow.waited, self.waited_since(now));
        flow
    }

    /// The cost of all requests in the queue, in thousandths of tokens.
    pub fn waiting_milli(&self) -> [u64; 3] {
        self.waiting_cost
            .map(|milli| u64::try_from(milli).unwrap_or(u64::MAX))
    }

    fn note_waiting(&mut self, now: Micros) {
        if self.waiting > 0 {
            let waited = self.waited_since(now);
            add(&mut self.flow.waited, waited);
        }
        self.waited_until = self.waited_until.max(now);
    }

    fn waited_since(&self, now: Micros) -> [u64; 3] {
        let elapsed_us = u128::from(now.saturating_sub(self.waited_until));
        self.waiting_cost.map(|milli| (milli * elapsed_us) as u64)
    }

    /// A new budget. Waiting requests keep their cost. A smaller one lets them pass later than they were promised, which
    /// its owner chose.
    pub fn set_budget(&mut self, now: Micros, budget: &Budget) {
        if self.buckets.is_more_than(budget) {
            for waiting in self.queue.iter_mut().flatten() {
                if waiting.owed != Owed::No {
                    waiting.owed = Owed::Formerly;
                }
            }
        }
        self.buckets.set_budget(budget, now);
        self.reservation.set_budget(now, budget);
        self.shares.set_budget(budget, now);
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
        (self.others, self.others_cost, self.first_owed) = ((0, 0), [0; 3], None);
        self.granted = 0;
        self.delays.clear();
        self.shares.clear();
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

    /// A request whose deadline has passed.
    fn expired(&mut self, now: Micros) -> Option<u64> {
        if self.next_deadline()? > now {
            return None;
        }
        let Reverse((_, number)) = self.deadlines.pop().expect("there is a next deadline");
        Some(number)
    }

    fn refuse(&mut self, now: Micros, number: u64) -> Ready<T> {
        let place = &self.queue[(number - self.first) as usize];
        let start = self.start(number, place.as_ref().expect("it waits"));
        let waiting = self.remove(number);
        let own_us = self.buckets.wait_us(now, waiting.cost, self.waiting_cost);
        let wait_us = own_us.min(self.wait_with_grant_us(now, waiting.cost));
        Ready::Expired {
            item: waiting.item,
            retry_after_us: self.retry_after(wait_us),
            within_sla: start.is_some_and(|start| start <= waiting.start_max),
        }
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
        self.shares.leave(waiting.session, number);
        self.granted -= usize::from(waiting.is_granted);
        self.waiting -= 1;
        self.waiting_bytes -= waiting.bytes;
        if waiting.owed == Owed::No {
            self.others = (self.others.0 - 1, self.others.1 - waiting.bytes);
            for (sum, one) in self.others_cost.iter_mut().zip(waiting.cost) {
                *sum -= u128::from(one);
            }
        }
        for (sum, one) in self.waiting_cost.iter_mut().zip(waiting.cost) {
            *sum -= u128::from(one);
        }
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        self.delays.forget_before(self.first);
        if self.first_owed == Some(number) {
            let behind = (number + 1).max(self.first);
            let places = (behind..).zip(self.queue.range((behind - self.first) as usize..));
            let is_owed =
                |place: &Option<Waiting<T>>| place.as_ref().is_some_and(|waiting| waiting.owed != Owed::No);
            self.first_owed = { places }
                .find(|(_, place)| is_owed(place))
                .map(|(number, _)| number);
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

/// `start`: of an owed request.
fn admitted<T>(item: T, start: Option<Micros>, class: Class) -> Admitted<T> {
    Admitted {
        item,
        is_owed: start.is_some(),
        start_us: start.filter(|_| class == Class::Reserved),
    }
}

fn cost_at<T>(queue: &VecDeque<Option<Waiting<T>>>, first: u64, place: u64) -> [u64; 3] {
    let waiting = &queue[(place - first) as usize];
    waiting.as_ref().expect("a share knows those that wait").cost
}
