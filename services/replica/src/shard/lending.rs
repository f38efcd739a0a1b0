//! A shard's part in sharing what is free: what its groups do, and what they may do above their SLAs.

use bytes::Bytes;
use quorate_controller::Place;
use quorate_controller::demand::Measured;
use quorate_controller::exchange::Load;
use quorate_qos::{Admission, Flow, LentWindow};
use quorate_types::{Epoch, GroupId, Micros, Role, ServerId};
use quorate_wire::client::{Message, Notice};
use quorate_wire::share::{SHARE_VERSION, Share};
use quorate_wire::{Frame, WireError, peer};
use tokio::sync::oneshot;

use crate::clock::now_us;
use crate::shard::Shard;
use crate::shard::group::Group;
use crate::shard::io::Io;
use crate::sharing::News;

pub enum Request {
    /// What groups did since this was last asked.
    Loads(oneshot::Sender<Vec<Load>>),
    Lend(Lend),
    /// Of its reservation the group is assumed to use so much; `None`: all.
    Assume {
        group_id: GroupId,
        epoch: Epoch,
        per_s: Option<u64>,
    },
    /// For a peer, if it takes such frames.
    Frame {
        to: ServerId,
        bytes: Bytes,
    },
}

/// What a group may use above its SLA.
pub struct Lend {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub per_s: u64,
    pub until: Micros,
}

/// What is known of a group from the last time it was asked.
#[derive(Default)]
pub struct Watched {
    at: Micros,
    flow: Flow,
    lent_per_s: u64,
    lent_until: Micros,
    /// The least and the most that clients were told since all of them were told the same.
    told_per_s: [u64; 2],
    /// Lent requests as last told to the meter.
    metered: Flow,
    pub window: LentWindow,
}

impl Shard {
    pub fn lending(&mut self, request: Request) {
        match request {
            Request::Loads(answer) => {
                let now = now_us();
                let loads = self.groups.values_mut().filter_map(|group| group.load(now));
                let _gone = answer.send(loads.collect()).is_err();
            }
            Request::Lend(lend) => {
                self.with_group(lend.group_id, |group, io| group.lend(io, &lend));
            }
            Request::Assume {
                group_id,
                epoch,
                per_s,
            } => {
                self.with_group(group_id, |group, _| group.assume(epoch, per_s));
            }
            Request::Frame { to, bytes } => self.send_share(to, bytes),
        }
    }

    fn send_share(&mut self, to: ServerId, bytes: Bytes) {
        if let Some(link) = self.io.links.get_mut(&to)
            && link.share_version >= SHARE_VERSION
        {
            link.pushed_bytes += bytes.len() as u64;
            link.outbox.push_bytes(bytes);
            self.io.mark_link(to);
        }
    }

    /// ALIVE or SHARE.
    pub fn lending_frame(&mut self, from: ServerId, frame: &Frame) -> Result<(), WireError> {
        if frame.kind == peer::kind::ALIVE {
            if let Some(link) = self.io.links.get_mut(&from) {
                link.share_version = peer::share_version_of(frame);
            }
        } else if let Some(share) = Share::decode(frame)? {
            self.io.shared.lending.tell(News::Frame { from, share });
        }
        Ok(())
    }
}

impl Group {
    /// `None` where it is no replica of a chain whose requests cost something. A learner takes what its place in the
    /// chain will cost: it is sent all that the others are, and what it missed.
    fn load(&mut self, now: Micros) -> Option<Load> {
        let (config, budget) = (self.replica.config()?, self.budget.as_ref()?);
        if self.replica.role() == Role::None {
            return None;
        }
        let places: Vec<Place> = (config.line().enumerate())
            .map(|(position, member)| Place {
                server: member.server_id.0 as usize,
                cost: budget.lent_milli_at(position),
            })
            .collect();
        if places.iter().all(|place| place.cost == [0; 3]) {
            return None;
        }
        let key = (config.group_id, config.epoch);
        let reserved_per_s = budget.reserved_per_s();
        let positions = 0..places.len();
        let reserved = positions
            .map(|position| budget.reserved_milli_at(position))
            .collect();
        let measured = match self.replica.is_head() {
            true => self.measure(now)?,
            false => Measured::default(),
        };
        Some(Load {
            key,
            places,
            reserved_per_s,
            reserved,
            measured,
        })
    }

    /// What the head did since this was last asked.
    fn measure(&mut self, now: Micros) -> Option<Measured> {
        let (admission, budget) = (self.admission.as_ref()?, self.budget.as_ref()?);
        let (flow, watched) = (admission.flow(), &mut self.lending);
        let elapsed_us = now.saturating_sub(std::mem::replace(&mut watched.at, now)).max(1);
        let since = flow.since(&std::mem::replace(&mut watched.flow, flow));
        let per_s = |milli: [u64; 3]| {
            let requests = u128::from(budget.requests_of(milli));
            u64::try_from(requests * 1_000_000 / u128::from(elapsed_us)).unwrap_or(u64::MAX)
        };
        let both = std::array::from_fn(|i| since.reserved[i].wrapping_add(since.lent[i]));
        Some(Measured {
            accepted_per_s: per_s(both),
            offered_per_s: per_s(since.offered),
            beyond_per_s: per_s(since.beyond),
            was_held_back: since.held_back > since.offers / 2,
        })
    }

