//! Suspicions: slow servers and unreachable pairs, by servers' reports of one another. No sleeping.

use std::collections::BTreeSet;

use crate::world::{World, server};
use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::planner::{SuspicionTimes, Suspicions};
use quorate_types::control::{SlowCause, SlowReport};

const TIMES: SuspicionTimes = SuspicionTimes {
    unreachable_ms: 3_000,
    slow_ms: 5_000,
    well_ms: 60_000,
    stale_ms: 750,
    hung_ms: 2_000,
};

struct Fleet {
    world: World,
    suspicions: Suspicions,
    now_ms: u64,
    /// Reports in each heartbeat: (reporter, slow server), and (reporter, unreachable peer).
    slow: Vec<(u32, u32)>,
    unreachable: Vec<(u32, u32)>,
    behind_ms: u64,
    hanging: Vec<u32>,
    /// Servers that send nothing.
    silent: Vec<u32>,
}

impl Fleet {
    fn new(servers: u32) -> Self {
        Self {
            world: World::new(servers),
            suspicions: Suspicions::new(TIMES),
            now_ms: 0,
            slow: Vec::new(),
            unreachable: Vec::new(),
            behind_ms: 400,
            hanging: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// Heartbeats each 250 ms, and the commands that followed.
    fn run(&mut self, ms: u64) -> Vec<Command> {
        let mut all = Vec::new();
        for _ in 0..ms / 250 {
            self.now_ms += 250;
            let all_ids = self.world.state.servers.keys().map(|id| id.0);
            let sending: Vec<u32> = all_ids.filter(|n| !self.silent.contains(n)).collect();
            for n in sending {
                let of = |claims: &[(u32, u32)]| {
                    claims
                        .iter()
                        .filter(|c| c.0 == n)
                        .map(|c| server(c.1))
                        .collect::<Vec<_>>()
                };
                let report = |server| SlowReport {
                    server,
                    behind_ms: self.behind_ms,
                    cause: SlowCause::Journal,
                };
                let slow: Vec<SlowReport> = of(&self.slow).into_iter().map(report).collect();
                self.suspicions
                    .heartbeat(server(n), &of(&self.unreachable), &slow, self.now_ms);
            }
            for command in
                self.suspicions
                    .due(&self.world.state, |id| self.hanging.contains(&id.0), self.now_ms)
            {
                self.world.apply(command.clone());
                all.push(command);
            }
        }
        all
    }

    fn slow_ones(&self) -> Vec<u32> {
        let servers = self.world.state.servers.values();
        servers
            .filter(|s| s.slow.is_some())
            .map(|s| s.server_id.0)
            .collect()
    }
}

#[test]
fn a_server_reported_slow_for_long_is_slow_and_trusted_again_much_later() {
    let mut fleet = Fleet::new(5);
    fleet.slow = vec![(1, 2)];
    assert!(fleet.run(4_500).is_empty());
    assert_eq!(fleet.run(1_500).len(), 1, "reported once");
    assert_eq!(fleet.slow_ones(), [2]);
    fleet.slow.clear();
    assert!(fleet.run(4_000).is_empty());
    assert_eq!(fleet.run(3_000).len(), 1);
    assert!(fleet.slow_ones().is_empty());
}

#[test]
fn a_report_now_and_then_is_not_enough() {
    let mut fleet = Fleet::new(5);
    for _ in 0..20 {
        fleet.slow = vec![(1, 2)];
        fleet.run(4_000);
        fleet.slow.clear();
        fleet.run(1_000);
    }
    assert!(fleet.slow_ones().is_empty());
}

#[test]
fn a_heartbeat_without_the_report_does_not_restart_the_time() {
    let mut fleet = Fleet::new(5);
    for _ in 0..8 {
        fleet.slow = vec![(1, 2)];
        fleet.run(500);
        fleet.slow.clear();
        fleet.run(250);
    }
    assert_eq!(fleet.slow_ones(), [2]);
}

#[test]
fn a_server_that_alone_reports_several_is_slow_itself() {
    let mut fleet = Fleet::new(6);
    fleet.slow = vec![(1, 2), (1, 3)];
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [1]);
    // The one of them that others report, too, is slow.
    let mut fleet = Fleet::new(6);
    fleet.slow = vec![(1, 2), (4, 2), (5, 2)];
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [2]);
}

#[test]
fn the_one_of_two_mutual_reporters_that_others_report_is_slow() {
    let mut fleet = Fleet::new(6);
    fleet.slow = vec![(1, 2), (2, 1)];
    fleet.run(10_000);
    assert!(fleet.slow_ones().is_empty());
    fleet.slow.push((3, 1));
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [1]);
    let mut fleet = Fleet::new(6);
    fleet.slow = vec![(1, 2), (2, 1), (2, 2)];
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [2], "its own word counts");
}

