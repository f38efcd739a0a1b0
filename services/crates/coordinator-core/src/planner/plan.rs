//! The planner as the engine sees it.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use quorate_types::control::SlowReport;

use super::leases::{LeaseTimes, Leases};
use super::storage_faults::StorageFaults;
use super::suspicions::{SuspicionTimes, Suspicions};
use crate::command::Command;
use crate::ids::ConnectionId;
use crate::state::CoordinatorState;

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Planner {
    leases: Leases,
    suspicions: Suspicions,
    storage_faults: StorageFaults,
    /// Pairs (server, peer) of which the first last reported the second unreachable.
    reported: BTreeSet<(ServerId, ServerId)>,
}

impl Planner {
    /// Begins with the state as the log has it: every server gets a full lease.
    pub fn new(
        state: &CoordinatorState,
        leases: LeaseTimes,
        suspicions: SuspicionTimes,
        now_ms: u64,
    ) -> Self {
        let alive = state.servers.values().filter(|server| server.alive);
        let mut planner = Self {
            leases: Leases::new(leases, alive.map(|server| server.server_id), now_ms),
            suspicions: Suspicions::new(suspicions),
            storage_faults: StorageFaults::default(),
            reported: BTreeSet::new(),
        };
        planner.observe(state, now_ms);
        planner
    }

    /// A command was applied: follows the servers that now have a deadline.
    pub fn observe(&mut self, state: &CoordinatorState, now_ms: u64) {
        self.leases.watch(&state.laggards(), now_ms);
    }

    /// A server registered on this connection.
    pub fn connected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        self.leases.connected(server, connection, now_ms);
    }

    pub fn disconnected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        self.leases.disconnected(server, connection, now_ms);
    }

    /// Whether a heartbeat came on the server's connection and extended its lease.
    pub fn extend_lease(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) -> bool {
        self.leases.heartbeat(server, connection, now_ms)
    }

    /// Takes in a heartbeat's reports about other servers. The commands note peers that are unreachable since.
    pub fn hear(
        &mut self,
        state: &CoordinatorState,
        from: ServerId,
        unreachable: &[ServerId],
        slow: &[SlowReport],
        now_ms: u64,
    ) -> Vec<Command> {
        self.suspicions.heartbeat(from, unreachable, slow, now_ms);
        let peers: BTreeSet<ServerId> = unreachable.iter().copied().collect();
        self.reported
            .retain(|(server, peer)| *server != from || peers.contains(peer));
        let mut commands = Vec::new();
        for peer in peers {
            if state.is_alive(peer) && self.reported.insert((from, peer)) {
                commands.push(Command::PeerUnreachable { server: from, peer });
            }
        }
        commands
    }

    /// Servers that have failed by now, each once. To be called every few ten milliseconds.
    pub fn failures(&mut self, now_ms: u64) -> Option<Command> {
        let servers = self.leases.expired(now_ms);
        (!servers.is_empty()).then_some(Command::ServersFailed { servers })
    }

    /// Suspicions and storage faults that have lasted long enough by now; suspicions that have ended. To be called as
    /// often.
    pub fn suspicions(&mut self, state: &CoordinatorState, now_ms: u64) -> Vec<Command> {
        let mut commands = self.suspicions.due(state, now_ms);
        commands.extend(self.storage_faults.due(state, now_ms));
        commands
    }
}
