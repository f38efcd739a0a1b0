//! Drains of servers: begun, called off, and reported while they last. The replicas leave through `moves`.

use quorate_types::ServerId;
use quorate_types::control::ToServer;
use quorate_types::sla::ScarceResource;

use super::listing::Listing;
use super::outbox::Outbox;
use crate::command::Reply;
use crate::state::entity::{EventKind, EventSubject, lacking};
use crate::state::table::{Groups, Servers};

/// May change the drain of a server, and how it is listed for placement; reads groups.
#[derive(Debug)]
pub struct Drains<'a> {
    servers: &'a mut Servers,
    groups: &'a Groups,
    listing: Listing<'a>,
    out: Outbox<'a>,
}

impl<'a> Drains<'a> {
    pub fn new(servers: &'a mut Servers, groups: &'a Groups, listing: Listing<'a>, out: Outbox<'a>) -> Self {
        Self {
            servers,
            groups,
            listing,
            out,
        }
    }

    pub fn begin(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id) else {
            return self.out.reply(Reply::Unknown);
        };
        let was_begun = server.drain.is_some();
        self.out.reply(Reply::Done);
        if was_begun {
            return;
        }
        self.servers.begin_drain(id, self.out.now_ms());
        self.listing.server(self.servers, id);
        let message = format!(
            "Server {} drains: {} replicas are to leave it.",
            self.servers.name_of(id),
            self.groups.count_on(id)
        );
        self.out
            .event(EventKind::ServerDraining, EventSubject::Server(id), message);
        self.send_state(id);
    }

    /// False: there was no drain.
    pub fn call_off(&mut self, id: ServerId) -> bool {
        let Some(server) = self.servers.get(&id) else {
            self.out.reply(Reply::Unknown);
            return false;
        };
        let was_begun = server.drain.is_some();
        self.out.reply(Reply::Done);
        if !was_begun {
            return false;
        }
        self.servers.call_off_drain(id);
        self.listing.server(self.servers, id);
        let message = format!(
            "The drain of server {} is called off: it takes replicas again.",
            self.servers.name_of(id)
        );
        self.out
            .event(EventKind::ServerDrainCalledOff, EventSubject::Server(id), message);
        self.send_state(id);
        true
    }

    /// Writes an event when nothing is left on a draining server, or when its replicas lack another resource than
    /// before. `scarce`: lacked by the replicas that found no server.
    pub fn report(&mut self, id: ServerId, scarce: Option<ScarceResource>) {
        let server = &self.servers[&id];
        let Some(drain) = &server.drain else { return };
        let is_empty = self.groups.count_on(id) == 0 && server.to_drop.is_empty();
        let name = server.name.clone();
        if is_empty && drain.drained_at_ms.is_none() {
            self.servers.finish_drain(id, self.out.now_ms());
            let message = format!("Server {name} is drained: it holds no replica and may stop.");
            self.out
                .event(EventKind::ServerDrained, EventSubject::Server(id), message);
            self.send_state(id);
        } else if drain.scarce != scarce {
            self.servers.set_scarce_for_drain(id, scarce);
            if let Some(scarce) = scarce {
                let message = format!(
                    "The drain of server {name} waits: {}. It continues when there is room.",
                    lacking(scarce)
                );
                self.out
                    .event(EventKind::ServerDrainWaiting, EventSubject::Server(id), message);
            }
        }
    }

    /// Sends the server how far its drain is, if it is alive.
    pub fn send_state(&mut self, id: ServerId) {
        let server = &self.servers[&id];
        if server.alive {
            let state = server.drain_state();
            self.out.send(id, ToServer::Drain { state });
        }
    }
}
