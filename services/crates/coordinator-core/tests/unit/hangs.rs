//! Servers whose heartbeats go on while their threads or syncs hang. No sleeping.

use crate::world::{World, server};
use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::planner::{Hangs, SuspicionTimes};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::Degraded;
use quorate_types::Durability::Persistent;

const TIMES: SuspicionTimes = SuspicionTimes {
    unreachable_ms: 3_000,
    slow_ms: 5_000,
    well_ms: 60_000,
    stale_ms: 750,
    hung_ms: 2_000,
};

struct Fleet {
    world: World,
    hangs: Hangs,
    now_ms: u64,
    /// Servers that hang, and since when.
    hung: Vec<(u32, u64)>,
}

impl Fleet {
    fn new(servers: u32) -> Self {
        Self {
            world: World::new(servers),
            hangs: Hangs::new(TIMES),
            now_ms: 10_000,
            hung: Vec::new(),
        }
    }

    fn hang(&mut self, servers: impl IntoIterator<Item = u32>) {
        self.hung.extend(servers.into_iter().map(|n| (n, self.now_ms)));
    }

    /// Heartbeats, and of servers that have failed attempts to be let in, each 250 ms; the commands that followed.
    fn run(&mut self, ms: u64) -> Vec<Command> {
        let mut all = Vec::new();
        for _ in 0..ms / 250 {
            self.now_ms += 250;
            for id in self.world.state.servers.keys() {
                let since_ms = self
                    .hung
                    .iter()
                    .find(|(n, _)| *n == id.0)
                    .map(|(_, since)| *since);
                let hung_ms = since_ms.map_or(0, |since_ms| self.now_ms - since_ms);
                self.hangs.hear(*id, hung_ms, self.now_ms);
            }
            for command in self.hangs.due(&self.world.state, self.now_ms) {
                self.world.apply(command.clone());
                all.push(command);
            }
        }
        all
    }

    fn hung(servers: &[u32]) -> Command {
        Command::ServersHung {
            servers: servers.iter().map(|n| server(*n)).collect(),
        }
    }
}

#[test]
fn a_server_that_hangs_for_long_leaves_its_chains_and_its_healthy_neighbour_stays() {
    for position in 0..2 {
        let mut fleet = Fleet::new(3);
        fleet.world.active(1, Persistent, 2);
        let (chain, ..) = fleet.world.shape(1);
        fleet.hang([chain[position]]);
        assert!(fleet.run(1_750).is_empty());
        assert_eq!(fleet.run(250), [Fleet::hung(&[chain[position]])]);
        let (rest, learner, _, status) = fleet.world.shape(1);
        assert_eq!(
            (rest, status),
            (
                vec![chain[1 - position]],
                quorate_coordinator_core::state::GroupStatus::Paused
            )
        );
        assert!(learner.is_some_and(|learner| !chain.contains(&learner)));
        assert_eq!(
            fleet
                .world
                .kinds()
                .iter()
                .filter(|k| **k == EventKind::ServerFailed)
                .count(),
            1
        );
        assert!(fleet.run(10_000).is_empty(), "once");
    }
}

#[test]
fn a_server_that_hangs_is_kept_out_until_it_goes_on() {
    let mut fleet = Fleet::new(4);
    fleet.world.active(1, Persistent, 3);
    let (chain, ..) = fleet.world.shape(1);
    let id = server(chain[0]);
    fleet.hang([chain[0]]);
    assert_eq!(fleet.run(5_000).len(), 1);
    assert_eq!(fleet.world.shape(1).3, Degraded);
    assert!(fleet.hangs.keeps_out(&fleet.world.state, id, fleet.now_ms));
    fleet.hung.clear();
    fleet.run(250);
    assert!(!fleet.hangs.keeps_out(&fleet.world.state, id, fleet.now_ms));
    fleet.world.come_back(chain[0], "i1", vec![]);
    assert!(
        fleet.world.state.servers[&id].takes_replicas(),
        "once is no habit"
    );
}

#[test]
fn syncs_of_a_sound_disk_are_no_hangs() {
    let mut fleet = Fleet::new(4);
    // Syncs of up to 900 ms, one after the other.
    for _ in 0..100 {
        fleet.hang([1]);
        assert!(fleet.run(750).is_empty());
        fleet.hung.clear();
        assert!(fleet.run(250).is_empty());
    }
}

