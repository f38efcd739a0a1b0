//! The exchange as servers run it: with clocks of their own, restarts, new epochs, and a network that loses, delays
//! and reorders.

use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;
use quorate_controller::demand::Measured;
use quorate_controller::exchange::{Algorithm, Command, Exchange, Key, Load, Settings, Why};
use quorate_controller::{Place, Policy, Vector};
use quorate_types::{GroupId, Micros};
use quorate_wire::share::{Share, What};
use uuid::Uuid;

const MS: Micros = 1_000;
const INTERVAL: Micros = 500 * MS;
const CAPACITY: Vector = [1_000_000, 2_000_000, 500_000];

fn settings(algorithm: Algorithm, policy: Policy) -> Settings {
    Settings {
        algorithm,
        policy,
        interval_us: INTERVAL,
        round_us: 30 * MS,
        lapse_intervals: 3,
    }
}

#[derive(Debug, Clone)]
struct Group {
    chain: Vec<usize>,
    costs: Vec<Vector>,
    epoch: u64,
    reserved_per_s: u64,
    offered_per_s: u64,
}

impl Group {
    fn cost_at(&self, server: usize) -> Option<Vector> {
        let position = self.chain.iter().position(|s| *s == server)?;
        Some(self.costs[position])
    }
}

/// A frame under way: (arrives, number), to, from.
type Flying = std::cmp::Reverse<(Micros, u64, usize, usize)>;

struct World {
    now: Micros,
    settings: Settings,
    groups: Vec<Group>,
    servers: Vec<Exchange>,
    /// Added to the world's time by each server's clock.
    clocks: Vec<Micros>,
    flying: BinaryHeap<Flying>,
    frames: BTreeMap<u64, Share>,
    sent: u64,
    /// What heads use now: (server that is the head, group) → requests/s, until (on the head's clock), key's epoch.
    used: BTreeMap<(usize, usize, u64), (u64, Micros)>,
    whys: Vec<(usize, Why)>,
}

impl World {
    fn new(servers: usize, groups: Vec<Group>, settings: Settings) -> Self {
        let clocks: Vec<Micros> = (0..servers as u64).map(|s| s * 7_919 * MS).collect();
        let exchange = |s: usize| Exchange::new(s, settings, CAPACITY, clocks[s]);
        Self {
            now: 0,
            settings,
            groups,
            servers: (0..servers).map(exchange).collect(),
            clocks,
            flying: BinaryHeap::new(),
            frames: BTreeMap::new(),
            sent: 0,
            used: BTreeMap::new(),
            whys: Vec::new(),
        }
    }

    fn key(&self, g: usize) -> Key {
        (GroupId(Uuid::from_u128(g as u128 + 1)), self.groups[g].epoch)
    }

    fn local_now(&self, s: usize) -> Micros {
        self.now + self.clocks[s]
    }

    fn granted(&self, g: usize) -> u64 {
        let key = (self.groups[g].chain[0], g, self.groups[g].epoch);
        self.live(&key)
    }

    fn live(&self, key: &(usize, usize, u64)) -> u64 {
        let used = self.used.get(key).filter(|used| used.1 > self.local_now(key.0));
        used.map_or(0, |used| used.0)
    }

    fn loads(&self, s: usize) -> Vec<Load> {
        let load = |(g, group): (usize, &Group)| {
            group.cost_at(s)?;
            let may = group.reserved_per_s + self.granted(g);
            let places = group.chain.iter().zip(&group.costs);
            Some(Load {
                key: self.key(g),
                places: places
                    .map(|(server, cost)| Place {
                        server: *server,
                        cost: *cost,
                    })
                    .collect(),
                reserved_per_s: group.reserved_per_s,
                measured: Measured {
                    accepted_per_s: group.offered_per_s.min(may),
                    offered_per_s: group.offered_per_s,
                    was_held_back: group.offered_per_s > may,
                },
            })
        };
        self.groups.iter().enumerate().filter_map(load).collect()
    }

    fn carry_out(
        &mut self,
        s: usize,
        commands: Vec<Command>,
        fate: &mut impl FnMut(&Share) -> Option<Micros>,
    ) {
        for command in commands {
            match command {
                Command::Send { to, share } => {
                    if let Some(delay) = fate(&share) {
                        self.sent += 1;
                        let at = std::cmp::Reverse((self.now + delay, self.sent, to, s));
                        self.flying.push(at);
                        self.frames.insert(self.sent, share);
                    }
                }
                Command::Grant(granted) => {
                    let g = granted.key.0.0.as_u128() as usize - 1;
                    self.whys.push((g, granted.why));
                    self.used
                        .insert((s, g, granted.key.1), (granted.per_s, granted.until));
                }
                Command::Assume { .. } => {}
            }
        }
    }

