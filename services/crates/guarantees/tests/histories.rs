//! Projects' shares on servers whose messages are late or lost, and whose heads move: whatever happens, the shares in use never
//! exceed a guarantee; once all is quiet, they are what the policy says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use quorate_guarantees::{GuaranteedGroup, GuaranteedProject, LocalPolicy, ProjectShares};
use quorate_types::control::{FlowReport, GroupFlow, GroupShare};
use quorate_types::limits::{GUARANTEE_KEPT_MARGIN_S, GUARANTEE_KEPT_S};
use quorate_types::{GroupId, Micros, ProjectId, ServerId};
use uuid::Uuid;

const SHARED: u64 = 1_000;
const INTERVAL_US: Micros = 250_000;
const RENEW_US: Micros = 5_000_000;
const GROUPS: usize = 4;
const SERVERS: usize = 3;

fn group_id(n: usize) -> GroupId {
    GroupId(Uuid::from_u128(n as u128 + 1))
}

/// A server: the heads that it has, their shares, and its connection.
#[derive(Default)]
struct Server {
    heads: BTreeSet<usize>,
    watched: BTreeMap<usize, u64>,
    stream: u64,
    decision: u64,
    to_server: VecDeque<(u64, u64, Vec<GroupShare>)>,
    to_coordinator: VecDeque<FlowReport>,
}

impl Server {
    fn report(&mut self, wanted: &[u64; GROUPS]) {
        let flow = |(n, share_per_s): (&usize, &u64)| GroupFlow {
            group_id: group_id(*n),
            wanted_per_s: wanted[*n],
            share_per_s: *share_per_s,
            idle_max_per_s: None,
        };
        let report = FlowReport {
            stream: self.stream,
            decision: self.decision,
            flows: self.watched.iter().map(flow).collect(),
            partitions: Vec::new(),
        };
        self.to_coordinator.push_back(report);
    }

    fn obey(&mut self) {
        let Some((stream, decision, shares)) = self.to_server.pop_front() else {
            return;
        };
        if stream != self.stream {
            return;
        }
        for share in shares {
            let n = (share.group_id.0.as_u128() - 1) as usize;
            if self.heads.contains(&n) {
                match share.per_s {
                    Some(per_s) => self.watched.insert(n, per_s),
                    None => self.watched.remove(&n),
                };
            }
        }
        self.decision = decision;
    }

    /// A new connection, and perhaps a new process.
    fn reconnect(&mut self, is_new_process: bool) {
        (self.stream, self.decision) = (self.stream + 1, 0);
        self.to_server.clear();
        self.to_coordinator.clear();
        if is_new_process {
            self.watched.clear();
        }
    }
}

struct World {
    now: Micros,
    shares: ProjectShares,
    servers: [Server; SERVERS],
    head_of: [usize; GROUPS],
    wanted: [u64; GROUPS],
}

impl World {
    fn new() -> Self {
        let mut world = Self::without_a_guarantee();
        world.know();
        world
    }

    fn without_a_guarantee() -> Self {
        let mut world = Self {
            now: 0,
            shares: ProjectShares::default(),
            servers: Default::default(),
            head_of: std::array::from_fn(|n| n % SERVERS),
            wanted: [0; GROUPS],
        };
        for (n, server) in world.head_of.into_iter().enumerate() {
            world.servers[server].heads.insert(n);
        }
        world
    }

    fn know(&mut self) {
        let group = |n: usize| GuaranteedGroup {
            group_id: group_id(n),
            head: ServerId(self.head_of[n] as u32),
            request_milli: price(n),
        };
        let project = GuaranteedProject {
            project: ProjectId(Uuid::from_u128(99)),
            shared_tokens_per_s: SHARED,
            idle_tokens_per_s: None,
            policy: LocalPolicy::default(),
            groups: (0..GROUPS).map(group).collect(),
        };
        let alive = (0..SERVERS).map(|server| ServerId(server as u32)).collect();
        self.shares.know(self.now, vec![project], BTreeMap::new(), alive);
    }

    fn decide(&mut self) {
        self.now += INTERVAL_US;
        for told in self.shares.decide(self.now, RENEW_US) {
            let server = &mut self.servers[told.server.0 as usize];
            server
                .to_server
                .push_back((told.stream, told.decision, told.shares));
        }
    }

    fn hear(&mut self, server: usize) {
        if let Some(report) = self.servers[server].to_coordinator.pop_front() {
            self.shares.report(self.now, ServerId(server as u32), &report);
        }
    }