#[test]
fn when_most_of_the_fleet_hangs_nobody_is_taken_out_for_it() {
    let mut fleet = Fleet::new(6);
    fleet.hang([1, 2, 3]);
    fleet.run(750);
    fleet.hang([4]);
    assert!(fleet.run(20_000).is_empty(), "the fourth hangs a little later");
    let id = server(1);
    assert!(!fleet.hangs.keeps_out(&fleet.world.state, id, fleet.now_ms));
    fleet.hung.retain(|(n, _)| *n != 4);
    assert_eq!(
        fleet.run(500),
        [Fleet::hung(&[1, 2, 3])],
        "half of it is not most"
    );
    // Servers that are out count, too.
    fleet.hang([4]);
    assert!(fleet.run(20_000).is_empty());
    // A fleet of one server has nobody to go on without it.
    let mut fleet = Fleet::new(1);
    fleet.hang([1]);
    assert!(fleet.run(20_000).is_empty());
    let mut fleet = Fleet::new(2);
    fleet.hang([2]);
    assert_eq!(fleet.run(3_000), [Fleet::hung(&[2])]);
}

#[test]
fn a_server_that_hangs_again_and_again_takes_no_replicas_for_a_while() {
    let mut fleet = Fleet::new(5);
    fleet.world.active(1, Persistent, 3);
    for round in 0..2 {
        fleet.hang([1]);
        let commands = fleet.run(3_000);
        assert_eq!(commands[0], Fleet::hung(&[1]));
        assert_eq!(commands.len(), 1 + round, "{commands:?}");
        fleet.hung.clear();
        fleet.run(500);
        fleet.world.come_back(1, "i1", vec![]);
    }
    assert!(!fleet.world.state.servers[&server(1)].takes_replicas());
    // Long after the last time it is once again.
    let mut fleet = Fleet::new(5);
    for _ in 0..2 {
        fleet.hang([1]);
        assert_eq!(fleet.run(3_000), [Fleet::hung(&[1])]);
        fleet.hung.clear();
        fleet.run(61_000);
        fleet.world.come_back(1, "i1", vec![]);
    }
}

#[test]
fn servers_that_hang_again_in_turn_are_not_all_closed_to_replicas() {
    let mut fleet = Fleet::new(5);
    for n in [1, 2, 3, 1, 2, 3] {
        fleet.hang([n]);
        assert_eq!(fleet.run(3_000)[0], Fleet::hung(&[n]));
        fleet.hung.clear();
        fleet.run(2_000);
        fleet.world.come_back(n, "i1", vec![]);
    }
    let closed = fleet.world.state.servers.values().filter(|s| !s.takes_replicas());
    assert_eq!(closed.count(), 1, "a quarter, and always one");
}

#[test]
fn a_claim_that_is_not_repeated_ends() {
    let mut fleet = Fleet::new(4);
    fleet.hang([1]);
    fleet.run(1_500);
    assert!(fleet.hangs.is_hanging(server(1), fleet.now_ms));
    assert!(fleet.hangs.is_hanging(server(1), fleet.now_ms + 1_500));
    assert!(!fleet.hangs.is_hanging(server(1), fleet.now_ms + 1_501));
    assert!(
        fleet
            .hangs
            .due(&fleet.world.state, fleet.now_ms + 5_000)
            .is_empty()
    );
}

/// It was let in while most of the fleet hung, and failed again when that was over.
#[test]
fn one_long_hang_that_is_found_twice_is_no_habit() {
    let mut fleet = Fleet::new(6);
    fleet.hang([1]);
    assert_eq!(fleet.run(3_000), [Fleet::hung(&[1])]);
    fleet.hang([2, 3, 4]);
    assert!(fleet.run(3_000).is_empty(), "most of them hang");
    assert!(!fleet.hangs.keeps_out(&fleet.world.state, server(1), fleet.now_ms));
    fleet.world.come_back(1, "i1", vec![]);
    fleet.hung.retain(|(n, _)| *n < 3);
    assert_eq!(fleet.run(3_000), [Fleet::hung(&[1, 2])]);
    // The next one is.
    fleet.hung.clear();
    fleet.run(500);
    fleet.world.come_back(1, "i1", vec![]);
    fleet.hang([1]);
    assert_eq!(fleet.run(3_000).len(), 2);
}
