//! Connections, and the servers at their other ends.

use std::collections::BTreeMap;

use quorate_types::control::{EstimatedCapacity, LinkTransport, Register};
use quorate_types::{ServerId, Versions};

use crate::ids::ConnectionId;

#[derive(Debug, Default)]
pub struct Connections {
    open: BTreeMap<ConnectionId, Connection>,
    of_server: BTreeMap<ServerId, ConnectionId>,
}

/// A server's words about itself at its registration. Nobody needs them once it has gone.
#[derive(Debug, Clone)]
pub struct Told {
    /// Versions of the fleet that it can be part of.
    pub fleet_versions: Versions,
    /// How its links go. Older servers do not say.
    pub links: Option<LinkTransport>,
    /// By its last heartbeat.
    pub estimated: Option<EstimatedCapacity>,
}

impl Told {
    pub fn of(register: &Register) -> Self {
        Self {
            fleet_versions: register.fleet_versions,
            links: register.links.clone().map(LinkTransport::shortened),
            estimated: None,
        }
    }
}

#[derive(Debug)]
struct Connection {
    /// Set once it registered.
    server: Option<ServerId>,
    told: Told,
    /// The time at which its reports were last compared with its groups.
    reconciled_ms: u64,
}

/// A server's report may be a heartbeat behind what it was just sent.
const RECONCILE_EVERY_MS: u64 = 2_000;

impl Connections {
    pub fn open(&mut self, connection: ConnectionId, told: Told, now_ms: u64) {
        let opened = Connection {
            server: None,
            told,
            reconciled_ms: now_ms,
        };
        self.open.insert(connection, opened);
    }

    /// The server registered on this connection. The one that it had before, if it had one.
    pub fn bind(&mut self, connection: ConnectionId, server: ServerId) -> Option<ConnectionId> {
        if let Some(opened) = self.open.get_mut(&connection) {
            opened.server = Some(server);
        }
        self.of_server.insert(server, connection)
    }

    /// The server whose present connection this is.
    pub fn server_on(&self, connection: ConnectionId) -> Option<ServerId> {
        let server = self.open.get(&connection)?.server?;
        (self.of(server) == Some(connection)).then_some(server)
    }

    /// The words of a connected server.
    pub fn told_by(&self, server: ServerId) -> Option<&Told> {
        let connection = self.open.get(&self.of(server)?)?;
        Some(&connection.told)
    }

    pub fn hear_estimate(&mut self, connection: ConnectionId, estimated: Option<EstimatedCapacity>) {
        if let Some(opened) = self.open.get_mut(&connection) {
            opened.told.estimated = estimated.map(EstimatedCapacity::shortened);
        }
    }

    pub fn of(&self, server: ServerId) -> Option<ConnectionId> {
        self.of_server.get(&server).copied()
    }

    /// Servers with their present connections.
    pub fn bound(&self) -> Vec<(ServerId, ConnectionId)> {
        let bound = self.of_server.iter();
        bound.map(|(server, connection)| (*server, *connection)).collect()
    }

    /// Forgets a connection: inputs on it count no more.
    pub fn forget(&mut self, connection: ConnectionId) {
        self.open.remove(&connection);
    }

    /// Parts a server from its connection.
    pub fn unbind(&mut self, server: ServerId) -> Option<ConnectionId> {
        self.of_server.remove(&server)
    }

    /// A connection broke. The server whose present connection it was.
    pub fn closed(&mut self, connection: ConnectionId) -> Option<ServerId> {
        let server = self.server_on(connection);
        self.forget(connection);
        if let Some(server) = server {
            self.unbind(server);
        }
        server
    }

    /// Whether the reports on a connection are due to be compared again. True sets the time of the comparison.
    pub fn begin_reconciling(&mut self, connection: ConnectionId, now_ms: u64) -> bool {
        let Some(opened) = self.open.get_mut(&connection) else {
            return false;
        };
        let is_due = now_ms.saturating_sub(opened.reconciled_ms) >= RECONCILE_EVERY_MS;
        if is_due {
            opened.reconciled_ms = now_ms;
        }
        is_due
    }
}
