//! The planner as the engine sees it.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use quorate_types::control::SlowReport;

use super::hangs::Hangs;
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
    hangs: Hangs,
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
            hangs: Hangs::new(suspicions),
            storage_faults: StorageFaults::default(),
            reported: BTreeSet::new(),
        };
        planner.observe(state, now_ms);
        planner
    }

    /// Another led before, and its servers are on the way.
    pub fn took_over(&mut self, now_ms: u64) {
        self.leases.took_over(now_ms);
    }

    /// A command was applied: follows the servers that now have a deadline.
    pub fn observe(&mut self, state: &CoordinatorState, now_ms: u64) {
        self.leases.watch(&state.laggards(), now_ms);
    }

    /// A server registered on this connection.
    pub fn connected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        self.leases.connected(server, connection, now_ms);
    }

    /// The server lives, and has a full lease to connect in.
    pub fn await_return(&mut self, server: ServerId, now_ms: u64) {
        self.leases.await_return(server, now_ms);
    }

    pub fn disconnected(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) {
        self.leases.disconnected(server, connection, now_ms);
    }

    /// Whether a heartbeat came on the server's connection and extended its lease.
    pub fn extend_lease(&mut self, server: ServerId, connection: ConnectionId, now_ms: u64) -> bool {
        self.leases.heartbeat(server, connection, now_ms)
    }

    /// Takes in what a server says of itself: how long a part of it has hung.
    pub fn hear_hang(&mut self, server: ServerId, hung_ms: u64, now_ms: u64) {
        self.hangs.hear(server, hung_ms, now_ms);
    }

    /// Whether a server that asks to be let in has to wait until it hangs no more.
    pub fn keeps_out(&self, state: &CoordinatorState, server: ServerId, now_ms: u64) -> bool {
        !self.leases.is_gathering(now_ms) && self.hangs.keeps_out(state, server, now_ms)
    }

    /// Takes in a heartbeat's reports about other servers. The commands note peers that are unreachable since. Of a server
    /// that hangs, only its word about itself counts: its threads do not hear the peers that it reports.
    pub fn hear(
        &mut self,
        state: &CoordinatorState,
        from: ServerId,
        unreachable: &[ServerId],
        slow: &[SlowReport],
        now_ms: u64,
    ) -> Vec<Command> {
        let is_witness = !self.hangs.is_hanging(from, now_ms);
        let unreachable = if is_witness { unreachable } else { &[] };
        let slow: Vec<SlowReport> = slow
            .iter()
            .filter(|report| is_witness || report.server == from)
            .cloned()
            .collect();
        let slow = &slow[..];
        self.suspicions.heartbeat(from, unreachable, slow, now_ms);
        let peers: BTreeSet<ServerId> = unreachable.iter().copied().collect();
        self.reported
            .retain(|(server, peer)| *server != from || peers.contains(peer));
        let mut commands = Vec::new();
        for peer in peers {
            self.leases.doubt(peer, now_ms);
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

    /// Servers that have failed by now though they keep their leases. To be called as often. While servers come over from
    /// another leader none is judged: most of them may hang, of which some have not said it yet.
    pub fn hangs(&mut self, state: &CoordinatorState, now_ms: u64) -> Vec<Command> {
        if self.leases.is_gathering(now_ms) {
            return Vec::new();
        }
        let commands = self.hangs.due(state, now_ms);
        for command in &commands {
            if let Command::ServersHung { servers } = command {
                servers.iter().for_each(|server| self.leases.end(*server));
            }
        }
        commands
    }

    /// Suspicions and storage faults that have lasted long enough by now; suspicions that have ended. To be called as
    /// often.
    pub fn suspicions(&mut self, state: &CoordinatorState, now_ms: u64) -> Vec<Command> {
        let hangs = &self.hangs;
        let is_hanging = |server| hangs.is_hanging(server, now_ms);
        let mut commands = self.suspicions.due(state, is_hanging, now_ms);
        for server in self.suspicions.missed(is_hanging) {
            self.leases.miss(server);
        }
        commands.extend(self.storage_faults.due(state, now_ms));
        commands
    }
}