    fn lend(&mut self, io: &mut Io, lend: &Lend) {
        if self.replica.epoch() != lend.epoch || !self.replica.is_head() {
            return;
        }
        let (Some(admission), Some(budget)) = (&mut self.admission, &self.budget) else {
            return;
        };
        let tokens = budget.request_milli().map(|cost| cost.saturating_mul(lend.per_s));
        admission.lend(now_us(), tokens, lend.until);
        (self.lending.lent_per_s, self.lending.lent_until) = (lend.per_s, lend.until);
        self.tell_rate(io);
        // What waits may pass now, or has longer to wait.
        io.wake_in_time(self.id);
    }

    fn assume(&mut self, epoch: Epoch, per_s: Option<u64>) {
        if self.replica.epoch() == epoch
            && let (Some(admission), Some(budget)) = (&mut self.admission, &self.budget)
        {
            let tokens = per_s.map(|per_s| budget.request_milli().map(|cost| cost.saturating_mul(per_s)));
            admission.assume(now_us(), tokens);
        }
    }

    /// Another epoch begins with the reservation, of which its servers may have lent some: they do not know yet that it
    /// has come. So nothing is assumed of it, and the first request is noticed.
    pub fn end_lending(&mut self, io: &Io) {
        let is_shared = io.shared.lending.share_version() > 0;
        if let Some(admission) = &mut self.admission {
            admission.end_lent();
            admission.assume(now_us(), is_shared.then_some([0; 3]));
        }
        self.lending.lent_per_s = 0;
        self.lending.window.begin_anew();
    }

    /// Nothing passes on lent capacity where an owner wants it back, nor while batches take long.
    pub fn judge_lent(&mut self, io: &Io, now: Micros) {
        let is_under_way = self.replica.commit_index() < self.replica.log().last_index();
        if let Some(admission) = self.admission.as_mut().filter(|admission| admission.has_lent()) {
            admission.set_yields(io.shared.lending.is_stopped(now));
            admission.set_lent_open(self.lending.window.lets_pass(now, is_under_way));
        }
    }

    /// A batch was ordered that was not in the log before: how long it takes is measured, where anything was ever lent.
    pub fn time_ordered(&mut self, now: Micros) {
        if self.admission.as_ref().is_some_and(Admission::has_lent) {
            self.lending.window.ordered(self.replica.log().last_index(), now);
        }
    }

    /// Who waits in the queue may pass now, and no event comes for it.
    pub fn time_committed(&mut self, io: &mut Io) {
        if self.lending.window.is_measuring() {
            let now = io.now_us();
            self.lending.window.committed(self.replica.commit_index(), now);
            if self
                .admission
                .as_ref()
                .is_some_and(|admission| !admission.is_empty())
            {
                self.judge_lent(io, now);
                io.wake_in_time(self.id);
            }
        }
    }

    /// It uses more of its reservation than was assumed.
    pub fn owner_returned(&self, io: &Io, now: Micros) {
        io.shared
            .lending
            .owner_returned(self.id, self.replica.epoch(), now);
    }

    /// Requests/s that pass now: what was reserved, and what is lent.
    pub fn rate_per_s(&self) -> u64 {
        let reserved = self.budget.as_ref().map_or(0, |budget| budget.rate_per_s);
        let lent = if now_us() < self.lending.lent_until {
            self.lending.lent_per_s
        } else {
            0
        };
        reserved.saturating_add(lent)
    }

    /// What one client is told when it attaches.
    pub fn rate_for_one(&mut self) -> u64 {
        let rate_per_s = self.rate_per_s();
        let [least, most] = self.lending.told_per_s;
        self.lending.told_per_s = [least.min(rate_per_s), most.max(rate_per_s)];
        rate_per_s
    }

    /// What all clients are told now.
    pub fn rate_for_all(&mut self) -> u64 {
        let rate_per_s = self.rate_per_s();
        self.lending.told_per_s = [rate_per_s; 2];
        rate_per_s
    }

    /// Clients are told their budget when it is no longer within a twentieth of what some of them were told.
    fn tell_rate(&mut self, io: &mut Io) {
        let rate_per_s = self.rate_per_s();
        if (self.lending.told_per_s.iter()).all(|told| rate_per_s.abs_diff(*told) <= told / 20) {
            return;
        }
        let notice = Notice {
            epoch: self.replica.epoch(),
            role: self.replica.role() as u8,
            state: self.replica.state() as u8,
            rate_per_s: self.rate_for_all(),
            head_address: self.head_address(),
        };
        for client in self.channels.keys() {
            io.send_client(*client, Message::Notice(notice.clone()));
        }
    }

    /// Requests that passed on lent capacity since the last call.
    pub fn lent_requests(&mut self) -> u64 {
        let (Some(admission), Some(budget)) = (&self.admission, &self.budget) else {
            return 0;
        };
        let flow = admission.flow();
        let since = flow.since(&std::mem::replace(&mut self.lending.metered, flow));
        budget.requests_of(since.lent)
    }
}

#[cfg(test)]
#[path = "lending_tests.rs"]
mod tests;
