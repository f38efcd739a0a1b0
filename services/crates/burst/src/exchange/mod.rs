//! One server's part in sharing free amounts, interval after interval: (state, event, now) → (state, commands).
//!
//! Intervals have numbers and no common clock. A server that hears of a later one than its own begins that at once, so
//! servers that hear one another keep step with the fastest. In each interval the iterations of [`crate::iterations`] run,
//! one every `iteration_us`; messages of other intervals are dropped.
//!
//! The rates in use are feasible at any moment, over intervals too. A server's [`commitments`] fit it together with earlier
//! ones that may still be in use, and with the amounts that it keeps for owners ([`reservations`]). A process that has just
//! started commits to nothing until its predecessor's commitments are over. A server that hears nothing keeps to the
//! reservations.

mod bounds;
mod command;
mod commitments;
mod fleet;
mod grants;
mod intervals;
mod load;
mod loads;
mod reclaim;
mod reports;
mod reservations;
mod settings;
mod told;

use std::collections::BTreeMap;

use quorate_types::Micros;
use quorate_wire::share::{Share, ShareEntry, What};

pub use self::bounds::GrantBound;
use self::bounds::GrantBounds;
pub use self::command::{ExchangeCommand, GrantReason, Granted};
use self::commitments::Commitments;
use self::grants::{Grants, HeldGrant};
use self::intervals::Intervals;
pub use self::load::GroupLoad;
use self::loads::GroupLoads;
use self::reclaim::{WideVector, fewest};
use self::reports::Reports;
use self::reservations::Reservations;
pub use self::settings::{Algorithm, ExchangeSettings};
use self::told::ToldRates;
use crate::all::AllDrf;
use crate::demand::DemandHistory;
use crate::exact::exact;
use crate::fleet::FleetDrf;
use crate::head::HeadDrf;
use crate::iterations::{HostedTenant, IterationMessage, Local, Participant};
use crate::level::{AGGREGATE_ITERATIONS, LevelDrf};
use crate::policy::{Policy, Reservation};
pub use crate::problem::GroupEpoch;
use crate::problem::{NOTHING, RESOURCES, ReplicaCost, Vector};

/// Frames that wait for their iteration; beyond, they are lost.
const INBOX_MAX: usize = 4_096;

/// This server's part in the interval's algorithm, from the interval's beginning on.
type Part = Box<dyn Participant>;

pub struct Exchange {
    me: usize,
    settings: ExchangeSettings,
    capacity: Vector,
    /// Until then commitments of this server's previous process may be in use.
    silent_until: Micros,
    intervals: Intervals,
    part: Option<Part>,
    loads: GroupLoads,
    demands: BTreeMap<GroupEpoch, DemandHistory>,
    reservations: Reservations,
    inbox: Vec<(usize, Share)>,
    commitments: Commitments,
    grants: Grants,
    bounds: GrantBounds,
    told: ToldRates,
    /// Commitments exceeded the free amounts when the last ones were made.
    is_over: bool,
}

impl Exchange {
    pub fn new(me: usize, settings: ExchangeSettings, capacity: Vector, now: Micros) -> Self {
        Self {
            me,
            settings,
            capacity,
            silent_until: now + settings.lapse_us(),
            intervals: Intervals::new(now),
            part: None,
            loads: GroupLoads::default(),
            demands: BTreeMap::new(),
            reservations: Reservations::default(),
            inbox: Vec::new(),
            commitments: Commitments::default(),
            grants: Grants::default(),
            bounds: GrantBounds::default(),
            told: ToldRates::default(),
            is_over: false,
        }
    }

    /// From the next interval on.
    pub fn set_capacity(&mut self, capacity: Vector) {
        self.capacity = capacity;
    }

    /// Whether an interval is to begin: [`Exchange::begin`] takes the groups' loads.
    pub fn is_due(&self, now: Micros) -> bool {
        self.intervals.is_due(now)
    }

    /// The next time at which something is due, if nothing comes.
    pub fn wake_at(&self) -> Micros {
        let step = match &self.part {
            Some(part) if self.intervals.iteration < part.iterations() => {
                self.intervals.step_at(&self.settings)
            }
            _ => Micros::MAX,
        };
        step.min(self.intervals.due_at())
    }

