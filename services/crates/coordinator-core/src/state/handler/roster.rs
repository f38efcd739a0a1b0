//! The roster: servers join, return, fail, slow down and are given up. Replicas on them are other handlers' concern.

use quorate_types::ServerId;
use quorate_types::cost::RESOURCES;

use super::listing::Listing;
use super::outbox::Outbox;
use crate::command::{Registration, Reply};
use crate::state::entity::{EventKind, EventSubject, Server};
use crate::state::table::Servers;

/// May change servers, and how they are listed for placement.
#[derive(Debug)]
pub struct Roster<'a> {
    servers: &'a mut Servers,
    listing: Listing<'a>,
    out: Outbox<'a>,
}

/// How a server has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its lease has expired, or its connection has not come back.
    Silent,
    /// It has its lease, and does nothing.
    Hung,
}

impl<'a> Roster<'a> {
    pub fn new(servers: &'a mut Servers, listing: Listing<'a>, out: Outbox<'a>) -> Self {
        Self {
            servers,
            listing,
            out,
        }
    }

    pub fn servers(&self) -> &Servers {
        self.servers
    }

    pub fn now_ms(&self) -> u64 {
        self.out.now_ms()
    }

    /// Adds a server under this number. The name's former holder may have left an entry under it: leftovers on that
    /// one's disk are still to be dropped.
    pub fn join(&mut self, id: ServerId, registration: &Registration, credential: &str, auxiliary: bool) {
        let former = self.servers.get(&id);
        let to_drop = former.map(|server| server.to_drop.clone()).unwrap_or_default();
        if let Some(former) = former {
            self.listing.remove(former);
        }
        let now_ms = self.out.now_ms();
        let server = Server::joining(id, registration, credential, auxiliary, to_drop, now_ms);
        let mut message = format!("Server {} joined from {}.", server.name, server.address);
        message += &self.listing.refusal_clause(&server);
        self.servers.insert(server);
        self.listing.server(self.servers, id);
        self.out.accept(id, true);
        self.out
            .event(EventKind::ServerRegistered, EventSubject::Server(id), message);
    }

    /// Takes a known server back, in the same process or in a new one.
    pub fn take_back(&mut self, id: ServerId, registration: &Registration) {
        let before = &self.servers[&id];
        let is_same_process = before.incarnation == registration.incarnation;
        let is_return = !before.alive || !is_same_process;
        self.servers.return_with(id, registration);
        self.listing.server(self.servers, id);
        self.out.accept(id, false);
        if is_return {
            let how = if is_same_process {
                "is reachable again"
            } else {
                "was started again"
            };
            let mut message = format!("Server {} {how} at {}.", registration.name, registration.address);
            message += &self.listing.refusal_clause(&self.servers[&id]);
            self.out
                .event(EventKind::ServerReturned, EventSubject::Server(id), message);
        }
    }

    /// Marks a server as failed, and closes its connection. False: it is unknown, or has failed already.
    pub fn fail(&mut self, id: ServerId, how: Failure) -> bool {
        let Some(server) = self.servers.get(&id).filter(|server| server.alive) else {
            return false;
        };
        let (name, was_drained) = (server.name.clone(), server.is_drained());
        self.servers.fail(id, self.out.now_ms());
        self.listing.server(self.servers, id);
        self.out.disconnect(id);
        let (kind, message) = match how {
            Failure::Silent if was_drained => {
                let message = format!("Server {name}, which was drained, has stopped.");
                (EventKind::ServerStopped, message)
            }
            Failure::Silent => {
                let message = format!("Server {name} has failed: its lease or its connection is gone.");
                (EventKind::ServerFailed, message)
            }
            Failure::Hung => {
                let message = format!(
                    "Server {name} has failed: a thread of it, or a write or sync of its disk, hangs. It returns when \
                     that ends."
                );
                (EventKind::ServerFailed, message)
            }
        };
        self.out.event(kind, EventSubject::Server(id), message);
        true
    }

