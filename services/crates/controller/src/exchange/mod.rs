//! One server's part in sharing what is free, interval after interval: (state, event, now) → (state, commands).
//!
//! Intervals have numbers and no common clock: whoever hears of a later one than its own begins that at once, so
//! servers that hear one another keep step with the fastest. In each interval the rounds of [`crate::rounds`] run,
//! a step each `round_us`; messages of other intervals are dropped.
//!
//! What is used is feasible at any moment, over intervals too: a server's words ([`crate::words`]) fit it together
//! with those that it gave before and that may still be in use, and with what it keeps for owners ([`reservations`]); a
//! process that has just started gives none until those of its predecessor are over. Whoever hears nothing keeps its
//! reservation.

mod bounds;
mod grants;
mod intervals;
mod loads;
mod recall;
mod reservations;

use std::collections::BTreeMap;

use quorate_types::{Epoch, GroupId, Micros};
use quorate_wire::share::{Share, ShareEntry, What};

pub use self::bounds::Bound;
use self::bounds::Bounds;
use self::grants::{Grant, Grants};
pub use self::grants::{Granted, Why};
use self::intervals::Intervals;
use self::loads::Loads;
use self::recall::{Sum, least};
use self::reservations::Reservations;
use crate::all::AllDrf;
use crate::demand::{Demand, Measured};
use crate::exact::exact;
use crate::head::HeadDrf;
use crate::level::{CROWD_ROUNDS, LevelDrf};
use crate::policy::{Policy, Reservation};
use crate::problem::{NOTHING, Place, RESOURCES, Vector};
use crate::rounds::{Hosted, Local, Message, Server};
use crate::tell::{self, Sheets};
use crate::words::Words;

/// A group in one epoch: with another chain it is another tenant.
pub type Key = (GroupId, Epoch);

/// Frames that wait for their round; beyond, they are lost.
const INBOX_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Head,
    All,
    Level,
}

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub algorithm: Algorithm,
    pub policy: Policy,
    pub interval_us: Micros,
    /// Between two steps; all of them must fit the interval.
    pub round_us: Micros,
    /// A grant that is not renewed for so many intervals ends.
    pub lapse_intervals: u64,
}

impl Settings {
    fn lapse_us(&self) -> Micros {
        self.interval_us * self.lapse_intervals
    }
}

/// A group with a replica here, and what it did since the last interval began.
#[derive(Debug, Clone)]
pub struct Load {
    pub key: Key,
    /// The chain, head first, and who will join it, by server.
    pub places: Vec<Place>,
    /// At the head, in the resource of which most is reserved.
    pub reserved_per_s: u64,
    /// What is reserved at each of `places`: not as many requests in each resource, nor at each replica.
    pub reserved: Vec<Vector>,
    /// At the head; elsewhere it means nothing.
    pub measured: Measured,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Send {
        to: usize,
        share: Share,
    },
    Grant(Granted),
    /// Of its reservation the group uses so many requests/s at most without [`Exchange::returned`]; the rest may be
    /// lent. `None`: all of it.
    Assume {
        key: Key,
        per_s: Option<u64>,
    },
    /// What had to be called back for the owners who returned is; what else is lent goes on.
    Resume,
}

/// A server in an interval, from its beginning on.
type Rounds = Box<dyn Server>;

pub struct Exchange {
    me: usize,
    settings: Settings,
    capacity: Vector,
    /// Until then words of this server's previous process may be in use.
    silent_until: Micros,
    intervals: Intervals,
    rounds: Option<Rounds>,
    loads: Loads,
    demands: BTreeMap<Key, Demand>,
    reservations: Reservations,
    inbox: Vec<(usize, Share)>,
    words: Words,
    grants: Grants,
    bounds: Bounds,
    /// More was promised than was free when the last words were given.
    is_over: bool,
}