    pub fn begin(&mut self, now: Micros, loads: Vec<GroupLoad>) -> Vec<ExchangeCommand> {
        self.intervals.begin(now, &self.settings);
        self.part = None;
        self.bounds.begin();
        self.loads = GroupLoads::new(self.me, loads);
        let has_grown = self.reservations.begin(&self.loads);
        let mut commands = self.note_demand(now);
        self.end_grants(now, &mut commands);
        let goes_by_told = self.settings.algorithm == Algorithm::Fleet && self.told.is_good(now);
        self.report_use(goes_by_told, &mut commands);
        for (from, share) in std::mem::take(&mut self.inbox) {
            self.take_in(now, from, share);
        }
        self.commitments.expire(now);
        if has_grown {
            self.reclaim_excess(now, &mut commands);
        }
        if now >= self.silent_until {
            let local = self.local();
            self.part = Some(match self.settings.algorithm {
                Algorithm::Head => Box::new(HeadDrf::new(local, exact)),
                Algorithm::All => Box::new(AllDrf::new(local, exact)),
                Algorithm::Fleet if goes_by_told => Box::new(FleetDrf::new(local, self.told_by_tenant())),
                Algorithm::Fleet | Algorithm::Level => Box::new(LevelDrf::new(local, AGGREGATE_ITERATIONS)),
            });
        }
        if self.settings.algorithm == Algorithm::Fleet {
            commands.push(self.report(now));
        }
        commands.append(&mut self.step(now));
        commands
    }

    /// Runs every iteration that is due.
    pub fn step(&mut self, now: Micros) -> Vec<ExchangeCommand> {
        let mut commands = Vec::new();
        let Some(mut part) = self.part.take() else {
            return commands;
        };
        while self.intervals.iteration < part.iterations() && now >= self.intervals.step_at(&self.settings) {
            self.iterate(now, &mut part, &mut commands);
        }
        self.part = Some(part);
        commands
    }

    fn iterate(&mut self, now: Micros, part: &mut Part, commands: &mut Vec<ExchangeCommand>) {
        let inbox = std::mem::take(&mut self.inbox);
        self.hear_bounds(&inbox);
        let loads = &self.loads;
        let messages: Vec<IterationMessage> = (inbox.into_iter())
            .filter_map(|(from, share)| {
                let is_theirs = |t: usize| loads.all()[t].is_on(from);
                reports::to_message(from, self.me, &share, &loads.numbers, is_theirs)
            })
            .collect();
        let iteration = self.intervals.iteration;
        // Commitments are made in the last iteration but one; in the last, their heads hear of them.
        let commits = iteration + 2 == part.iterations();
        if commits {
            let free = self.free();
            part.note_now(free, &|tenant| {
                self.commitments.committed_per_s(&loads.all()[tenant].key)
            });
        }
        let sent = part.step(iteration, &messages);
        let names = loads.keys();
        let bounds = if commits {
            self.note_bounds(part.commitments())
        } else {
            BTreeMap::new()
        };
        for (to, mut share) in sent
            .iter()
            .flat_map(|message| reports::to_shares(message, &names))
        {
            if is_commitment(share.what) {
                let bound = |one: &ShareEntry| bounds.get(&(one.group_id, one.epoch)).copied();
                share.entries.iter_mut().for_each(|one| one.used_up = bound(one));
            }
            commands.push(ExchangeCommand::Send { to, share });
        }
        self.intervals.iteration += 1;
        if commits {
            self.commit(now, part.commitments(), commands);
        }
        if iteration + 1 == part.iterations() {
            self.agree(&part.grants(), commands);
        }
    }

    /// The resource that is used up here, by group, once `given` is committed to.
    fn note_bounds(&mut self, given: &[(usize, u64)]) -> BTreeMap<GroupEpoch, usize> {
        let mut left = self.free();
        let given: BTreeMap<usize, u64> = given.iter().copied().collect();
        for (t, load) in self.loads.all().iter().enumerate() {
            let (cost, held) = (self.loads.cost(load), self.commitments.committed_per_s(&load.key));
            let per_s = given.get(&t).copied().unwrap_or(0).max(held);
            left = std::array::from_fn(|i| left[i].saturating_sub(cost[i].saturating_mul(per_s)));
        }
        let mut found = BTreeMap::new();
        for (t, per_s) in given {
            let load = &self.loads.all()[t];
            if let Some(resource) = bounds::used_up(&left, &self.loads.cost(load), per_s) {
                found.insert(load.key, resource);
                if load.head() == self.me {
                    let server = self.me;
                    self.bounds.note(load.key, per_s, GrantBound { server, resource });
                }
            }
        }
        found
    }

