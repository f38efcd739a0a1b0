//! Burst capacity of one group: what it may use above its reservation, and what it measures for the controller
//! (Filo §4.2; `docs/internals/allocation.md`).

use quorate_burst::demand::MeasuredRates;
use quorate_burst::exchange::GroupLoad;
use quorate_burst::problem::ReplicaCost;
use quorate_chain::Replica;
use quorate_qos::{BurstWindow, Flow};
use quorate_types::{Micros, Role};

use crate::append_queue::AppendQueue;
use crate::grant::Grant;
use crate::turn::Turn;

#[derive(Debug, Default)]
pub(crate) struct Burst {
    /// The time when the load was last measured, and the flow at that time.
    measured_at_us: Micros,
    measured: Flow,
    granted_per_s: u64,
    granted_until_us: Micros,
    /// The least and the greatest rate that was sent to clients since all of them were sent the same.
    announced_per_s: [u64; 2],
    /// As last added to the server's counts.
    metered: Flow,
    window: BurstWindow,
}

impl Burst {
    /// Takes a grant of the present epoch.
    pub fn grant(&mut self, queue: &mut AppendQueue, grant: &Grant, now_us: Micros) {
        let AppendQueue { admission, budget } = queue;
        let tokens = budget
            .request_milli()
            .map(|cost| cost.saturating_mul(grant.rate_per_s));
        admission.grant(now_us, tokens, grant.until_us);
        (self.granted_per_s, self.granted_until_us) = (grant.rate_per_s, grant.until_us);
    }

    /// Other groups use what this one is not assumed to use.
    pub fn assume(queue: &mut AppendQueue, rate_per_s: Option<u64>, now_us: Micros) {
        let AppendQueue { admission, budget } = queue;
        let tokens = rate_per_s.map(|rate| budget.request_milli().map(|cost| cost.saturating_mul(rate)));
        admission.assume(now_us, tokens);
    }

    /// Another epoch begins with the reservation, of which its servers may have granted some to others: they do not
    /// know yet that it has come. So nothing is assumed of it, and the first request is noticed.
    pub fn begin_epoch(&mut self, queue: Option<&mut AppendQueue>, turn: &Turn) {
        if let Some(AppendQueue { admission, .. }) = queue {
            admission.end_grant();
            admission.assume(turn.now_us, turn.shares_burst.then_some([0; 3]));
        }
        self.granted_per_s = 0;
        self.window.reset();
    }

    /// Nothing passes on burst capacity while an owner wants it back, nor while batches take long.
    pub fn judge(&self, queue: Option<&mut AppendQueue>, replica: &Replica, turn: &Turn) {
        if let Some(AppendQueue { admission, .. }) = queue
            && admission.has_grant()
        {
            let is_under_way = replica.commit_index() < replica.log().last_index();
            admission.set_yields(turn.is_burst_stopped);
            admission.set_burst_open(self.window.lets_pass(turn.now_us, is_under_way));
        }
    }

    /// A batch was ordered that was not in the log before: its time to commitment is measured where anything was
    /// ever granted.
    pub fn ordered(&mut self, queue: Option<&AppendQueue>, replica: &Replica, now_us: Micros) {
        if queue.is_some_and(|queue| queue.admission.has_grant()) {
            self.window.ordered(replica.log().last_index(), now_us);
        }
    }

    /// Takes in what is committed; true: what waits in the queue may pass now, and no event comes for it.
    pub fn committed(&mut self, queue: Option<&mut AppendQueue>, replica: &Replica, turn: &Turn) -> bool {
        if !self.window.is_measuring() {
            return false;
        }
        self.window.committed(replica.commit_index(), turn.now_us);
        let Some(queue) = queue.filter(|queue| !queue.admission.is_empty()) else {
            return false;
        };
        self.judge(Some(queue), replica, turn);
        true
    }

    /// Requests/s that pass now: those of the reservation, and those granted.
    pub fn rate_per_s(&self, queue: Option<&AppendQueue>, now_us: Micros) -> u64 {
        let reserved = queue.map_or(0, |queue| queue.budget.rate_per_s);
        let granted = if now_us < self.granted_until_us {
            self.granted_per_s
        } else {
            0
        };
        reserved.saturating_add(granted)
    }

    /// Notes that one client was sent this rate.
    pub fn announced_to_one(&mut self, rate_per_s: u64) {
        let [least, greatest] = self.announced_per_s;
        self.announced_per_s = [least.min(rate_per_s), greatest.max(rate_per_s)];
    }

    pub fn announced_to_all(&mut self, rate_per_s: u64) {
        self.announced_per_s = [rate_per_s; 2];
    }

    /// Whether the rate is no longer within a twentieth of each rate that was sent to clients.
    pub fn is_news(&self, rate_per_s: u64) -> bool {
        let is_near = |announced: &u64| rate_per_s.abs_diff(*announced) <= announced / 20;
        !self.announced_per_s.iter().all(is_near)
    }

    /// The group as the controller sees it; `None` where it is no replica of a chain whose requests cost something. A
    /// learner takes what its place in the chain will cost: it is sent all that the others are, and what it missed.
    pub fn load(
        &mut self,
        queue: Option<&AppendQueue>,
        replica: &Replica,
        now_us: Micros,
    ) -> Option<GroupLoad> {
        let (config, queue) = (replica.config()?, queue?);
        let budget = &queue.budget;
        if replica.role() == Role::None {
            return None;
        }
        let replicas = ReplicaCost::of(config)?;
        let reserved = (0..replicas.len())
            .map(|position| budget.reserved_milli_at(position))
            .collect();
        let measured = match replica.is_head() {
            true if config.access.is_full() => self.measure(queue, now_us),
            true => self.measure(queue, now_us).within_reservation(),
            false => MeasuredRates::default(),
        };
        Some(GroupLoad {
            key: (config.group_id, config.epoch),
            replicas,
            reserved_per_s: budget.reserved_per_s(),
            reserved,
            measured,
        })
    }

    /// The head's measurements since the last call.
    fn measure(&mut self, queue: &AppendQueue, now_us: Micros) -> MeasuredRates {
        let flow = queue.admission.flow();
        let elapsed_us = now_us
            .saturating_sub(std::mem::replace(&mut self.measured_at_us, now_us))
            .max(1);
        let since = flow.since(&std::mem::replace(&mut self.measured, flow));
        let per_s = |milli: [u64; 3]| {
            let requests = u128::from(queue.budget.requests_of(milli));
            u64::try_from(requests * 1_000_000 / u128::from(elapsed_us)).unwrap_or(u64::MAX)
        };
        let both = std::array::from_fn(|i| since.reserved[i].wrapping_add(since.burst[i]));
        MeasuredRates {
            accepted_per_s: per_s(both),
            offered_per_s: per_s(since.offered),
            beyond_per_s: per_s(since.beyond),
            was_held_back: since.held_back > since.offers / 2,
        }
    }

    /// Requests that passed on burst capacity since the last call.
    pub fn take_requests(&mut self, queue: Option<&AppendQueue>) -> u64 {
        let Some(AppendQueue { admission, budget }) = queue else {
            return 0;
        };
        let flow = admission.flow();
        let since = flow.since(&std::mem::replace(&mut self.metered, flow));
        budget.requests_of(since.burst)
    }
}
