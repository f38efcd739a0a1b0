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
use crate::latencies::ChainTime;
use crate::rate_meter::RateMeter;
use crate::turn::Turn;

#[derive(Debug, Default)]
pub(crate) struct Burst {
    meter: RateMeter,
    granted_per_s: u64,
    granted_until_us: Micros,
    /// The least and the greatest rate that was sent to clients since all of them were sent the same.
    announced_per_s: [u64; 2],
    /// As last added to the server's counts.
    metered: Flow,
    window: BurstWindow,
}

impl Burst {
    /// Takes a grant of the present epoch, of which the group's project may allow less.
    pub fn grant(&mut self, queue: &mut AppendQueue, grant: &Grant, max_per_s: Option<u64>, now_us: Micros) {
        let rate_per_s = grant.rate_per_s.min(max_per_s.unwrap_or(u64::MAX));
        let cost = queue.budget.request_milli();
        let tokens = cost.map(|cost| cost.saturating_mul(rate_per_s));
        queue.admission.grant(now_us, tokens, grant.until_us);
        (self.granted_per_s, self.granted_until_us) = (rate_per_s, grant.until_us);
    }

    /// Another epoch begins with the reservation, of which its servers may have granted some to others: they do not
    /// know yet that it has come. So nothing is assumed of it, and the first request is noticed.
    pub fn begin_epoch(&mut self, queue: Option<&mut AppendQueue>, turn: &Turn) {
        if let Some(queue) = queue {
            queue.admission.end_grant();
            queue.assume(turn.now_us, turn.shares_burst.then_some(0));
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
        chain_time: ChainTime,
        max_per_s: Option<u64>,
        now_us: Micros,
    ) -> Option<GroupLoad> {
        let (config, queue) = (replica.config()?, queue?);
        let budget = queue.own();
        if replica.role() == Role::None {
            return None;
        }
        let replicas = ReplicaCost::of(config)?;
        let reserved = (0..replicas.len())
            .map(|position| budget.reserved_milli_at(position))
            .collect();
        let measured = match replica.is_head() {
            true => {
                let all = self.meter.take(queue, chain_time, now_us);
                let measured = MeasuredRates {
                    extra_max_per_s: max_per_s,
                    ..all.beside_share(queue.share_per_s())
                };
                match config.access.is_full() {
                    true => measured,
                    false => measured.within_reservation(),
                }
            }
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

    /// Requests that passed on burst capacity since the last call.
    pub fn take_requests(&mut self, queue: Option<&AppendQueue>) -> u64 {
        let Some(AppendQueue {
            admission, budget, ..
        }) = queue
        else {
            return 0;
        };
        let flow = admission.flow();
        let since = flow.since(&std::mem::replace(&mut self.metered, flow));
        budget.requests_of(since.burst)
    }
}
