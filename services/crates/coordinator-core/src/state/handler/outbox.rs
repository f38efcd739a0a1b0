//! The outputs of one command: effects for the engine, events for the API.

use quorate_types::control::ToServer;
use quorate_types::place::IssuedEpoch;
use quorate_types::{ConfigDigest, GroupConfig, ServerId};

use crate::command::{Effect, Refused, Reply};
use crate::state::entity::{Event, EventKind, EventSubject};
use crate::state::table::Events;

#[derive(Debug)]
pub struct Outbox<'a> {
    events: &'a mut Events,
    effects: &'a mut Vec<Effect>,
    now_ms: u64,
}

impl<'a> Outbox<'a> {
    pub fn new(events: &'a mut Events, effects: &'a mut Vec<Effect>, now_ms: u64) -> Self {
        Self {
            events,
            effects,
            now_ms,
        }
    }

    /// The same outbox, for a handler made by another.
    pub fn reborrow(&mut self) -> Outbox<'_> {
        Outbox::new(self.events, self.effects, self.now_ms)
    }

    /// The time of the command.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub fn reply(&mut self, reply: Reply) {
        self.effects.push(Effect::Reply(reply));
    }

    pub fn accept(&mut self, server: ServerId, joined: bool) {
        self.effects.push(Effect::Accept { server, joined });
    }

    pub fn refuse(&mut self, (code, message): Refused) {
        self.effects.push(Effect::Refuse { code, message });
    }

    pub fn disconnect(&mut self, server: ServerId) {
        self.effects.push(Effect::Disconnect { server });
    }

    pub fn send(&mut self, server: ServerId, message: ToServer) {
        self.effects.push(Effect::Send { server, message });
    }

    pub fn issued(&mut self, config: &GroupConfig) {
        self.effects.push(Effect::Issued(IssuedEpoch {
            group_id: config.group_id,
            epoch: config.epoch,
            digest: ConfigDigest::of(config),
        }));
    }

    pub fn event(&mut self, kind: EventKind, subject: EventSubject, message: String) {
        let (group_id, server_id, epoch, status) = match subject {
            EventSubject::Group(id, epoch, status) => (Some(id), None, epoch, status),
            EventSubject::Server(id) => (None, Some(id), None, None),
            EventSubject::Replica(id, server) => (Some(id), Some(server), None, None),
        };
        self.events.push(Event {
            seq: 0,
            at_ms: self.now_ms,
            kind,
            group_id,
            server_id,
            epoch,
            status,
            message,
        });
    }
}
