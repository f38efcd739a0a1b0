//! Reports about pairs of servers become events, and pairs that stay unreachable are noted. Groups act on it through
//! `unreachable`.

use quorate_types::ServerId;

use super::outbox::Outbox;
use crate::state::entity::{EventKind, EventSubject};
use crate::state::table::{Servers, UnreachablePairs};

/// May change the unreachable pairs; reads servers.
#[derive(Debug)]
pub struct Reachability<'a> {
    pairs: &'a mut UnreachablePairs,
    servers: &'a Servers,
    out: Outbox<'a>,
}

impl<'a> Reachability<'a> {
    pub fn new(pairs: &'a mut UnreachablePairs, servers: &'a Servers, out: Outbox<'a>) -> Self {
        Self { pairs, servers, out }
    }

    /// One server reports a peer unreachable. It may pass.
    pub fn reported(&mut self, server: ServerId, peer: ServerId) {
        let message = format!(
            "Server {} cannot reach {}, which still has its lease.",
            self.servers.name_of(server),
            self.servers.name_of(peer)
        );
        self.out
            .event(EventKind::ServerUnreachable, EventSubject::Server(peer), message);
    }

    /// `at_fault`: the one of the two that is to leave.
    pub fn set_pair(&mut self, (a, b): (ServerId, ServerId), unreachable: bool, at_fault: Option<ServerId>) {
        let known = |id| self.servers.contains_key(&id);
        if a == b || !known(a) || !known(b) {
            return;
        }
        if !unreachable {
            return self.pairs.remove(a, b);
        }
        if !self.pairs.insert(a, b, at_fault) {
            return;
        }
        let message = format!(
            "Servers {} and {} have not reached one another for long: one of them leaves each group that needs both.",
            self.servers.name_of(a),
            self.servers.name_of(b)
        );
        self.out
            .event(EventKind::ServerUnreachable, EventSubject::Server(b), message);
    }
}
