//! Leases: which servers have failed. Heartbeats extend them; a broken connection leaves a grace period.
//!
//! After a restart of the coordinator every server gets a full lease: its absence is not the servers' fault.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::ServerId;

use crate::ids::ConnectionId;

#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    pub lease_ms: u64,
    pub reconnect_grace_ms: u64,
}

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Leases {
    times: LeaseTimes,
    servers: BTreeMap<ServerId, Lease>,
    /// Another leader had them, and they come over. A server that does not, and that a peer does not reach, has failed with
    /// that leader.
    comes_over: BTreeSet<ServerId>,
    /// The end of the wait for them.
    gathers_until_ms: u64,
    /// Deadlines of servers that went down with a whole chain of which another has returned.
    laggards: BTreeMap<ServerId, u64>,
    ticked_at_ms: u64,
}

#[derive(Debug)]
struct Lease {
    connection: Option<ConnectionId>,
    deadline_ms: u64,
    /// Several peers miss the server, too: half of the lease is enough.
    is_missed: bool,
}

impl Leases {
    pub fn new(times: LeaseTimes, alive: impl IntoIterator<Item = ServerId>, now_ms: u64) -> Self {
        let mut leases = Self {
            times,
            servers: BTreeMap::new(),
            comes_over: BTreeSet::new(),
            gathers_until_ms: 0,
            laggards: BTreeMap::new(),
            ticked_at_ms: now_ms,
        };
        for server in alive {
            leases.await_return(server, now_ms);
        }
        leases
    }

    /// All of them had connections to another leader.
    pub fn took_over(&mut self, now_ms: u64) {
        self.comes_over = self.servers.keys().copied().collect();
        self.gathers_until_ms = now_ms + self.times.lease_ms;
    }

    /// Some of them have not come over, and may yet.
    pub fn is_gathering(&self, now_ms: u64) -> bool {
        !self.comes_over.is_empty() && now_ms < self.gathers_until_ms
    }

    /// A peer does not reach the server. If it has not come over yet, it has as long as after a broken connection.
    pub fn doubt(&mut self, server: ServerId, now_ms: u64) {
        if self.comes_over.remove(&server)
            && let Some(lease) = self.servers.get_mut(&server)
        {
            lease.deadline_ms = lease.deadline_ms.min(now_ms + self.times.reconnect_grace_ms);
        }
    }

    /// Several peers have not reached the server for a while. Unless it is heard again, half of its lease is enough.
    pub fn miss(&mut self, server: ServerId) {
        if let Some(lease) = self.servers.get_mut(&server)
            && lease.connection.is_some()
            && !std::mem::replace(&mut lease.is_missed, true)
        {
            lease.deadline_ms = lease.deadline_ms.saturating_sub(self.times.lease_ms / 2);
        }
    }

    /// The server has a full lease, and no connection yet.
    pub fn await_return(&mut self, server: ServerId, now_ms: u64) {
        let lease = Lease {
            connection: None,
            deadline_ms: now_ms + self.times.lease_ms,
            is_missed: false,
        };
        self.servers.insert(server, lease);
    }