impl Exchange {
    pub fn new(me: usize, settings: Settings, capacity: Vector, now: Micros) -> Self {
        Self {
            me,
            settings,
            capacity,
            silent_until: now + settings.lapse_us(),
            intervals: Intervals::new(now),
            rounds: None,
            loads: Loads::default(),
            demands: BTreeMap::new(),
            reservations: Reservations::default(),
            inbox: Vec::new(),
            words: Words::default(),
            grants: Grants::default(),
            bounds: Bounds::default(),
            is_over: false,
        }
    }

    /// From the next interval on.
    pub fn set_capacity(&mut self, capacity: Vector) {
        self.capacity = capacity;
    }

    /// Whether an interval is to begin: [`Exchange::begin`] wants to know what groups did.
    pub fn is_due(&self, now: Micros) -> bool {
        self.intervals.is_due(now)
    }

    /// When something is to be done, if nothing comes.
    pub fn wake_at(&self) -> Micros {
        let step = match &self.rounds {
            Some(rounds) if self.intervals.round < rounds.rounds() => self.intervals.step_at(&self.settings),
            _ => Micros::MAX,
        };
        step.min(self.intervals.due_at())
    }

    pub fn begin(&mut self, now: Micros, loads: Vec<Load>) -> Vec<Command> {
        self.intervals.begin(now, &self.settings);
        self.rounds = None;
        self.bounds.begin();
        self.loads = Loads::new(self.me, loads);
        let has_grown = self.reservations.begin(&self.loads);
        let mut commands = self.note_demand(now);
        self.end_grants(now, &mut commands);
        self.tell_using(&mut commands);
        for (from, share) in std::mem::take(&mut self.inbox) {
            self.take_in(now, from, share);
        }
        self.words.expire(now);
        if has_grown {
            self.recall_over(now, &mut commands);
        }
        if now >= self.silent_until {
            let local = self.local();
            self.rounds = Some(match self.settings.algorithm {
                Algorithm::Head => Box::new(HeadDrf::new(local, exact)),
                Algorithm::All => Box::new(AllDrf::new(local, exact)),
                Algorithm::Level => Box::new(LevelDrf::new(local, CROWD_ROUNDS)),
            });
        }
        commands.append(&mut self.step(now));
        commands
    }

    /// Every step whose time has come.
    pub fn step(&mut self, now: Micros) -> Vec<Command> {
        let mut commands = Vec::new();
        let Some(mut rounds) = self.rounds.take() else {
            return commands;
        };
        while self.intervals.round < rounds.rounds() && now >= self.intervals.step_at(&self.settings) {
            self.one_step(now, &mut rounds, &mut commands);
        }
        self.rounds = Some(rounds);
        commands
    }

    fn one_step(&mut self, now: Micros, rounds: &mut Rounds, commands: &mut Vec<Command>) {
        let inbox = std::mem::take(&mut self.inbox);
        self.hear_bounds(&inbox);
        let loads = &self.loads;
        let messages: Vec<Message> = (inbox.into_iter())
            .filter_map(|(from, share)| {
                let is_theirs = |t: usize| loads.all()[t].is_on(from);
                tell::to_message(from, self.me, &share, &loads.numbers, is_theirs)
            })
            .collect();
        let round = self.intervals.round;
        // Words are given in the last round but one; then their heads hear them.
        let gives = round + 2 == rounds.rounds();
        if gives {
            let free = self.free();
            rounds.note_now(free, &|tenant| self.words.held_per_s(&loads.all()[tenant].key));
        }
        let said = rounds.step(round, &messages);
        let names = loads.keys();
        let bounds = if gives {
            self.note_bounds(rounds.given())
        } else {
            BTreeMap::new()
        };
        for (to, mut share) in said.iter().flat_map(|message| tell::to_shares(message, &names)) {
            if is_word(share.what) {
                let told = |one: &ShareEntry| bounds.get(&(one.group_id, one.epoch)).copied();
                share.entries.iter_mut().for_each(|one| one.used_up = told(one));
            }
            commands.push(Command::Send { to, share });
        }
        self.intervals.round += 1;
        if gives {
            self.give_words(now, rounds.given(), commands);
        }
        if round + 1 == rounds.rounds() {
            self.agree(&rounds.grants(), commands);
        }
    }

