//! One server's part in sharing what is free, interval after interval: (state, event, now) → (state, commands).
//!
//! Intervals have numbers and no common clock: whoever hears of a later one than its own begins that at once, so
//! servers that hear one another keep step with the fastest. In each interval the rounds of [`crate::rounds`] run,
//! a step each `round_us`; messages of other intervals are dropped.
//!
//! What is used is feasible at any moment, over intervals too: a server's words ([`crate::words`]) fit it together
//! with those that it gave before and that may still be in use; a process that has just started gives none until those
//! of its predecessor are over. Whoever hears nothing keeps its reservation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quorate_types::{Epoch, GroupId, Micros};
use quorate_wire::share::{Share, What};

use crate::all::AllDrf;
use crate::demand::{Demand, Measured};
use crate::head::HeadDrf;
use crate::level::{BOUND_ROUNDS, LevelDrf};
use crate::policy::{Policy, Reservation};
use crate::problem::{NOTHING, Place, RESOURCES, Vector};
use crate::rounds::{Hosted, Local, Message, Server};
use crate::tell::{self, Sheets};
use crate::words::Words;

/// A group in one epoch: with another chain it is another tenant.
pub type Key = (GroupId, Epoch);

/// Frames that wait for their round; beyond, they are lost.
const INBOX_MAX: usize = 4_096;
/// A number this far ahead is no interval.
const AHEAD_MAX: u64 = 1 << 40;

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
    /// The chain, head first, by server.
    pub places: Vec<Place>,
    pub reserved_per_s: u64,
    pub measured: Measured,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Send {
        to: usize,
        share: Share,
    },
    Grant(Granted),
    /// Of its reservation the group is assumed to use so many requests/s; the rest may be lent. `None`: all of it.
    Assume {
        key: Key,
        per_s: Option<u64>,
    },
}

/// What a group whose head is here may use above its reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    pub key: Key,
    pub per_s: u64,
    pub until: Micros,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// All its servers gave their word.
    Agreed,
    /// It wants no more.
    Unwanted,
    /// Not renewed in time: servers did not answer.
    Lapsed,
    /// An owner on one of its servers is back.
    Recalled,
    /// Another epoch, or another head.
    Moved,
}

#[derive(Debug, Clone, Copy)]
struct Grant {
    interval: u64,
    per_s: u64,
    until: Micros,
}

pub struct Exchange {
    me: usize,
    settings: Settings,
    capacity: Vector,
    /// Until then words of this server's previous process may be in use.
    silent_until: Micros,
    interval: u64,
    began: Micros,
    next: (u64, Micros),
    round: u32,
    server: Option<Box<dyn Server>>,
    loads: Vec<Load>,
    numbers: HashMap<Key, usize>,
    demands: BTreeMap<Key, Demand>,
    inbox: Vec<(usize, Share)>,
    /// What was free when the interval began.
    free: Vector,
    words: Words,
    grants: BTreeMap<Key, Grant>,
    /// Recalled in this interval: what was promised in it is void.
    recalled: BTreeSet<Key>,
    /// Servers that were told in this interval that they are behind.
    pulled: BTreeSet<usize>,
    /// More was promised than is free now; since the last interval.
    is_over: bool,
}

impl Exchange {
    pub fn new(me: usize, settings: Settings, capacity: Vector, now: Micros) -> Self {
        Self {
            me,
            settings,
            capacity,
            silent_until: now + settings.lapse_us(),
            interval: 0,
            began: now,
            next: (1, now),
            round: 0,
            server: None,
            loads: Vec::new(),
            numbers: HashMap::new(),
            demands: BTreeMap::new(),
            inbox: Vec::new(),
            free: NOTHING,
            words: Words::default(),
            grants: BTreeMap::new(),
            recalled: BTreeSet::new(),
            pulled: BTreeSet::new(),
            is_over: false,
        }
    }

    /// From the next interval on.
    pub fn set_capacity(&mut self, capacity: Vector) {
        self.capacity = capacity;
    }

    /// Whether an interval is to begin: [`Exchange::begin`] wants to know what groups did.
    pub fn is_due(&self, now: Micros) -> bool {
        now >= self.next.1
    }

    /// When something is to be done, if nothing comes.
    pub fn wake_at(&self) -> Micros {
        let step = match &self.server {
            Some(server) if self.round < server.rounds() => self.step_at(),
            _ => Micros::MAX,
        };
        step.min(self.next.1)
    }