    fn move_head(&mut self, n: usize, to: usize) {
        let from = std::mem::replace(&mut self.head_of[n], to);
        self.servers[from].heads.remove(&n);
        self.servers[from].watched.remove(&n);
        self.servers[to].heads.insert(n);
        self.know();
    }

    fn in_use(&self) -> u64 {
        let of_server = |server: &Server| {
            let tokens = server.watched.iter().map(|(n, per_s)| per_s * price(*n) / 1_000);
            tokens.sum::<u64>()
        };
        self.servers.iter().map(of_server).sum()
    }

    fn share(&self, n: usize) -> u64 {
        self.servers[self.head_of[n]]
            .watched
            .get(&n)
            .copied()
            .unwrap_or(0)
    }

    /// Intervals in which all messages arrive.
    fn settle(&mut self, intervals: usize) {
        for _ in 0..intervals {
            for server in 0..SERVERS {
                while !self.servers[server].to_server.is_empty() {
                    self.servers[server].obey();
                }
                self.servers[server].report(&self.wanted);
                while !self.servers[server].to_coordinator.is_empty() {
                    self.hear(server);
                }
            }
            self.decide();
            assert!(self.in_use() <= SHARED);
        }
        (0..SERVERS).for_each(|server| {
            while !self.servers[server].to_server.is_empty() {
                self.servers[server].obey();
            }
        });
    }
}

/// The group's price of a request, in thousandths of tokens.
fn price(n: usize) -> u64 {
    [1_000, 2_000, 4_000, 500][n]
}

#[test]
fn shares_follow_what_groups_want() {
    let mut world = World::new();
    world.settle(4);
    let even: Vec<u64> = (0..GROUPS).map(|n| world.share(n) * price(n) / 1_000).collect();
    assert!(
        even.iter().all(|tokens| tokens.abs_diff(250) <= 4),
        "nobody wants more than others: {even:?}"
    );
    world.wanted = [0, 0, 1_000, 0];
    world.settle(3);
    assert!(world.share(2) * 4 + 4 >= SHARED, "all of it in three intervals");
    world.wanted = [1_000, 0, 1_000, 0];
    world.settle(3);
    assert!(world.share(0).abs_diff(500) <= 2 && world.share(2).abs_diff(125) <= 1);
}

#[test]
fn reports_of_before_the_first_guarantee_count() {
    let mut world = World::without_a_guarantee();
    for server in 0..SERVERS {
        world.servers[server].report(&[0; GROUPS]);
        world.hear(server);
    }
    (0..10).for_each(|_| world.decide());
    world.know();
    world.decide();
    (0..SERVERS).for_each(|server| world.servers[server].obey());
    assert!(world.in_use() > SHARED * 9 / 10, "{}", world.in_use());
}

#[test]
fn a_new_leader_gives_nothing_more_before_all_heads_are_heard_or_cannot_be_using_anything() {
    let mut world = World::new();
    world.wanted = [1_000, 0, 0, 0];
    world.settle(4);
    let before = world.share(0);
    assert!(before + 2 >= SHARED);
    world.shares = ProjectShares::default();
    world.know();
    world.wanted = [0, 500, 0, 0];
    (0..SERVERS).for_each(|server| world.servers[server].reconnect(false));
    // The server with the shares is silent.
    for _ in 0..20 {
        for server in 1..SERVERS {
            world.servers[server].report(&[0, 500, 0, 0]);
            world.hear(server);
        }
        world.decide();
        (1..SERVERS).for_each(|server| {
            while !world.servers[server].to_server.is_empty() {
                world.servers[server].obey();
            }
        });
        assert_eq!((world.share(0), world.share(1)), (before, 0));
    }
    world.now += (GUARANTEE_KEPT_S + GUARANTEE_KEPT_MARGIN_S) * 1_000_000;
    world.servers[0].watched.clear(); // as its own clock told it
    for _ in 0..3 {
        for server in 1..SERVERS {
            world.servers[server].report(&[0, 500, 0, 0]);
            world.hear(server);
        }
        world.decide();
        (1..SERVERS).for_each(|server| {
            while !world.servers[server].to_server.is_empty() {
                world.servers[server].obey();
            }
        });
    }
    assert!(world.share(1) > 400, "{}", world.share(1));
}