    /// Takes the bounds that other servers reported of groups whose heads are here.
    fn hear_bounds(&mut self, inbox: &[(usize, Share)]) {
        for (from, share) in inbox.iter().filter(|(_, share)| is_commitment(share.what)) {
            for one in &share.entries {
                let key = (one.group_id, one.epoch);
                let is_theirs = self.loads.is_headed_by(&key, self.me) && self.loads.is_on(&key, *from);
                if let Some(resource) = one.used_up.filter(|_| is_theirs) {
                    let server = *from;
                    let given = one.number.unwrap_or(u64::MAX);
                    self.bounds.note(key, given, GrantBound { server, resource });
                }
            }
        }
    }

    fn commit(&mut self, now: Micros, given: &[(usize, u64)], commands: &mut Vec<ExchangeCommand>) {
        let until = now + self.settings.lapse_us();
        for (tenant, per_s) in given {
            let load = &self.loads.all()[*tenant];
            let cost = self.loads.cost(load);
            self.commitments
                .make(load.key, self.intervals.number, *per_s, cost, until);
        }
        // Less is free than was committed to: heads use less from the end of this interval on. Heads that did not hear of
        // it still use more, and that is reclaimed.
        let is_over = self.over() != [0; RESOURCES];
        let was_over = std::mem::replace(&mut self.is_over, is_over);
        if was_over && self.is_over {
            self.reclaim_excess(now, commands);
        }
        self.answer_owners(commands);
    }

    /// Answers heads: until the next commitments are made, the amounts kept now stay kept.
    fn answer_owners(&mut self, commands: &mut Vec<ExchangeCommand>) {
        let over = self.over();
        let fits = |load: &GroupLoad| {
            let cost = self.loads.cost(load);
            (0..RESOURCES).all(|i| cost[i] == 0 || over[i] == 0)
        };
        let mut reports = Reports::default();
        for (key, per_s) in self.reservations.answers() {
            if let Some(load) = self.loads.of(&key).filter(|load| fits(load)) {
                reports.add(load.head(), reports::entry(key, Some(per_s)));
            }
        }
        self.send(reports, What::Kept, commands);
        for load in self.loads.own().filter(|load| fits(load)) {
            if let Some(asked) = self.reservations.asked_per_s(&load.key) {
                commands.extend(self.reservations.is_kept(load, self.me, asked));
            }
        }
    }

    pub fn hear(&mut self, now: Micros, from: usize, share: Share) -> Vec<ExchangeCommand> {
        let mut commands = Vec::new();
        let keys = || share.entries.iter().map(|one| (one.group_id, one.epoch));
        match share.what {
            What::Recall => {
                for key in keys().filter(|key| self.loads.is_on(key, from)) {
                    commands.extend(self.grants.lose(now, key));
                }
            }
            What::Returned => {
                let theirs: Vec<GroupEpoch> =
                    keys().filter(|key| self.loads.is_headed_by(key, from)).collect();
                self.give_back(now, &theirs, &mut commands);
            }
            _ if share.interval < self.intervals.number => self.pull(from, &mut commands),
            What::Kept if share.interval == self.intervals.number => {
                self.take_kept(from, &share, &mut commands)
            }
            _ => self.keep(now, from, share),
        }
        commands
    }

    /// Reports the present interval to a server that is behind: it may hear of it from nobody else.
    fn pull(&mut self, from: usize, commands: &mut Vec<ExchangeCommand>) {
        if self.intervals.pulls(from) {
            let share = Share {
                interval: self.intervals.number,
                what: What::Using,
                free: NOTHING,
                entries: Vec::new(),
                aggregates: Vec::new(),
            };
            commands.push(ExchangeCommand::Send { to: from, share });
        }
    }

    fn keep(&mut self, now: Micros, from: usize, share: Share) {
        if self.intervals.follow(now, share.interval) {
            if self.inbox.len() < INBOX_MAX {
                self.inbox.push((from, share));
            }
        } else {
            self.take_in(now, from, share);
        }
    }

    /// Takes a frame of this interval; others are dropped.
    fn take_in(&mut self, now: Micros, from: usize, share: Share) {
        if share.interval != self.intervals.number {
            return;
        }
        let entries = share
            .entries
            .iter()
            .map(|one| ((one.group_id, one.epoch), one.number));
        let theirs = entries.filter(|(key, _)| self.loads.is_headed_by(key, from));
        match share.what {
            What::Using => {
                for (key, using) in theirs {
                    self.commitments.in_use(key, share.interval, using);
                }
            }
            // A request to this server's previous process may still be under way.
            What::Assumed if now >= self.silent_until => {
                for (key, per_s) in theirs {
                    if let Some(per_s) = per_s {
                        self.reservations.is_asked(key, per_s);
                    }
                }
            }
            What::Assumed | What::Kept => {}
            _ => {
                if self.inbox.len() < INBOX_MAX {
                    self.inbox.push((from, share));
                }
            }
        }
    }