    fn step_at(&self) -> Micros {
        self.began + u64::from(self.round) * self.settings.round_us
    }

    pub fn begin(&mut self, now: Micros, loads: Vec<Load>) -> Vec<Command> {
        self.interval = self.next.0;
        self.next = (self.interval + 1, now + self.settings.interval_us);
        (self.began, self.round) = (now, 0);
        self.recalled.clear();
        self.pulled.clear();
        self.server = None;
        self.loads = loads;
        self.numbers = (self.loads.iter().enumerate())
            .map(|(t, load)| (load.key, t))
            .collect();
        let mut commands = self.note_demand();
        self.end_grants(now, &mut commands);
        self.tell_using(&mut commands);
        for (from, share) in std::mem::take(&mut self.inbox) {
            self.take_in(from, share);
        }
        self.words.expire(now);
        let local = self.local();
        self.free = local.free;
        if now >= self.silent_until {
            self.server = Some(match self.settings.algorithm {
                Algorithm::Head => Box::new(HeadDrf::new(local)),
                Algorithm::All => Box::new(AllDrf::new(local)),
                Algorithm::Level => Box::new(LevelDrf::new(local, BOUND_ROUNDS)),
            });
        }
        commands.append(&mut self.step(now));
        commands
    }

    /// Every step whose time has come.
    pub fn step(&mut self, now: Micros) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(server) = &mut self.server
            && self.round < server.rounds()
            && now >= self.began + u64::from(self.round) * self.settings.round_us
        {
            let theirs = |tenant: usize, from: usize| {
                self.loads[tenant].places.iter().any(|place| place.server == from)
            };
            let messages: Vec<Message> = (self.inbox.drain(..))
                .filter_map(|(from, share)| {
                    tell::to_message(from, self.me, &share, &self.numbers, |t| theirs(t, from))
                })
                .collect();
            // Words are given in the last round but one; then their heads hear them.
            let gives = self.round + 2 == server.rounds();
            if gives {
                server.note_held(&|tenant| self.words.held_per_s(&self.loads[tenant].key));
            }
            let said = server.step(self.round, &messages);
            let names: Vec<Key> = self.loads.iter().map(|load| load.key).collect();
            let given = server.given().to_vec();
            let is_last = self.round + 1 == server.rounds();
            self.round += 1;
            let until = now + self.settings.lapse_us();
            let said: Vec<(usize, Share)> = said
                .iter()
                .flat_map(|message| tell::to_shares(message, &names))
                .collect();
            if gives {
                self.mind_over(now, &mut commands);
                for (tenant, per_s) in given {
                    let cost = self.cost_of(&self.loads[tenant]);
                    self.words.give(names[tenant], self.interval, per_s, cost, until);
                }
            }
            commands.extend(said.into_iter().map(|(to, share)| Command::Send { to, share }));
            if is_last {
                self.agree(&mut commands);
            }
        }
        commands
    }

    pub fn hear(&mut self, now: Micros, from: usize, share: Share) -> Vec<Command> {
        let mut commands = Vec::new();
        match share.what {
            What::Recall => {
                for one in &share.entries {
                    self.lose(now, (one.group_id, one.epoch), &mut commands);
                }
            }
            What::Returned => {
                for one in &share.entries {
                    let key = (one.group_id, one.epoch);
                    let is_heads = |t: &usize| self.loads[*t].places[0].server == from;
                    if self.numbers.get(&key).is_some_and(is_heads) {
                        self.give_back(now, key, &mut commands);
                    }
                }
            }
            _ if share.interval < self.interval => self.pull(from, &mut commands),
            _ => self.keep(now, from, share),
        }
        commands
    }

    /// Whoever is behind may hear of no later interval otherwise: it may be that this server has nothing to say to it.
    fn pull(&mut self, from: usize, commands: &mut Vec<Command>) {
        if self.pulled.insert(from) {
            let share = Share {
                interval: self.interval,
                what: What::Using,
                free: NOTHING,
                entries: Vec::new(),
            };
            commands.push(Command::Send { to: from, share });
        }
    }

    fn keep(&mut self, now: Micros, from: usize, share: Share) {
        let ahead = share.interval.saturating_sub(self.interval);
        if ahead > 0 && ahead < AHEAD_MAX && share.interval >= self.next.0 {
            self.next = (share.interval, self.next.1.min(now));
        }
        if share.interval == self.interval {
            self.take_in(from, share);
        } else if ahead > 0 && ahead < AHEAD_MAX && self.inbox.len() < INBOX_MAX {
            self.inbox.push((from, share));
        }
    }

    /// Of this interval; others are dropped.
    fn take_in(&mut self, from: usize, share: Share) {
        if share.interval != self.interval {
            return;
        }
        if share.what != What::Using {
            if self.inbox.len() < INBOX_MAX {
                self.inbox.push((from, share));
            }
            return;
        }
        for one in &share.entries {
            let key = (one.group_id, one.epoch);
            let is_heads = |t: &usize| self.loads[*t].places[0].server == from;
            if self.numbers.get(&key).is_some_and(is_heads) {
                self.words.in_use(key, share.interval, one.number);
            }
        }
    }

    /// A group whose head is here uses more of its reservation than was assumed.
    pub fn returned(&mut self, now: Micros, key: Key) -> Vec<Command> {
        let mut commands = Vec::new();
        let Some(load) = self.numbers.get(&key).map(|t| &self.loads[*t]) else {
            return commands;
        };
        let mut sheets = Sheets::default();
        for place in load.places.iter().filter(|place| place.server != self.me) {
            sheets.tell(place.server, tell::entry(key, 0.0, None));
        }
        self.send(sheets, What::Returned, &mut commands);
        self.give_back(now, key, &mut commands);
        commands
    }

    /// All that is lent here ends, and nothing is lent before the next interval.
    fn give_back(&mut self, now: Micros, key: Key, commands: &mut Vec<Command>) {
        if self.settings.policy == Policy::Unallocated {
            return;
        }
        if let Some(demand) = self.demands.get_mut(&key) {
            demand.forget();
        }
        self.server = None;
        self.recall(now, commands);
    }

    fn recall(&mut self, now: Micros, commands: &mut Vec<Command>) {
        let mut sheets = Sheets::default();
        for key in self.words.keys().copied().collect::<Vec<_>>() {
            match self.numbers.get(&key).map(|t| self.loads[*t].places[0].server) {
                Some(head) if head == self.me => self.lose(now, key, commands),
                Some(head) => sheets.tell(head, tell::entry(key, 0.0, None)),
                // Of an earlier epoch: it ends by itself.
                None => {}
            }
        }
        self.send(sheets, What::Recall, commands);
    }

    fn lose(&mut self, now: Micros, key: Key, commands: &mut Vec<Command>) {
        self.recalled.insert(key);
        if self.grants.remove(&key).is_some() {
            commands.push(ended(key, now, Why::Recalled));
        }
    }

    fn send(&self, sheets: Sheets, what: What, commands: &mut Vec<Command>) {
        let shares = sheets.shares(self.interval, what);
        commands.extend(shares.into_iter().map(|(to, share)| Command::Send { to, share }));
    }

    fn is_head_of(&self, load: &Load) -> bool {
        load.places[0].server == self.me
    }

    fn note_demand(&mut self) -> Vec<Command> {
        self.demands.retain(|key, _| self.numbers.contains_key(key));
        let mut commands = Vec::new();
        for load in &self.loads {
            let demand = self.demands.entry(load.key).or_default();
            demand.observe(load.measured);
            if self.settings.policy == Policy::Idle && load.places[0].server == self.me {
                let assumed = demand.assumed_per_s(load.reserved_per_s);
                let per_s = (assumed < load.reserved_per_s).then_some(assumed);
                commands.push(Command::Assume { key: load.key, per_s });
            }
        }
        commands
    }

    fn wanted(&self, load: &Load) -> u64 {
        self.demands[&load.key].extra_per_s(load.reserved_per_s)
    }

    /// Grants that have run out, are not wanted any more, or whose head is elsewhere now.
    fn end_grants(&mut self, now: Micros, commands: &mut Vec<Command>) {
        let mut grants = std::mem::take(&mut self.grants);
        grants.retain(|key, grant| {
            let load = self.numbers.get(key).map(|t| &self.loads[*t]);
            let why = match load {
                Some(load) if self.is_head_of(load) => {
                    if grant.until <= now {
                        Why::Lapsed
                    } else if self.wanted(load) == 0 {
                        Why::Unwanted
                    } else {
                        return true;
                    }
                }
                _ => Why::Moved,
            };
            commands.push(ended(*key, now, why));
            false
        });
        self.grants = grants;
    }

    /// Which grants are in use: words for others are over.
    fn tell_using(&mut self, commands: &mut Vec<Command>) {
        let mut sheets = Sheets::default();
        for load in self.loads.iter().filter(|load| load.places[0].server == self.me) {
            let using = self.grants.get(&load.key).map(|grant| grant.interval);
            self.words.in_use(load.key, self.interval, using);
            if using.is_none() && self.wanted(load) == 0 && self.words.held_per_s(&load.key) == 0 {
                continue; // nobody gave a word for it
            }
            for place in &load.places[1..] {
                sheets.tell(place.server, tell::entry(load.key, 0.0, using));
            }
        }
        self.send(sheets, What::Using, commands);
    }

    fn local(&self) -> Local {
        let hosted = |(tenant, load): (usize, &Load)| {
            let cost = self.cost_of(load);
            Hosted {
                tenant,
                places: load.places.clone(),
                cost,
                extra_per_s: self.is_head_of(load).then(|| self.wanted(load)),
                held_per_s: self.words.held_per_s(&load.key),
            }
        };
        Local {
            server: self.me,
            interval: self.interval,
            free: self.free(),
            hosted: self.loads.iter().enumerate().map(hosted).collect(),
        }
    }

    fn cost_of(&self, load: &Load) -> Vector {
        let here = load.places.iter().find(|place| place.server == self.me);
        here.map_or(NOTHING, |place| place.cost)
    }

    fn free(&self) -> Vector {
        let here: Vec<[Place; 1]> = (self.loads.iter())
            .map(|load| {
                [Place {
                    server: 0,
                    cost: self.cost_of(load),
                }]
            })
            .collect();
        let reservations = self.loads.iter().zip(&here).map(|(load, place)| Reservation {
            places: place,
            reserved_per_s: load.reserved_per_s,
            used_per_s: self.demands[&load.key].assumed_per_s(load.reserved_per_s),
        });
        let mut free = self.settings.policy.free(&[self.capacity], reservations)[0];
        let gone = self.words.held_by_others(|key| self.numbers.contains_key(key));
        for i in 0..RESOURCES {
            free[i] = free[i].saturating_sub(gone[i]);
        }
        free
    }

    /// Less is free than was promised: heads use less from the end of this interval on. If they do not, as they
    /// did not hear of it, it is called back.
    fn mind_over(&mut self, now: Micros, commands: &mut Vec<Command>) {
        let mut held = [0u128; RESOURCES];
        for load in &self.loads {
            let (cost, per_s) = (self.cost_of(load), self.words.held_per_s(&load.key));
            for i in 0..RESOURCES {
                held[i] += u128::from(cost[i]) * u128::from(per_s);
            }
        }
        let is_over = (0..RESOURCES).any(|i| held[i] > u128::from(self.free[i]));
        if is_over && self.is_over {
            self.recall(now, commands);
        }
        self.is_over = is_over;
    }

    fn agree(&mut self, commands: &mut Vec<Command>) {
        let Some(server) = &self.server else { return };
        let until = self.began + self.settings.lapse_us();
        for (tenant, per_s) in server.grants() {
            let key = self.loads[tenant].key;
            if self.recalled.contains(&key) {
                continue;
            }
            if per_s == 0 {
                if self.grants.remove(&key).is_some() {
                    commands.push(ended(key, self.began, Why::Agreed));
                }
                continue;
            }
            let interval = self.interval;
            self.grants.insert(
                key,
                Grant {
                    interval,
                    per_s,
                    until,
                },
            );
            commands.push(Command::Grant(Granted {
                key,
                per_s,
                until,
                why: Why::Agreed,
            }));
        }
    }

    /// Requests/s above the reservation that a group whose head is here may use now.
    pub fn granted_per_s(&self, now: Micros, key: &Key) -> u64 {
        let grant = self.grants.get(key).filter(|grant| grant.until > now);
        grant.map_or(0, |grant| grant.per_s)
    }
}

fn ended(key: Key, now: Micros, why: Why) -> Command {
    Command::Grant(Granted {
        key,
        per_s: 0,
        until: now,
        why,
    })
}