    /// One step of a few milliseconds: frames arrive, servers do what is due.
    fn advance(&mut self, by: Micros, fate: &mut impl FnMut(&Share) -> Option<Micros>) {
        self.now += by;
        while let Some(std::cmp::Reverse((at, number, to, from))) = self.flying.peek().copied()
            && at <= self.now
        {
            self.flying.pop();
            let share = self.frames.remove(&number).unwrap();
            let now = self.local_now(to);
            let commands = self.servers[to].hear(now, from, share);
            self.carry_out(to, commands, fate);
        }
        for s in 0..self.servers.len() {
            let now = self.local_now(s);
            let commands = if self.servers[s].is_due(now) {
                let loads = self.loads(s);
                self.servers[s].begin(now, loads)
            } else {
                self.servers[s].step(now)
            };
            self.carry_out(s, commands, fate);
        }
    }

    fn run(&mut self, time: Micros) {
        let end = self.now + time;
        while self.now < end {
            self.advance(5 * MS, &mut |_| Some(MS));
        }
    }

    /// Reservations and what heads use, of each epoch that may still have one, on each server.
    fn used_on(&self, server: usize) -> [u128; 3] {
        let mut used = [0u128; 3];
        for group in &self.groups {
            add(&mut used, group.cost_at(server), group.reserved_per_s);
        }
        for key in self.used.keys() {
            add(&mut used, self.groups[key.1].cost_at(server), self.live(key));
        }
        used
    }

    fn is_feasible(&self) -> bool {
        (0..self.servers.len()).all(|s| {
            let used = self.used_on(s);
            (0..3).all(|i| used[i] <= u128::from(CAPACITY[i]))
        })
    }
}

fn add(used: &mut [u128; 3], cost: Option<Vector>, per_s: u64) {
    for i in 0..3 {
        used[i] += u128::from(cost.map_or(0, |cost| cost[i])) * u128::from(per_s);
    }
}

fn group(chain: &[usize], reserved_per_s: u64, offered_per_s: u64) -> Group {
    Group {
        chain: chain.to_vec(),
        costs: vec![[1_000, 100, 0]; chain.len()],
        epoch: 1,
        reserved_per_s,
        offered_per_s,
    }
}

fn level(policy: Policy) -> Settings {
    settings(Algorithm::Level, policy)
}

#[test]
fn what_nobody_reserved_goes_to_those_who_want_it_evenly() {
    for algorithm in [Algorithm::Level, Algorithm::All] {
        // Capacity 1 000 requests/s a server; 400 reserved on each.
        let groups = vec![group(&[0, 1, 2], 200, 5_000), group(&[1, 2, 0], 200, 5_000)];
        let mut world = World::new(3, groups, settings(algorithm, Policy::Unallocated));
        world.run(10 * INTERVAL);
        for g in 0..2 {
            let granted = world.granted(g);
            assert!((290..=300).contains(&granted), "{algorithm:?}: {granted} of 300");
        }
    }
}

#[test]
fn head_drf_gives_proposals_whole() {
    let groups = vec![group(&[0, 1, 2], 200, 450)];
    let mut world = World::new(3, groups, settings(Algorithm::Head, Policy::Unallocated));
    world.run(10 * INTERVAL);
    assert!(world.granted(0) >= 250, "{}", world.granted(0));
}

#[test]
fn idle_reservations_are_lent_and_come_back_at_once() {
    let groups = vec![group(&[0, 1, 2], 450, 5_000), group(&[1, 2, 0], 500, 0)];
    let mut world = World::new(3, groups, level(Policy::Idle));
    world.run(12 * INTERVAL);
    let lent = world.granted(0);
    assert!(
        lent > 400,
        "{lent}: its own 50 unallocated, and most of the idle 500"
    );
    // The owner is back: its head tells the others, they tell the borrower's.
    world.groups[1].offered_per_s = 500;
    let key = world.key(1);
    let now = world.local_now(1);
    let commands = world.servers[1].returned(now, key);
    world.carry_out(1, commands, &mut |_| Some(MS));
    world.run(15 * MS);
    assert_eq!(world.granted(0), 0, "taken back within two messages");
    assert_eq!(world.whys.last(), Some(&(0, Why::Recalled)));
    world.run(4 * INTERVAL);
    assert!(
        world.is_feasible(),
        "what is granted again leaves the owner its own"
    );
    assert!(
        world.granted(0) >= 40,
        "the unallocated is lent again: {}",
        world.granted(0)
    );
}

#[test]
fn silence_ends_what_was_lent() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(10 * INTERVAL);
    assert!(world.granted(0) > 700);
    for _ in 0..400 {
        world.advance(5 * MS, &mut |_| None);
    }
    assert_eq!(world.granted(0), 0, "after three intervals nobody was heard");
    world.run(6 * INTERVAL);
    assert!(
        world.granted(0) > 700,
        "and again when they are: {}",
        world.granted(0)
    );
}