    /// Answers whether a server can be given up. True: [`Roster::give_up`] must follow, after its groups.
    pub fn begin_giving_up(&mut self, id: ServerId) -> bool {
        let Some(server) = self.servers.get(&id) else {
            self.out.reply(Reply::Unknown);
            return false;
        };
        if server.alive {
            let message = format!(
                "Server {} is alive; drain it, or stop it, before it is given up.",
                server.name
            );
            let code = "server_alive";
            self.out.reply(Reply::Conflict { code, message });
            return false;
        }
        self.out.reply(Reply::Done);
        !server.is_given_up()
    }

    pub fn give_up(&mut self, id: ServerId) {
        self.servers.give_up(id);
        self.listing.server(self.servers, id);
        let message = format!(
            "Server {} is given up: it cannot come back, and data that only it held is lost. A new join token may use its name.",
            self.servers.name_of(id)
        );
        self.out
            .event(EventKind::ServerForgotten, EventSubject::Server(id), message);
    }

    pub fn storage_fault(&mut self, id: ServerId, fault: Option<String>) {
        let Some(server) = self.servers.get(&id) else {
            return;
        };
        if server.storage_fault == fault {
            return;
        }
        let message = match &fault {
            Some(fault) => format!(
                "Server {} has a storage fault and takes no new replicas: {fault}",
                server.name
            ),
            None => format!("The storage fault of server {} is gone.", server.name),
        };
        self.servers.set_storage_fault(id, fault);
        self.listing.server(self.servers, id);
        self.out
            .event(EventKind::ServerStorageFault, EventSubject::Server(id), message);
    }

    /// Notes that a server's storage fault lasts. False: it is known, or the fault is gone.
    pub fn storage_fault_lasts(&mut self, id: ServerId) {
        let server = self.servers.get(&id);
        let Some(server) = server.filter(|server| server.storage_fault.is_some() && !server.fault_lasts)
        else {
            return;
        };
        let message = format!(
            "The storage fault of server {} lasts: its persistent replicas leave it, as far as other servers have room.",
            server.name
        );
        self.servers.set_fault_lasts(id);
        self.out
            .event(EventKind::ServerStorageFault, EventSubject::Server(id), message);
    }

    /// Takes in the part of its capacity that a server can really do. Promises that were made stay.
    pub fn estimated(&mut self, id: ServerId, permille: [u16; 3]) {
        let Some(server) = self.servers.get(&id) else {
            return;
        };
        if server.estimated_permille == permille || permille.iter().any(|part| !(1..=1_000).contains(part)) {
            return;
        }
        let low = (RESOURCES.iter().zip(permille)).filter(|(_, part)| *part < 1_000);
        let low: Vec<String> = low
            .map(|(name, part)| format!("{}% of its {name}", part / 10))
            .collect();
        let name = &server.name;
        let message = match low.as_slice() {
            [] => format!("Server {name} can do what it was registered with again: all of it is promised."),
            low => format!(
                "Server {name} can do no more than {} by its own measurements: no more is promised from now on. Look for \
                 other processes on its machine, and at its disk.",
                low.join(" and ")
            ),
        };
        self.servers.set_estimated(id, permille);
        self.listing.server(self.servers, id);
        self.out
            .event(EventKind::ServerCapacity, EventSubject::Server(id), message);
    }

    /// Marks a server as slow, for this cause, or as recovered. False: it was that already, or is unknown.
    pub fn slow(&mut self, id: ServerId, cause: Option<String>) -> bool {
        let Some(server) = self.servers.get(&id) else {
            return false;
        };
        if server.slow.is_some() == cause.is_some() {
            return false;
        }
        let (kind, message) = match &cause {
            Some(cause) => {
                let message = format!(
                    "Server {} slows its groups, and leaves them: {cause}.",
                    server.name
                );
                (EventKind::ServerSlow, message)
            }
            None => (
                EventKind::ServerRecovered,
                format!(
                    "Server {} is no longer slow, and takes replicas again.",
                    server.name
                ),
            ),
        };
        self.servers.set_slow(id, cause);
        self.listing.server(self.servers, id);
        self.out.event(kind, EventSubject::Server(id), message);
        true
    }
}