    fn take_kept(&mut self, from: usize, share: &Share, commands: &mut Vec<ExchangeCommand>) {
        for one in &share.entries {
            let load = self.loads.of(&(one.group_id, one.epoch));
            if let (Some(load), Some(per_s)) = (load, one.number)
                && load.head() == self.me
                && load.is_on(from)
            {
                commands.extend(self.reservations.is_kept(load, from, per_s));
            }
        }
    }

    /// Takes groups whose heads are here and that use more of their reservations than was assumed.
    pub fn returned(&mut self, now: Micros, owners: &[GroupEpoch]) -> Vec<ExchangeCommand> {
        let mut commands = Vec::new();
        let (own, new): (Vec<GroupEpoch>, Vec<GroupEpoch>) =
            (owners.iter()).partition(|key| self.loads.is_headed_by(key, self.me));
        if !new.is_empty() {
            // These groups came after this interval began.
            self.intervals.hurry(now, &self.settings);
        }
        let mut reports = Reports::default();
        for load in own.iter().filter_map(|key| self.loads.of(key)) {
            for other in load.others(self.me) {
                reports.add(other, reports::entry(load.key, None));
            }
        }
        self.send(reports, What::Returned, &mut commands);
        self.give_back(now, &own, &mut commands);
        if new.is_empty() {
            commands.push(ExchangeCommand::Resume);
        }
        commands
    }

    /// Keeps their whole reservations from now on, and reclaims the burst capacity taken from them.
    fn give_back(&mut self, now: Micros, owners: &[GroupEpoch], commands: &mut Vec<ExchangeCommand>) {
        for key in owners {
            if let Some(demand) = self.demands.get_mut(key) {
                demand.forget();
            }
            self.reservations.is_back(*key);
        }
        self.reclaim_excess(now, commands);
    }

    /// Reclaims the commitments that do not fit beside the amounts kept for owners.
    fn reclaim_excess(&mut self, now: Micros, commands: &mut Vec<ExchangeCommand>) {
        if self.commitments.keys().next().is_none() {
            return;
        }
        let (mut over, mut held) = (self.over(), Vec::new());
        for key in self.commitments.keys() {
            let Some(load) = self.loads.of(key) else {
                continue; // a commitment of an earlier epoch ends by itself
            };
            let amounts = self.held_by(load);
            if self.grants.is_recalled(key) {
                over = std::array::from_fn(|i| over[i].saturating_sub(amounts[i]));
            } else {
                held.push((*key, amounts));
            }
        }
        let mut reports = Reports::default();
        for key in fewest(over, held) {
            commands.extend(self.grants.lose(now, key));
            match self.loads.of(&key).map(GroupLoad::head) {
                Some(head) if head != self.me => reports.add(head, reports::entry(key, None)),
                _ => {}
            }
        }
        self.send(reports, What::Recall, commands);
    }

    fn send(&self, reports: Reports, what: What, commands: &mut Vec<ExchangeCommand>) {
        let shares = reports.shares(self.intervals.number, what);
        commands.extend(
            shares
                .into_iter()
                .map(|(to, share)| ExchangeCommand::Send { to, share }),
        );
    }

    /// Notes the demand of the groups whose heads are here, and what of their reservations is kept for them.
    fn note_demand(&mut self, now: Micros) -> Vec<ExchangeCommand> {
        let loads = &self.loads;
        self.demands.retain(|key, _| loads.is_headed_by(key, self.me));
        let mut commands = Vec::new();
        let mut reports = Reports::default();
        for load in loads.own() {
            let demand = self.demands.entry(load.key).or_default();
            demand.observe(load.measured);
            let per_s = match self.settings.policy {
                Policy::Unallocated => load.reserved_per_s,
                Policy::Idle => demand.assumed_per_s(load.reserved_per_s),
            };
            commands.push(self.reservations.assume(load, per_s));
            // A request of this server's previous process may still be under way.
            if now >= self.silent_until
                && let Some(asks) = self.reservations.asks(&load.key, self.intervals.number)
            {
                for other in load.others(self.me) {
                    reports.add(other, reports::entry(load.key, Some(asks)));
                }
            }
        }
        self.send(reports, What::Assumed, &mut commands);
        commands
    }

    fn wanted(&self, load: &GroupLoad) -> u64 {
        self.demands[&load.key].extra_per_s(load.reserved_per_s)
    }