    /// Of which resource there is no more here, by group, when so much is `given`.
    fn note_bounds(&mut self, given: &[(usize, u64)]) -> BTreeMap<Key, usize> {
        let mut left = self.free();
        let given: BTreeMap<usize, u64> = given.iter().copied().collect();
        for (t, load) in self.loads.all().iter().enumerate() {
            let (cost, held) = (self.loads.cost(load), self.words.held_per_s(&load.key));
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
                    self.bounds.note(load.key, per_s, Bound { server, resource });
                }
            }
        }
        found
    }

    /// What other servers told of groups whose heads are here.
    fn hear_bounds(&mut self, inbox: &[(usize, Share)]) {
        for (from, share) in inbox.iter().filter(|(_, share)| is_word(share.what)) {
            for one in &share.entries {
                let key = (one.group_id, one.epoch);
                let is_theirs = self.loads.is_headed_by(&key, self.me) && self.loads.is_on(&key, *from);
                if let Some(resource) = one.used_up.filter(|_| is_theirs) {
                    let server = *from;
                    let given = one.number.unwrap_or(u64::MAX);
                    self.bounds.note(key, given, Bound { server, resource });
                }
            }
        }
    }

    fn give_words(&mut self, now: Micros, given: &[(usize, u64)], commands: &mut Vec<Command>) {
        let until = now + self.settings.lapse_us();
        for (tenant, per_s) in given {
            let load = &self.loads.all()[*tenant];
            let cost = self.loads.cost(load);
            self.words
                .give(load.key, self.intervals.number, *per_s, cost, until);
        }
        // Less is free than was promised: heads use less from the end of this interval on. If they do not, as they did
        // not hear of it, it is called back.
        let is_over = self.over() != [0; RESOURCES];
        let was_over = std::mem::replace(&mut self.is_over, is_over);
        if was_over && self.is_over {
            self.recall_over(now, commands);
        }
        self.answer_owners(commands);
    }

    /// Until the next words are given, what is kept now is kept.
    fn answer_owners(&mut self, commands: &mut Vec<Command>) {
        let over = self.over();
        let fits = |load: &Load| {
            let cost = self.loads.cost(load);
            (0..RESOURCES).all(|i| cost[i] == 0 || over[i] == 0)
        };
        let mut sheets = Sheets::default();
        for (key, per_s) in self.reservations.answers() {
            if let Some(load) = self.loads.of(&key).filter(|load| fits(load)) {
                sheets.tell(load.head(), tell::entry(key, Some(per_s)));
            }
        }
        self.send(sheets, What::Kept, commands);
        for load in self.loads.own().filter(|load| fits(load)) {
            if let Some(asked) = self.reservations.asked_per_s(&load.key) {
                commands.extend(self.reservations.is_kept(load, self.me, asked));
            }
        }
    }

    pub fn hear(&mut self, now: Micros, from: usize, share: Share) -> Vec<Command> {
        let mut commands = Vec::new();
        let keys = || share.entries.iter().map(|one| (one.group_id, one.epoch));
        match share.what {
            What::Recall => {
                for key in keys().filter(|key| self.loads.is_on(key, from)) {
                    commands.extend(self.grants.lose(now, key));
                }
            }
            What::Returned => {
                let theirs: Vec<Key> = keys().filter(|key| self.loads.is_headed_by(key, from)).collect();
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

    /// Whoever is behind may hear of no later interval otherwise: it may be that this server has nothing to say to it.
    fn pull(&mut self, from: usize, commands: &mut Vec<Command>) {
        if self.intervals.pulls(from) {
            let share = Share {
                interval: self.intervals.number,
                what: What::Using,
                free: NOTHING,
                entries: Vec::new(),
                crowds: Vec::new(),
            };
            commands.push(Command::Send { to: from, share });
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

    /// Of this interval; others are dropped.
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
                    self.words.in_use(key, share.interval, using);
                }
            }
            // What the head told this server's previous process may still be under way.
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

    fn take_kept(&mut self, from: usize, share: &Share, commands: &mut Vec<Command>) {
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

    /// Groups whose heads are here use more of their reservations than was assumed.
    pub fn returned(&mut self, now: Micros, owners: &[Key]) -> Vec<Command> {
        let mut commands = Vec::new();
        let (own, new): (Vec<Key>, Vec<Key>) =
            (owners.iter()).partition(|key| self.loads.is_headed_by(key, self.me));
        if !new.is_empty() {
            // They came after this interval began.
            self.intervals.hurry(now, &self.settings);
        }
        let mut sheets = Sheets::default();
        for load in own.iter().filter_map(|key| self.loads.of(key)) {
            for other in load.others(self.me) {
                sheets.tell(other, tell::entry(load.key, None));
            }
        }
        self.send(sheets, What::Returned, &mut commands);
        self.give_back(now, &own, &mut commands);
        if new.is_empty() {
            commands.push(Command::Resume);
        }
        commands
    }

    /// All of their reservations is kept from now on, and what of it was lent is called back.
    fn give_back(&mut self, now: Micros, owners: &[Key], commands: &mut Vec<Command>) {
        for key in owners {
            if let Some(demand) = self.demands.get_mut(key) {
                demand.forget();
            }
            self.reservations.is_back(*key);
        }
        self.recall_over(now, commands);
    }

    /// Calls back what does not fit beside what is kept for owners.
    fn recall_over(&mut self, now: Micros, commands: &mut Vec<Command>) {
        if self.words.keys().next().is_none() {
            return;
        }
        let (mut over, mut held) = (self.over(), Vec::new());
        for key in self.words.keys() {
            let Some(load) = self.loads.of(key) else {
                continue; // of an earlier epoch: it ends by itself
            };
            let amounts = self.held_by(load);
            if self.grants.is_recalled(key) {
                over = std::array::from_fn(|i| over[i].saturating_sub(amounts[i]));
            } else {
                held.push((*key, amounts));
            }
        }
        let mut sheets = Sheets::default();
        for key in least(over, held) {
            commands.extend(self.grants.lose(now, key));
            match self.loads.of(&key).map(Load::head) {
                Some(head) if head != self.me => sheets.tell(head, tell::entry(key, None)),
                _ => {}
            }
        }
        self.send(sheets, What::Recall, commands);
    }

    fn send(&self, sheets: Sheets, what: What, commands: &mut Vec<Command>) {
        let shares = sheets.shares(self.intervals.number, what);
        commands.extend(shares.into_iter().map(|(to, share)| Command::Send { to, share }));
    }

    /// Of the groups whose heads are here: what they want, and what of their reservations is kept for them.
    fn note_demand(&mut self, now: Micros) -> Vec<Command> {
        let loads = &self.loads;
        self.demands.retain(|key, _| loads.is_headed_by(key, self.me));
        let mut commands = Vec::new();
        let mut sheets = Sheets::default();
        for load in loads.own() {
            let demand = self.demands.entry(load.key).or_default();
            demand.observe(load.measured);
            let per_s = match self.settings.policy {
                Policy::Unallocated => load.reserved_per_s,
                Policy::Idle => demand.assumed_per_s(load.reserved_per_s),
            };
            commands.push(self.reservations.assume(load, per_s));
            // What this server's previous process told may still be under way.
            if now >= self.silent_until
                && let Some(asks) = self.reservations.asks(&load.key, self.intervals.number)
            {
                for other in load.others(self.me) {
                    sheets.tell(other, tell::entry(load.key, Some(asks)));
                }
            }
        }
        self.send(sheets, What::Assumed, &mut commands);
        commands
    }

    fn wanted(&self, load: &Load) -> u64 {
        self.demands[&load.key].extra_per_s(load.reserved_per_s)
    }

    /// Grants that have run out, are not wanted any more, or whose head is elsewhere now.
    fn end_grants(&mut self, now: Micros, commands: &mut Vec<Command>) {
        let (loads, demands) = (&self.loads, &self.demands);
        let why = |key: &Key, grant: &Grant| {
            let (Some(load), Some(demand)) = (loads.of(key), demands.get(key)) else {
                return Some(Why::Moved);
            };
            if grant.until <= now {
                Some(Why::Lapsed)
            } else if demand.extra_per_s(load.reserved_per_s) == 0 {
                Some(Why::Unwanted)
            } else {
                None
            }
        };
        commands.append(&mut self.grants.begin(now, why));
    }

    /// Which grants are in use: words for others are over.
    fn tell_using(&mut self, commands: &mut Vec<Command>) {
        let mut sheets = Sheets::default();
        for load in self.loads.own() {
            let using = self.grants.of(&load.key).map(|grant| grant.interval);
            self.words.in_use(load.key, self.intervals.number, using);
            if using.is_none() && self.wanted(load) == 0 && self.words.held_per_s(&load.key) == 0 {
                continue; // nobody gave a word for it
            }
            for other in load.others(self.me) {
                sheets.tell(other, tell::entry(load.key, using));
            }
        }
        self.send(sheets, What::Using, commands);
    }

    fn local(&self) -> Local {
        let hosted = |(tenant, load): (usize, &Load)| Hosted {
            tenant,
            places: load.places.clone(),
            cost: self.loads.cost(load),
            extra_per_s: (load.head() == self.me).then(|| self.wanted(load)),
            held_per_s: self.words.held_per_s(&load.key),
        };
        Local {
            server: self.me,
            interval: self.intervals.number,
            free: self.free(),
            hosted: self.loads.all().iter().enumerate().map(hosted).collect(),
        }
    }

    /// What is not kept for owners, nor used by groups that were here.
    fn free(&self) -> Vector {
        let here = [Place {
            server: 0,
            cost: NOTHING,
        }];
        let kept = |load: &Load| [self.reservations.kept(&load.key, &self.loads.cost(load))];
        let kept: Vec<[Vector; 1]> = self.loads.all().iter().map(kept).collect();
        let kept = kept.iter().map(|kept| Reservation {
            places: &here,
            reserved: kept,
            reserved_per_s: 0,
            used_per_s: 0,
        });
        let mut free = Policy::Unallocated.free(&[self.capacity], kept)[0];
        let gone = self.words.held_by_others(|key| self.loads.is_known(key));
        for i in 0..RESOURCES {
            free[i] = free[i].saturating_sub(gone[i]);
        }
        free
    }

    fn held_by(&self, load: &Load) -> Sum {
        let (cost, per_s) = (self.loads.cost(load), self.words.held_per_s(&load.key));
        std::array::from_fn(|i| u128::from(cost[i]) * u128::from(per_s))
    }

    /// By how much what may be in use exceeds what is free.
    fn over(&self) -> Sum {
        let mut held: Sum = [0; RESOURCES];
        for load in self.loads.all() {
            let amounts = self.held_by(load);
            held = std::array::from_fn(|i| held[i].saturating_add(amounts[i]));
        }
        let free = self.free();
        std::array::from_fn(|i| held[i].saturating_sub(u128::from(free[i])))
    }

    fn agree(&mut self, grants: &[(usize, u64)], commands: &mut Vec<Command>) {
        for (tenant, per_s) in grants {
            let load = &self.loads.all()[*tenant];
            let grant = Grant {
                interval: self.intervals.number,
                per_s: *per_s,
                until: self.intervals.began + self.settings.lapse_us(),
                bound: self.bounds.of(&load.key, *per_s, self.wanted(load)),
            };
            commands.extend(self.grants.agree(load.key, grant));
        }
    }

    /// Requests/s above the reservation that a group whose head is here may use now.
    pub fn granted_per_s(&self, now: Micros, key: &Key) -> u64 {
        let grant = self.grants.of(key).filter(|grant| grant.until > now);
        grant.map_or(0, |grant| grant.per_s)
    }
}

/// Whether servers give their words with it.
fn is_word(what: What) -> bool {
    matches!(what, What::Promise | What::Accepted)
}