#[test]
fn another_epoch_begins_with_the_reservation() {
    let groups = vec![group(&[0, 1, 2], 200, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(10 * INTERVAL);
    world.groups[0].epoch = 2;
    assert_eq!(world.granted(0), 0);
    world.run(INTERVAL + 10 * MS);
    assert!(world.whys.contains(&(0, Why::Moved)), "{:?}", world.whys);
    world.run(6 * INTERVAL);
    assert!(world.granted(0) > 700, "{}", world.granted(0));
}

#[test]
fn servers_that_start_late_fall_into_step() {
    let groups = vec![group(&[2, 0], 100, 5_000)];
    let mut world = World::new(3, groups, level(Policy::Unallocated));
    world.run(40 * INTERVAL);
    world.servers[2] = Exchange::new(2, world.settings, CAPACITY, world.local_now(2));
    world.used.clear();
    world.run(12 * INTERVAL);
    assert!(world.granted(0) > 800, "{}", world.granted(0));
}

#[test]
fn frames_about_what_is_not_here_change_nothing() {
    let mut world = World::new(2, vec![group(&[0, 1], 100, 5_000)], level(Policy::Idle));
    world.run(10 * INTERVAL);
    let before = world.granted(0);
    let entry = |g: u128| quorate_wire::share::ShareEntry {
        group_id: GroupId(Uuid::from_u128(g)),
        epoch: 1,
        real: 0.0,
        number: Some(3),
    };
    for what in [
        What::Shares,
        What::AtMost,
        What::Promise,
        What::Using,
        What::Returned,
        What::Free,
    ] {
        for interval in [0, 7, u64::MAX] {
            let share = Share {
                interval,
                what,
                free: [0; 3],
                entries: vec![entry(99)],
            };
            let now = world.local_now(0);
            world.servers[0].hear(now, 1, share);
        }
    }
    world.run(2 * INTERVAL);
    assert!(world.granted(0) >= before, "{} of {before}", world.granted(0));
}

fn groups(servers: usize) -> impl Strategy<Value = Vec<Group>> {
    let cost = (1u64..2_000, 0u64..3_000, 0u64..900).prop_map(|(a, b, c)| [a, b, c]);
    let group = (
        Just((0..servers).collect::<Vec<usize>>()).prop_shuffle(),
        1usize..4,
        proptest::collection::vec(cost, 3),
        0u64..60,
        0u64..3_000,
    );
    let group = group.prop_map(|(mut chain, degree, mut costs, reserved_per_s, offered_per_s)| {
        chain.truncate(degree);
        costs.truncate(degree);
        Group {
            chain,
            costs,
            epoch: 1,
            reserved_per_s,
            offered_per_s,
        }
    });
    proptest::collection::vec(group, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// What heads use fits every server beside all reservations, at every moment: whatever frames are lost, late or
    /// out of order, whenever servers start anew, groups change their epoch or what they want.
    #[test]
    fn grants_are_feasible_at_every_moment(
        groups in groups(4),
        algorithm in prop_oneof![Just(Algorithm::Level), Just(Algorithm::All), Just(Algorithm::Head)],
        fates in proptest::collection::vec(prop_oneof![
            6 => (1u64..20).prop_map(Some), 2 => Just(None), 1 => (20u64..900).prop_map(Some)
        ], 1..200),
        lossy in any::<bool>(),
        events in proptest::collection::vec((0usize..900, 0u8..4, 0usize..8, 0u64..3_000), 0..12),
        steps in proptest::collection::vec(1u64..12, 1..20),
    ) {
        let mut world = World::new(4, groups, settings(algorithm, Policy::Unallocated));
        // Reservations are admitted, so they fit.
        prop_assume!(world.is_feasible());
        let (mut fates, mut steps) = (fates.iter().cycle(), steps.iter().cycle());
        for turn in 0..900 {
            for (_, what, which, number) in events.iter().filter(|event| event.0 == turn) {
                let g = which % world.groups.len();
                match what {
                    0 => world.groups[g].epoch += 1,
                    1 => {
                        let s = which % 4;
                        world.servers[s] = Exchange::new(s, world.settings, CAPACITY, world.local_now(s));
                        world.used.retain(|key, _| key.0 != s);
                    }
                    _ => world.groups[g].offered_per_s = *number,
                }
            }
            let mut fate = |_: &Share| {
                let fate = *fates.next().unwrap();
                if lossy { fate.map(|ms| ms * MS) } else { Some(MS) }
            };
            world.advance(steps.next().unwrap() * MS, &mut fate);
            prop_assert!(world.is_feasible(), "at {} ms: {:?} {:?}", world.now / MS, world.used, world.groups);
        }
    }
}