    /// Ends grants that have run out, are not wanted any more, or whose head is elsewhere now.
    fn end_grants(&mut self, now: Micros, commands: &mut Vec<ExchangeCommand>) {
        let (loads, demands) = (&self.loads, &self.demands);
        let reason = |key: &GroupEpoch, grant: &HeldGrant| {
            let (Some(load), Some(demand)) = (loads.of(key), demands.get(key)) else {
                return Some(GrantReason::Moved);
            };
            if grant.until <= now {
                Some(GrantReason::Lapsed)
            } else if demand.extra_per_s(load.reserved_per_s) == 0 {
                Some(GrantReason::Unwanted)
            } else {
                None
            }
        };
        commands.append(&mut self.grants.begin(now, reason));
    }

    /// Whether other servers may have committed to something for the group, or are to.
    fn concerns_others(&self, load: &GroupLoad) -> bool {
        self.grants.of(&load.key).is_some()
            || self.wanted(load) > 0
            || self.commitments.committed_per_s(&load.key) > 0
    }

    /// Reports which grants are in use: commitments to others are over. Coordinators pass it on where they compute.
    fn report_use(&mut self, is_passed_on: bool, commands: &mut Vec<ExchangeCommand>) {
        let mut reports = Reports::default();
        for load in self.loads.own() {
            let using = self.grants.of(&load.key).map(|grant| grant.interval);
            self.commitments.in_use(load.key, self.intervals.number, using);
            if is_passed_on || !self.concerns_others(load) {
                continue;
            }
            for other in load.others(self.me) {
                reports.add(other, reports::entry(load.key, using));
            }
        }
        self.send(reports, What::Using, commands);
    }

    fn local(&self) -> Local {
        let hosted = |(tenant, load): (usize, &GroupLoad)| HostedTenant {
            tenant,
            replicas: load.replicas.clone(),
            cost: self.loads.cost(load),
            extra_per_s: (load.head() == self.me).then(|| self.wanted(load)),
            committed_per_s: self.commitments.committed_per_s(&load.key),
        };
        Local {
            server: self.me,
            interval: self.intervals.number,
            free: self.free(),
            hosted: self.loads.all().iter().enumerate().map(hosted).collect(),
        }
    }

    /// The amounts that are not kept for owners, nor used by groups that were here.
    fn free(&self) -> Vector {
        let here = [ReplicaCost {
            server: 0,
            cost: NOTHING,
        }];
        let kept = |load: &GroupLoad| [self.reservations.kept(&load.key, &self.loads.cost(load))];
        let kept: Vec<[Vector; 1]> = self.loads.all().iter().map(kept).collect();
        let kept = kept.iter().map(|kept| Reservation {
            replicas: &here,
            reserved: kept,
            reserved_per_s: 0,
            used_per_s: 0,
        });
        let mut free = Policy::Unallocated.free(&[self.capacity], kept)[0];
        let gone = self.commitments.held_by_others(|key| self.loads.is_known(key));
        for i in 0..RESOURCES {
            free[i] = free[i].saturating_sub(gone[i]);
        }
        free
    }

    fn held_by(&self, load: &GroupLoad) -> WideVector {
        let (cost, per_s) = (self.loads.cost(load), self.commitments.committed_per_s(&load.key));
        std::array::from_fn(|i| u128::from(cost[i]) * u128::from(per_s))
    }

    /// The excess of amounts that may be in use over the free amounts.
    fn over(&self) -> WideVector {
        let mut held: WideVector = [0; RESOURCES];
        for load in self.loads.all() {
            let amounts = self.held_by(load);
            held = std::array::from_fn(|i| held[i].saturating_add(amounts[i]));
        }
        let free = self.free();
        std::array::from_fn(|i| held[i].saturating_sub(u128::from(free[i])))
    }

    fn agree(&mut self, grants: &[(usize, u64)], commands: &mut Vec<ExchangeCommand>) {
        for (tenant, per_s) in grants {
            let load = &self.loads.all()[*tenant];
            let grant = HeldGrant {
                interval: self.intervals.number,
                per_s: *per_s,
                until: self.intervals.began + self.settings.lapse_us(),
                bound: self.bounds.of(&load.key, *per_s, self.wanted(load)),
            };
            commands.extend(self.grants.agree(load.key, grant));
        }
    }

    /// Requests/s above the reservation that a group whose head is here may use now.
    pub fn granted_per_s(&self, now: Micros, key: &GroupEpoch) -> u64 {
        let grant = self.grants.of(key).filter(|grant| grant.until > now);
        grant.map_or(0, |grant| grant.per_s)
    }
}

/// Whether servers commit with such a frame.
fn is_commitment(what: What) -> bool {
    matches!(what, What::Commitment | What::Accepted)
}
