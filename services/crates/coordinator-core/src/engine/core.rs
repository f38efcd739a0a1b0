//! The engine: inputs, each to its handler.

use quorate_types::GroupId;
use quorate_types::control::{ToCoordinator, ToServer};
use quorate_types::sla::{Quote, Sla};
use serde_json::Value;

use super::io::{Candidate, Input, Note, Now, Outgoing, Output, Settings};
use super::messages::Messages;
use super::refusals::Refusals;
use super::registrar::{Registrar, registration_of};
use super::sequencer::Sequencer;
use crate::command::{Command, Effect};
use crate::ids::{CallId, ConnectionId};
use crate::planner::Planner;
use crate::state::CoordinatorState;

#[derive(Debug)]
pub struct Engine {
    sequencer: Sequencer,
    refusals: Refusals,
    settings: Settings,
}

impl Engine {
    /// Begins with a state as the log has it, when the clock of leases reads `now_ms`: every server gets a full lease.
    pub fn new(state: CoordinatorState, settings: Settings, now_ms: u64) -> Self {
        let planner = Planner::new(&state, settings.leases, settings.suspicions, now_ms);
        Self {
            sequencer: Sequencer::new(state, planner),
            refusals: Refusals::default(),
            settings,
        }
    }

    /// The state, with commands that are not durable yet: a view of it may be sent after the next output's commands are.
    pub fn state(&self) -> &CoordinatorState {
        self.sequencer.state()
    }

    /// A dry run of an admission or a resize; the same holds for its result.
    pub fn quote(&mut self, sla: &Sla, replaces: Option<GroupId>) -> Quote {
        self.sequencer.quote(sla, replaces)
    }

    /// Whether the coordinator would let the candidate in, if its certificates are right.
    pub fn is_welcome(&self, candidate: &Candidate, unix_ms: u64) -> bool {
        let registration = registration_of(candidate.clone());
        registration.is_ok_and(|registration| self.state().vet(&registration, unix_ms).is_ok())
    }

    pub fn take(&mut self, now: Now, input: Input) {
        match input {
            Input::Register(candidate) => {
                Registrar::new(&mut self.sequencer, &mut self.refusals, &self.settings, now)
                    .register(candidate);
            }
            Input::Message { connection, message } => self.message(now, connection, message),
            Input::Closed { connection } => self.closed(now, connection),
            Input::Command { call, command } => self.command(now, call, command),
            Input::ClientKeys(keys) => self.use_client_keys(keys),
            Input::RenewPeerTokens => self.renew_peer_tokens(),
            Input::Tick => self.tick(now),
        }
    }

    /// The output of all inputs since the last call. The caller makes its commands durable, then sends the rest.
    pub fn take_output(&mut self) -> Output {
        self.sequencer.take_output()
    }

    fn message(&mut self, now: Now, connection: ConnectionId, message: ToCoordinator) {
        Messages::new(&mut self.sequencer, now).message(connection, message);
    }

    fn command(&mut self, now: Now, call: CallId, command: Command) {
        let mut answered = None;
        for effect in self.sequencer.apply(now, command) {
            match effect {
                Effect::Reply(reply) => answered = Some(reply),
                other => self.sequencer.carry_out(other),
            }
        }
        let reply = answered.expect("a command of the API has an answer");
        self.sequencer.push(Outgoing::Answer { call, reply });
    }

    fn closed(&mut self, now: Now, connection: ConnectionId) {
        if let Some(server) = self.sequencer.connections().closed(connection) {
            self.sequencer.planner().disconnected(server, connection, now.ms);
            self.sequencer.note(Note::ConnectionBroke(server));
        }
    }

    fn use_client_keys(&mut self, keys: Value) {
        self.sequencer.note(Note::ClientKeysChanged);
        for (_, connection) in self.sequencer.connections().bound() {
            self.sequencer
                .send(connection, ToServer::ClientKeys { keys: keys.clone() });
        }
        self.settings.client_keys = keys;
    }

    fn renew_peer_tokens(&mut self) {
        for (server, connection) in self.sequencer.connections().bound() {
            self.sequencer.push(Outgoing::PeerToken { connection, server });
        }
    }

    fn tick(&mut self, now: Now) {
        let failures = self.sequencer.planner().failures(now.ms);
        self.sequencer.propose(now, failures);
        let (planner, state) = self.sequencer.planning();
        let hangs = planner.hangs(state, now.ms);
        self.sequencer.propose(now, hangs);
        let (planner, state) = self.sequencer.planning();
        let suspicions = planner.suspicions(state, now.ms);
        self.sequencer.propose(now, suspicions);
    }
}