#[test]
fn what_is_said_of_servers_that_hang_speaks_against_nobody_else() {
    // Alone it reports two, which would make it suspect if they did not say so themselves.
    let mut fleet = Fleet::new(12);
    fleet.slow = vec![(1, 2), (1, 3)];
    fleet.hanging = vec![2, 3];
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [2, 3]);
    // Two report one another: the one that hangs is slow.
    let mut fleet = Fleet::new(6);
    fleet.slow = vec![(1, 2), (2, 1)];
    fleet.hanging = vec![1];
    fleet.run(6_000);
    assert_eq!(fleet.slow_ones(), [1]);
}

#[test]
fn at_most_a_quarter_counts_as_slow_and_nobody_when_more_than_half_are_reported() {
    let mut fleet = Fleet::new(8);
    fleet.slow = (1..=4).map(|n| (n, n)).collect();
    fleet.run(60_000);
    assert_eq!(fleet.slow_ones().len(), 2);
    let mut fleet = Fleet::new(8);
    fleet.slow = (1..=5).map(|n| (n, n)).collect();
    fleet.run(60_000);
    assert!(fleet.slow_ones().is_empty(), "the cause is not theirs");
}

#[test]
fn the_wait_counts_from_its_beginning_and_a_silent_server_is_left_to_its_lease() {
    let mut fleet = Fleet::new(5);
    fleet.run(500);
    fleet.slow = vec![(1, 2)];
    assert!(fleet.run(4_750).is_empty(), "its first report told of 400 ms");
    assert_eq!(fleet.run(250).len(), 1);
    let mut fleet = Fleet::new(5);
    fleet.slow = vec![(1, 2)];
    fleet.run(500);
    fleet.silent = vec![2];
    fleet.run(20_000);
    assert!(fleet.slow_ones().is_empty());
}

/// A server that was out of reach for long comes back, and has waited for its peers meanwhile.
#[test]
fn a_wait_from_before_the_reporter_was_heard_again_speaks_against_nobody() {
    let mut fleet = Fleet::new(5);
    fleet.run(1_000);
    fleet.silent = vec![1];
    fleet.run(1_000);
    (fleet.silent, fleet.slow, fleet.behind_ms) = (Vec::new(), vec![(1, 2)], 10_000);
    assert!(fleet.run(4_750).is_empty());
    assert_eq!(fleet.run(500).len(), 1);
    let mut fleet = Fleet::new(5);
    fleet.run(12_000);
    (fleet.slow, fleet.behind_ms) = (vec![(1, 2)], 10_000);
    assert_eq!(fleet.run(3_000).len(), 1, "it was heard all the time");
}

#[test]
fn reports_by_and_about_failed_servers_do_not_count() {
    let mut fleet = Fleet::new(5);
    fleet.slow = vec![(1, 2)];
    fleet.unreachable = vec![(1, 2)];
    fleet.run(2_500);
    fleet.world.fail(&[2]);
    assert!(fleet.run(10_000).is_empty());
}

#[test]
fn a_pair_out_of_reach_for_long_is_unreachable_and_recovers_long_after() {
    let mut fleet = Fleet::new(5);
    fleet.unreachable = vec![(3, 2)];
    assert!(fleet.run(2_750).is_empty());
    // A link that came back in between restarts the time.
    fleet.unreachable.clear();
    fleet.run(250);
    fleet.unreachable = vec![(3, 2), (2, 3)];
    assert!(fleet.run(2_750).is_empty());
    fleet.run(1_000);
    assert_eq!(
        (fleet.world.state.unreachable_pairs.iter()).collect::<BTreeSet<_>>(),
        BTreeSet::from([(server(2), server(3))])
    );
    fleet.unreachable = vec![(2, 3)];
    assert!(fleet.run(90_000).is_empty(), "as long as one says so");
    fleet.unreachable.clear();
    assert!(fleet.run(4_500).is_empty());
    fleet.run(2_000);
    assert!(fleet.world.state.unreachable_pairs.is_empty());
}

#[test]
fn a_server_that_is_silent_since_makes_no_pair_of_itself_and_those_who_miss_it() {
    let mut fleet = Fleet::new(5);
    fleet.run(1_000);
    fleet.unreachable = vec![(3, 2)];
    fleet.silent = vec![2];
    assert!(
        fleet.run(10_000).is_empty(),
        "it may be dead, and its lease decides"
    );
    fleet.silent.clear();
    fleet.run(250);
    assert!(!fleet.world.state.unreachable_pairs.is_empty(), "it lives");
}

/// A one-way partition: several servers miss one at once, and it hears them all.
#[test]
fn a_server_that_several_miss_is_at_fault_in_the_first_pair_already() {
    for claims in [[(1, 3), (4, 3), (5, 3)], [(3, 1), (3, 4), (3, 5)]] {
        let mut fleet = Fleet::new(6);
        fleet.unreachable = claims.to_vec();
        let pairs = fleet.run(4_000);
        assert_eq!(pairs.len(), 3);
        for command in pairs {
            assert!(
                matches!(command, Command::PairUnreachable { at_fault, .. } if at_fault == Some(server(3)))
            );
        }
    }
    let mut fleet = Fleet::new(6);
    fleet.unreachable = vec![(1, 3)];
    let pairs = fleet.run(4_000);
    assert!(matches!(
        pairs[..],
        [Command::PairUnreachable { at_fault: None, .. }]
    ));
}
