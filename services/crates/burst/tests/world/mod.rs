//! Servers that run the exchange: clocks of their own, restarts, new epochs, and a network that loses, delays, repeats
//! and reorders.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use quorate_burst::demand::MeasuredRates;
use quorate_burst::exchange::{
    Algorithm, Exchange, ExchangeCommand, ExchangeSettings, GrantBound, GrantReason, GroupEpoch, GroupLoad,
};
use quorate_burst::fleet::{FleetShares, SharingGroup};
use quorate_burst::{Policy, ReplicaCost, Vector};
use quorate_types::control::{SharedRate, SharingReport};
use quorate_types::{GroupId, Micros, ProjectId, ServerId};
use quorate_wire::share::{Share, What};
use uuid::Uuid;

pub const MS: Micros = 1_000;
pub const INTERVAL: Micros = 500 * MS;
pub const CAPACITY: Vector = [1_000_000, 2_000_000, 500_000];

pub fn settings(algorithm: Algorithm, policy: Policy) -> ExchangeSettings {
    ExchangeSettings {
        algorithm,
        policy,
        interval_us: INTERVAL,
        iteration_us: 30 * MS,
        lapse_intervals: 3,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub chain: Vec<usize>,
    pub costs: Vec<Vector>,
    pub epoch: u64,
    pub reserved_per_s: u64,
    /// Reserved amounts at each replica, with those for appends that come alone; `None` for the same requests
    /// everywhere, of each resource.
    pub reserved: Option<Vec<Vector>>,
    pub offered_per_s: u64,
}

impl Group {
    pub fn cost_at(&self, server: usize) -> Option<Vector> {
        let position = self.chain.iter().position(|s| *s == server)?;
        Some(self.costs[position])
    }

    fn replicas(&self) -> Vec<ReplicaCost> {
        let replicas = self.chain.iter().zip(&self.costs);
        let replica = |(server, cost): (&usize, &Vector)| ReplicaCost {
            server: *server,
            cost: *cost,
        };
        replicas.map(replica).collect()
    }

    /// Reserves so many percent of the requests' cost in full batches, for each resource at each replica. With appends
    /// that may come alone, the head reserves most of its dearest resource, and another replica less or more of it.
    pub fn reserve(&mut self, percent: &[Vector]) {
        let reserved = |(cost, percent): (&Vector, &Vector)| {
            std::array::from_fn(|i| (cost[i] * self.reserved_per_s * percent[i]).div_ceil(100))
        };
        self.reserved = Some(self.costs.iter().zip(percent).map(reserved).collect());
    }

    /// The most that an owner takes on a server at this rate, in full batches or alone.
    fn taken_at(&self, server: usize, per_s: u64) -> [u128; 3] {
        let Some(position) = self.chain.iter().position(|s| *s == server) else {
            return [0; 3];
        };
        let (cost, reserved) = (self.costs[position], self.reserved()[position]);
        let (per_s, whole) = (u128::from(per_s), u128::from(self.reserved_per_s.max(1)));
        std::array::from_fn(|i| {
            let reserved = u128::from(reserved[i]);
            let alone = (reserved * per_s).div_ceil(whole);
            alone.max(u128::from(cost[i]) * per_s).min(reserved)
        })
    }

    fn reserved(&self) -> Vec<Vector> {
        let all = |cost: &Vector| cost.map(|cost| cost * self.reserved_per_s);
        match &self.reserved {
            Some(reserved) => reserved.clone(),
            None => self.costs.iter().map(all).collect(),
        }
    }

    fn config(&self) -> Self {
        Self {
            offered_per_s: 0,
            ..self.clone()
        }
    }
}

pub fn group(chain: &[usize], reserved_per_s: u64, offered_per_s: u64) -> Group {
    Group {
        chain: chain.to_vec(),
        costs: vec![[1_000, 100, 0]; chain.len()],
        epoch: 1,
        reserved_per_s,
        reserved: None,
        offered_per_s,
    }
}

/// A message between a server and the coordinator.
#[derive(Debug, Clone)]
enum Control {
    Report(usize, SharingReport),
    /// Receiver, round, interval.
    Rates(usize, u64, u64, Vec<SharedRate>),
}

/// A head's group: the server, the group, the epoch.
type Headed = (usize, usize, u64);

pub struct World {
    pub now: Micros,
    pub settings: ExchangeSettings,
    /// A group without a chain does not exist.
    pub groups: Vec<Group>,
    /// Versions of each group, with the time of each.
    versions: Vec<Vec<(Micros, Group)>>,
    /// `None`: crashed.
    pub servers: Vec<Option<Exchange>>,
    /// Delay after which each server hears of new chains.
    pub lags: Vec<Micros>,
    /// Added to the world's time by each server's clock.
    clocks: Vec<Micros>,
    /// Arrival, number, receiver, sender.
    flying: BinaryHeap<Reverse<(Micros, u64, usize, usize)>>,
    frames: BTreeMap<u64, Share>,
    /// By arrival and number.
    controls: BTreeMap<(Micros, u64), Control>,
    /// `None`: away.
    pub coordinator: Option<FleetShares>,
    /// Rounds in which the coordinator sent rates.
    pub rounds: u64,
    /// Frames between servers.
    pub sent: u64,
    sent_controls: u64,
    /// Grants in use above reservations: requests/s, and their end on the head's clock.
    pub used: BTreeMap<Headed, (u64, Micros)>,
    /// Rates of reservations that heads assume.
    assumed: BTreeMap<Headed, u64>,
    /// Owners that were noticed since their head got its last assumption.
    noticed: BTreeSet<Headed>,
    pub reasons: Vec<(usize, GrantReason)>,
    /// The bound of each group's last grant.
    pub bounds: BTreeMap<usize, Option<GrantBound>>,
    /// No reservation appears while there is burst capacity: all reservations count as used.
    pub is_reserved_always: bool,
}

/// The delivery of a frame: the delay of each copy that arrives.
pub type Fate<'a> = &'a mut dyn FnMut(&Share) -> Vec<Micros>;

impl World {
    pub fn new(servers: usize, groups: Vec<Group>, settings: ExchangeSettings) -> Self {
        let clocks: Vec<Micros> = (0..servers as u64).map(|s| s * 7_919 * MS).collect();
        let exchange = |s: usize| Some(Exchange::new(s, settings, CAPACITY, clocks[s]));
        Self {
            now: 0,
            settings,
            versions: groups.iter().map(|group| vec![(0, group.config())]).collect(),
            groups,
            servers: (0..servers).map(exchange).collect(),
            lags: vec![0; servers],
            clocks,
            flying: BinaryHeap::new(),
            frames: BTreeMap::new(),
            controls: BTreeMap::new(),
            coordinator: Some(FleetShares::default()),
            rounds: 0,
            sent: 0,
            sent_controls: 0,
            used: BTreeMap::new(),
            assumed: BTreeMap::new(),
            noticed: BTreeSet::new(),
            reasons: Vec::new(),
            bounds: BTreeMap::new(),
            is_reserved_always: settings.policy == Policy::Unallocated,
        }
    }

    pub fn local_now(&self, s: usize) -> Micros {
        self.now + self.clocks[s]
    }

    pub fn crash(&mut self, s: usize) {
        self.servers[s] = None;
        self.used.retain(|headed, _| headed.0 != s);
        self.assumed.retain(|headed, _| headed.0 != s);
        self.noticed.retain(|headed| headed.0 != s);
    }

    /// Starts a new process, whether the last one has crashed or not.
    pub fn restart(&mut self, s: usize) {
        self.crash(s);
        self.servers[s] = Some(Exchange::new(s, self.settings, CAPACITY, self.local_now(s)));
    }

    /// The server's knowledge of the group.
    fn view(&self, s: usize, g: usize) -> Option<&Group> {
        let mut versions = self.versions[g].iter().rev();
        let version = versions.find(|version| version.0 + self.lags[s] <= self.now)?;
        Some(&version.1).filter(|group| !group.chain.is_empty())
    }

    /// The group as its newest head knows it.
    fn head(&self, g: usize) -> Option<(Headed, &Group)> {
        let heads = (0..self.servers.len()).filter_map(|s| {
            let view = self.view(s, g).filter(|view| view.chain[0] == s)?;
            Some(((s, g, view.epoch), view))
        });
        heads.max_by_key(|(headed, _)| headed.2)
    }

    pub fn granted(&self, g: usize) -> u64 {
        let group = &self.groups[g];
        let head = group.chain.first();
        head.map_or(0, |head| self.live(&(*head, g, group.epoch)))
    }

    fn live(&self, headed: &Headed) -> u64 {
        let used = self.used.get(headed);
        let used = used.filter(|used| used.1 > self.local_now(headed.0));
        used.map_or(0, |used| used.0)
    }

    /// The rate of the reservation that the head assumes; 0 until it has an assumption.
    pub fn assumed(&self, g: usize) -> u64 {
        let head = self.head(g).and_then(|(headed, _)| self.assumed.get(&headed));
        head.copied().unwrap_or(0)
    }

    fn loads(&self, s: usize) -> Vec<GroupLoad> {
        let load = |g: usize| {
            let view = self.view(s, g)?;
            view.cost_at(s)?;
            let offered_per_s = self.groups[g].offered_per_s;
            let may = view.reserved_per_s + self.live(&(s, g, view.epoch));
            Some(GroupLoad {
                key: key(g, view.epoch),
                replicas: view.replicas(),
                reserved_per_s: view.reserved_per_s,
                reserved: view.reserved(),
                measured: MeasuredRates {
                    accepted_per_s: offered_per_s.min(may),
                    offered_per_s,
                    beyond_per_s: offered_per_s.saturating_sub(view.reserved_per_s),
                    waiting_per_s: offered_per_s.saturating_sub(may),
                    was_held_back: offered_per_s > may,
                    extra_max_per_s: None,
                },
            })
        };
        (0..self.groups.len()).filter_map(load).collect()
    }

    fn carry_out(&mut self, s: usize, commands: Vec<ExchangeCommand>, fate: Fate) {
        for command in commands {
            match command {
                ExchangeCommand::Send { to, share } => {
                    for delay in fate(&share) {
                        self.sent += 1;
                        self.flying.push(Reverse((self.now + delay, self.sent, to, s)));
                        self.frames.insert(self.sent, share.clone());
                    }
                }
                ExchangeCommand::Grant(granted) => {
                    let g = group_of(&granted.key);
                    self.reasons.push((g, granted.reason));
                    self.bounds.insert(g, granted.bound);
                    let used = (granted.per_s, granted.until);
                    self.used.insert((s, g, granted.key.1), used);
                }
                ExchangeCommand::Assume { key, per_s } => {
                    let headed = (s, group_of(&key), key.1);
                    self.noticed.remove(&headed);
                    self.assumed.insert(headed, per_s.unwrap_or(u64::MAX));
                }
                ExchangeCommand::Report(report) => self.send_control(Control::Report(s, report), fate),
                ExchangeCommand::Resume => {}
            }
        }
    }

    fn send_control(&mut self, control: Control, fate: Fate) {
        for delay in fate(&nothing()) {
            self.sent_controls += 1;
            self.controls
                .insert((self.now + delay, self.sent_controls), control.clone());
        }
    }

    fn hear_controls(&mut self, fate: Fate) {
        while let Some(((at, number), _)) = self.controls.first_key_value()
            && *at <= self.now
        {
            let control = self.controls.remove(&(*at, *number)).unwrap();
            match control {
                Control::Report(s, report) => {
                    if let Some(coordinator) = &mut self.coordinator {
                        let behind = coordinator.report(self.now, ServerId(s as u32), report);
                        let (round, interval) = coordinator.now_at();
                        for server in behind {
                            let pull = Control::Rates(server.0 as usize, round, interval, Vec::new());
                            self.send_control(pull, fate);
                        }
                    }
                }
                Control::Rates(s, round, interval, rates) => {
                    let now = self.local_now(s);
                    if let Some(server) = &mut self.servers[s] {
                        server.tell(now, round, interval, &rates);
                    }
                }
            }
        }
    }

    /// The coordinator looks groups up, and computes a round if it is time.
    fn coordinate(&mut self, fate: Fate) {
        let Some(coordinator) = &mut self.coordinator else {
            return;
        };
        for key in coordinator.take_unknown() {
            let group = &self.groups[group_of(&key)];
            let is_there = group.epoch == key.1 && !group.chain.is_empty();
            let known = || SharingGroup {
                project: ProjectId(Uuid::nil()),
                replicas: group.replicas(),
            };
            coordinator.know(key, is_there.then(known));
        }
        if coordinator.wake_at(self.now).is_some_and(|at| at <= self.now) {
            let round = coordinator.decide(self.now);
            self.rounds += 1;
            for (s, rates) in round.rates {
                self.send_control(Control::Rates(s, round.number, round.interval, rates), fate);
            }
        }
    }

    /// One step of a few milliseconds: frames arrive, servers run what is due, returned owners are noticed.
    pub fn advance(&mut self, by: Micros, fate: Fate) {
        self.now += by;
        self.versions.resize_with(self.groups.len(), Vec::new);
        for (g, group) in self.groups.iter().enumerate() {
            let config = group.config();
            if self.versions[g].last().is_none_or(|last| last.1 != config) {
                self.versions[g].push((self.now, config));
            }
        }
        while let Some(Reverse((at, number, to, from))) = self.flying.peek().copied()
            && at <= self.now
        {
            self.flying.pop();
            let share = self.frames.remove(&number).unwrap();
            let now = self.local_now(to);
            if let Some(server) = &mut self.servers[to] {
                let commands = server.hear(now, from, share);
                self.carry_out(to, commands, fate);
            }
        }
        self.hear_controls(fate);
        self.coordinate(fate);
        for s in 0..self.servers.len() {
            let now = self.local_now(s);
            let loads = self.loads(s);
            let Some(server) = &mut self.servers[s] else {
                continue;
            };
            let commands = if server.is_due(now) {
                server.begin(now, loads)
            } else {
                server.step(now)
            };
            self.carry_out(s, commands, fate);
        }
        self.notice_owners(fate);
    }

    fn notice_owners(&mut self, fate: Fate) {
        for g in 0..self.groups.len() {
            let Some((headed, view)) = self.head(g) else {
                continue;
            };
            let uses = self.groups[g].offered_per_s.min(view.reserved_per_s);
            let now = self.local_now(headed.0);
            if uses > self.assumed(g)
                && let Some(server) = &mut self.servers[headed.0]
                && self.noticed.insert(headed)
            {
                let commands = server.returned(now, &[key(g, headed.2)]);
                self.carry_out(headed.0, commands, fate);
            }
        }
    }

    pub fn run(&mut self, time: Micros) {
        let end = self.now + time;
        while self.now < end {
            self.advance(5 * MS, &mut |_| vec![MS]);
        }
    }

    /// The rate of its reservation that a group's owner uses without being noticed.
    fn unnoticed(&self, g: usize, view: &Group) -> u64 {
        if self.is_reserved_always {
            return view.reserved_per_s;
        }
        let offered_per_s = self.groups[g].offered_per_s;
        offered_per_s.min(view.reserved_per_s).min(self.assumed(g))
    }

    /// Use of reservations by owners, and of grants by heads, of each epoch that may still have one.
    pub fn used_on(&self, server: usize) -> [u128; 3] {
        let mut used = [0u128; 3];
        for g in 0..self.groups.len() {
            if let Some((_, view)) = self.head(g) {
                let taken = view.taken_at(server, self.unnoticed(g, view));
                used = std::array::from_fn(|i| used[i] + taken[i]);
            }
        }
        for headed in self.used.keys() {
            let mut versions = self.versions[headed.1].iter().rev();
            let group = versions.find(|version| version.1.epoch == headed.2 && !version.1.chain.is_empty());
            let cost = group.and_then(|version| version.1.cost_at(server));
            add(&mut used, cost, self.live(headed));
        }
        used
    }

    pub fn is_feasible(&self) -> bool {
        (0..self.servers.len()).all(|s| {
            let used = self.used_on(s);
            (0..3).all(|i| used[i] <= u128::from(CAPACITY[i]))
        })
    }

    /// All reservations of any time since `since` fit together.
    pub fn is_admitted(&self, since: Micros) -> bool {
        let mut reserved = vec![[0u128; 3]; self.servers.len()];
        for (g, versions) in self.versions.iter().enumerate() {
            let first = versions
                .iter()
                .rposition(|version| version.0 <= since)
                .unwrap_or(0);
            let mut most: BTreeMap<(&[usize], &[Vector]), Vec<Vector>> = BTreeMap::new();
            let versions = versions[first..].iter().map(|version| &version.1);
            for group in versions.chain([&self.groups[g]]) {
                let all = group.reserved();
                let most = most.entry((&group.chain, &group.costs)).or_insert(all.clone());
                for (most, one) in most.iter_mut().zip(all) {
                    *most = std::array::from_fn(|i| most[i].max(one[i]));
                }
            }
            for ((chain, _), most) in most {
                for (s, most) in chain.iter().zip(most) {
                    add(&mut reserved[*s], Some(most), 1);
                }
            }
        }
        let fits = |reserved: &[u128; 3]| (0..3).all(|i| reserved[i] <= u128::from(CAPACITY[i]));
        reserved.iter().all(fits)
    }
}

/// A frame whose delivery stands for that of a message to or from the coordinator.
fn nothing() -> Share {
    Share {
        interval: 0,
        what: What::Using,
        free: [0; 3],
        entries: Vec::new(),
        aggregates: Vec::new(),
    }
}

fn key(g: usize, epoch: u64) -> GroupEpoch {
    (GroupId(Uuid::from_u128(g as u128 + 1)), epoch)
}

fn group_of(key: &GroupEpoch) -> usize {
    key.0.0.as_u128() as usize - 1
}

fn add(used: &mut [u128; 3], cost: Option<Vector>, per_s: u64) {
    for i in 0..3 {
        used[i] += u128::from(cost.map_or(0, |cost| cost[i])) * u128::from(per_s);
    }
}