#[test]
fn a_smaller_guarantee_is_in_force_once_heads_have_heard() {
    let mut world = World::new();
    world.settle(4);
    let group = |n: usize| GuaranteedGroup {
        group_id: group_id(n),
        head: ServerId(world.head_of[n] as u32),
        request_milli: price(n),
    };
    let project = GuaranteedProject {
        project: ProjectId(Uuid::from_u128(99)),
        shared_tokens_per_s: 100,
        idle_tokens_per_s: Some(50),
        policy: LocalPolicy::default(),
        groups: (0..GROUPS).map(group).collect(),
    };
    let alive = (0..SERVERS).map(|server| ServerId(server as u32)).collect();
    world
        .shares
        .know(world.now, vec![project], BTreeMap::new(), alive);
    world.settle(3);
    assert!((80..=100).contains(&world.in_use()), "{}", world.in_use());
}

#[test]
fn a_share_under_way_counts_while_the_head_moves_away_and_back() {
    let mut world = World::new();
    world.move_head(2, 0);
    let hear_all = |world: &mut World| {
        let wanted = world.wanted;
        (0..SERVERS).for_each(|server| world.servers[server].report(&wanted));
        (0..SERVERS).for_each(|server| world.hear(server));
    };
    hear_all(&mut world);
    world.decide();
    world.wanted[1] = SHARED;
    world.servers[1].obey();
    world.move_head(2, 1);
    hear_all(&mut world);
    world.move_head(2, 0);
    for _ in 0..3 {
        hear_all(&mut world);
        world.decide();
        (0..3).for_each(|_| world.servers[1].obey());
    }
    assert!(world.share(1) > 0, "it may have more");
    for _ in 0..9 {
        world.servers[0].obey();
        assert!(world.in_use() <= SHARED, "{}", world.in_use());
    }
    world.settle(4);
    assert!(world.share(1) * price(1) / 1_000 > SHARED * 9 / 10);
}

#[test]
fn shares_end_with_their_guarantee() {
    let mut world = World::new();
    world.settle(4);
    let alive: BTreeSet<ServerId> = (0..SERVERS).map(|server| ServerId(server as u32)).collect();
    (world.shares).know(world.now, Vec::new(), BTreeMap::new(), alive.clone());
    world.settle(3);
    assert!(world.servers.iter().all(|server| server.watched.is_empty()));
    assert_eq!(
        world.shares.decide(world.now, RENEW_US),
        [],
        "nobody has anything to hear"
    );
    // A leader that never knew the guarantee ends it, too.
    world.servers[0].watched.insert(0, 70);
    world.shares = ProjectShares::default();
    world.shares.know(world.now, Vec::new(), BTreeMap::new(), alive);
    world.settle(3);
    assert!(world.servers[0].watched.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Decide,
    Obey(usize),
    Report(usize),
    Hear(usize),
    Reconnect(usize, bool),
    Move(usize, usize),
    Want(usize, u64),
    NewLeader,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Decide),
        8 => (0..SERVERS).prop_map(Step::Obey),
        8 => (0..SERVERS).prop_map(Step::Report),
        8 => (0..SERVERS).prop_map(Step::Hear),
        1 => (0..SERVERS, any::<bool>()).prop_map(|(server, new)| Step::Reconnect(server, new)),
        1 => (0..GROUPS, 0..SERVERS).prop_map(|(n, to)| Step::Move(n, to)),
        4 => (0..GROUPS, 0u64..2_000).prop_map(|(n, wanted)| Step::Want(n, wanted)),
        1 => Just(Step::NewLeader),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn shares_in_use_never_exceed_the_guarantee(steps in prop::collection::vec(step(), 1..250)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Decide => world.decide(),
                Step::Obey(server) => world.servers[server].obey(),
                Step::Report(server) => {
                    let wanted = world.wanted;
                    world.servers[server].report(&wanted);
                }
                Step::Hear(server) => world.hear(server),
                Step::Reconnect(server, is_new) => world.servers[server].reconnect(is_new),
                Step::Move(n, to) => world.move_head(n, to),
                Step::Want(n, wanted) => world.wanted[n] = wanted,
                Step::NewLeader => {
                    world.shares = ProjectShares::default();
                    (0..SERVERS).for_each(|server| world.servers[server].reconnect(false));
                    world.know();
                }
            }
            prop_assert!(world.in_use() <= SHARED, "{}", world.in_use());
        }
        world.settle(8);
        let given = world.in_use();
        prop_assert!(given + 12 >= SHARED, "all is given out again: {given} of {SHARED}");
    }
}