    /// The server registered on this connection; its other connections count no more.
    pub fn connected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        self.comes_over.remove(&server);
        let lease = Lease {
            connection: Some(connection),
            deadline_ms: now_ms + self.times.lease_ms,
            is_missed: false,
        };
        self.servers.insert(server, lease);
    }

    /// Whether the heartbeat came on the server's connection, and so extended its lease.
    pub fn heartbeat(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) -> bool {
        match self.servers.get_mut(&server) {
            Some(lease) if lease.connection == Some(connection) => {
                (lease.deadline_ms, lease.is_missed) = (now_ms + self.times.lease_ms, false);
                true
            }
            _ => false,
        }
    }

    pub fn disconnected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        if let Some(lease) = self.servers.get_mut(&server)
            && lease.connection == Some(connection)
        {
            lease.connection = None;
            lease.deadline_ms = lease.deadline_ms.min(now_ms + self.times.reconnect_grace_ms);
        }
    }

    /// The server counts as failed already.
    pub fn end(&mut self, server: ServerId) {
        self.servers.remove(&server);
        self.comes_over.remove(&server);
        self.laggards.remove(&server);
    }

    /// Keeps a deadline for each laggard, and forgets servers that are laggards no more.
    pub fn watch(&mut self, laggards: &BTreeSet<ServerId>, now_ms: u64) {
        self.laggards.retain(|server, _| laggards.contains(server));
        for server in laggards {
            self.laggards
                .entry(*server)
                .or_insert(now_ms + self.times.lease_ms);
        }
    }

    /// Servers that have failed by `now_ms`, each once. To be called every few ten milliseconds.
    pub fn expired(&mut self, now_ms: u64) -> Vec<ServerId> {
        let slept_ms = now_ms.saturating_sub(self.ticked_at_ms);
        self.ticked_at_ms = now_ms;
        // Heartbeats that arrived while this process did not run wait in its sockets: they are read first.
        if slept_ms > self.times.lease_ms / 2 {
            let deadlines = self.servers.values_mut().map(|lease| &mut lease.deadline_ms);
            deadlines
                .chain(self.laggards.values_mut())
                .for_each(|deadline_ms| *deadline_ms += slept_ms);
            return Vec::new();
        }
        let mut failed: Vec<ServerId> = Vec::new();
        self.servers.retain(|server, lease| {
            let keeps = lease.deadline_ms > now_ms;
            failed.extend((!keeps).then_some(*server));
            keeps
        });
        self.laggards.retain(|server, deadline_ms| {
            let keeps = *deadline_ms > now_ms;
            failed.extend((!keeps).then_some(*server));
            keeps
        });
        failed.sort_unstable();
        failed.dedup();
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: LeaseTimes = LeaseTimes {
        lease_ms: 1_000,
        reconnect_grace_ms: 300,
    };
    const A: ServerId = ServerId(1);
    const B: ServerId = ServerId(2);

    /// Ticks every 50 ms up to `until_ms`. The servers that failed, with the times.
    fn run(leases: &mut Leases, from_ms: u64, until_ms: u64) -> Vec<(u64, ServerId)> {
        let ticks = (from_ms..=until_ms).step_by(50);
        ticks
            .flat_map(|now| {
                leases
                    .expired(now)
                    .into_iter()
                    .map(move |s| (now, s))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn silence_for_a_lease_is_failure_and_is_reported_once() {
        let mut leases = Leases::new(TIMES, [], 0);
        leases.connected(A, 1, 0);
        leases.connected(B, 2, 0);
        assert_eq!(run(&mut leases, 0, 900), []);
        assert!(leases.heartbeat(B, 2, 900));
        assert_eq!(run(&mut leases, 950, 1_800), [(1_000, A)]);
        assert!(
            !leases.heartbeat(A, 1, 1_800),
            "a failed server must register again"
        );
    }

    #[test]
    fn a_broken_connection_has_the_grace_only_and_a_new_one_ends_it() {
        let mut leases = Leases::new(TIMES, [], 0);
        leases.connected(A, 1, 0);
        leases.connected(B, 2, 0);
        leases.disconnected(A, 1, 100);
        leases.disconnected(B, 2, 100);
        leases.connected(B, 3, 300);
        assert_eq!(run(&mut leases, 0, 1_000), [(400, A)]);
        // The end of a replaced connection means nothing.
        leases.disconnected(B, 2, 1_000);
        assert_eq!(run(&mut leases, 1_050, 1_250), []);
        assert!(!leases.heartbeat(B, 2, 1_250), "nor does a heartbeat on it");
    }

    #[test]
    fn after_a_restart_everybody_has_a_full_lease() {
        let mut leases = Leases::new(TIMES, [A, B], 5_000);
        leases.connected(B, 1, 5_900);
        assert_eq!(run(&mut leases, 5_050, 6_500), [(6_000, A)]);
    }

    #[test]
    fn a_server_that_does_not_come_over_and_that_a_peer_misses_has_the_grace_only() {
        let mut leases = Leases::new(TIMES, [A, B], 5_000);
        leases.doubt(A, 5_000);
        assert_eq!(
            run(&mut leases, 5_050, 5_950),
            [],
            "at a start of all it means nothing"
        );
        let mut leases = Leases::new(TIMES, [A, B], 5_000);
        leases.took_over(5_000);
        assert!(leases.is_gathering(5_100));
        leases.connected(B, 1, 5_100);
        leases.doubt(B, 5_100);
        leases.doubt(A, 5_200);
        leases.doubt(A, 5_400);
        assert!(!leases.is_gathering(5_400), "nobody else is to come over");
        assert_eq!(run(&mut leases, 5_050, 6_050), [(5_500, A)]);
    }

    #[test]
    fn a_silent_server_that_its_peers_miss_has_half_of_its_lease() {
        let mut leases = Leases::new(TIMES, [A], 0);
        leases.connected(A, 1, 0);
        leases.miss(A);
        assert!(leases.heartbeat(A, 1, 200), "it is heard again");
        assert_eq!(run(&mut leases, 200, 900), []);
        leases.miss(A);
        leases.miss(A);
        assert_eq!(
            run(&mut leases, 900, 2_000),
            [(900, A)],
            "700, had it been missed before"
        );
        let mut leases = Leases::new(TIMES, [A], 0);
        leases.connected(A, 1, 0);
        leases.disconnected(A, 1, 100);
        leases.miss(A);
        assert_eq!(run(&mut leases, 100, 2_000), [(400, A)], "it may reconnect");
    }

    #[test]
    fn a_pause_of_the_coordinator_itself_fails_nobody() {
        let mut leases = Leases::new(TIMES, [A], 0);
        assert_eq!(run(&mut leases, 0, 500), []);
        assert_eq!(leases.expired(9_000), []);
        assert_eq!(run(&mut leases, 9_050, 20_000), [(9_500, A)]);
    }

    #[test]
    fn laggards_get_a_lease_from_when_they_are_first_seen() {
        let mut leases = Leases::new(TIMES, [], 0);
        leases.watch(&BTreeSet::from([A, B]), 0);
        assert_eq!(run(&mut leases, 0, 500), []);
        leases.watch(&BTreeSet::from([A]), 500);
        assert_eq!(run(&mut leases, 550, 2_000), [(1_000, A)]);
    }
}
