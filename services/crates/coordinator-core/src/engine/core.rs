//! The engine: inputs, each to its handler.

use std::collections::BTreeSet;

use quorate_guarantees::Guarantee;
use quorate_types::ServerId;
use quorate_types::control::{ToCoordinator, ToServer};
use quorate_types::planted::{self, Bug};
use quorate_types::sla::Quote;
use serde_json::Value;
use uuid::Uuid;

use super::evidence;
use super::fleet_version;
use super::io::{Candidate, Input, Note, Now, Outgoing, Output, RollCallView, Settings};
use super::messages::Messages;
use super::refusals::Refusals;
use super::registrar::{Registrar, registration_of};
use super::roll_call::RollCall;
use super::sequencer::Sequencer;
use crate::command::{Command, Effect, QuoteRequest, Reply};
use crate::ids::{CallId, ConnectionId};
use crate::planner::Planner;
use crate::state::CoordinatorState;
use crate::view::{FleetVersionView, ServerView};

#[derive(Debug)]
pub struct Engine {
    sequencer: Sequencer,
    refusals: Refusals,
    settings: Settings,
    /// Until it is over, nothing is issued.
    roll_call: Option<Box<RollCall>>,
    is_stuck: bool,
}

impl Engine {
    /// Begins with a state as the log has it, when the clock of leases reads `now_ms`: every server gets a full lease.
    /// `first` are the commands of this start.
    pub fn new(state: CoordinatorState, settings: Settings, first: Vec<Command>, now: Now) -> Self {
        let planner = Planner::new(&state, settings.leases, settings.suspicions, now.ms);
        let alive = state.servers.values().filter(|server| server.alive);
        let awaited: BTreeSet<ServerId> = alive.map(|server| server.server_id).collect();
        let servers = awaited.len();
        let (lease_ms, is_first) = (settings.leases.lease_ms, state.is_first_start());
        let roll_call = RollCall::new(awaited, first, lease_ms, is_first, now.ms);
        let mut engine = Self {
            sequencer: Sequencer::new(state, planner),
            refusals: Refusals::default(),
            settings,
            roll_call: Some(Box::new(roll_call)),
            is_stuck: false,
        };
        if servers > 0 {
            engine.sequencer.note(Note::RollCallBegan { servers });
        }
        if planted::on(Bug::RollCallSkipped) {
            engine.end_roll_call(now);
        }
        engine.close_roll_call(now);
        engine
    }

    /// The same in the middle of a fleet's life: the log is known to be whole, so no roll call is needed. Servers have lost
    /// their coordinator all at once.
    pub fn take_over(state: CoordinatorState, settings: Settings, first: Vec<Command>, now: Now) -> Self {
        let mut planner = Planner::new(&state, settings.leases, settings.suspicions, now.ms);
        planner.took_over(now.ms);
        let mut engine = Self {
            sequencer: Sequencer::new(state, planner),
            refusals: Refusals::default(),
            settings,
            roll_call: None,
            is_stuck: false,
        };
        engine.apply_first(now, first);
        engine
    }

    /// The state, with commands that are not durable yet: a view of it may be sent after the next output's commands are.
    pub fn state(&self) -> &CoordinatorState {
        self.sequencer.state()
    }

    /// The state, when it decides no more.
    pub fn into_state(self) -> CoordinatorState {
        self.sequencer.into_state()
    }

    /// A dry run of an admission or a resize; the same holds for its result.
    pub fn quote(&mut self, asked: &QuoteRequest) -> Quote {
        self.sequencer.quote(asked)
    }

    /// A dry run of a change of a project's guarantee.
    pub fn quote_guarantee(&mut self, project_id: Uuid, guarantee: &Guarantee) -> Reply {
        self.sequencer.quote_guarantee(project_id, guarantee)
    }

    /// Whether the coordinator would let the candidate in, if its certificates are right.
    pub fn is_welcome(&self, candidate: &Candidate, unix_ms: u64) -> bool {
        let registration = registration_of(candidate.clone());
        registration.is_ok_and(|registration| self.state().vet(&registration, unix_ms).is_ok())
    }

    /// The roll call, while it runs.
    pub fn roll_call(&self, now_ms: u64) -> Option<RollCallView> {
        self.roll_call.as_ref().map(|roll_call| roll_call.view(now_ms))
    }

    /// The fleet's servers, or one of them.
    pub fn servers(&self, only: Option<ServerId>) -> Vec<ServerView> {
        let state = self.sequencer.state();
        let mut views = match only {
            Some(id) => ServerView::with_id(state, id).into_iter().collect(),
            None => ServerView::all(state),
        };
        for view in &mut views {
            let told = self.sequencer.connected().told_by(view.server_id);
            view.links = told.and_then(|told| told.links.clone());
            view.estimated = told.and_then(|told| told.estimated.clone());
        }
        views
    }

    /// The fleet's version, and what must change before it can be raised. `members`: coordinators that must, in words.
    pub fn fleet_version(&self, members: Vec<String>) -> FleetVersionView {
        fleet_version::view(&self.sequencer, members)
    }

    /// Takes an input in. After a proof that the log is behind, none counts.
    pub fn take(&mut self, now: Now, input: Input) {
        if self.sequencer.is_behind() {
            return;
        }
        match input {
            Input::Register(candidate) => self.register(now, candidate),
            Input::Message { connection, message } => self.message(now, connection, message),
            Input::Closed { connection } => self.closed(now, connection),
            Input::Command { call, command } => self.command_or_hold(now, call, command),
            Input::RaiseFleetVersion { call, members } => self.raise_fleet_version(now, call, members),
            Input::ClientKeys(keys) => self.use_client_keys(keys),
            Input::RenewPeerTokens => self.renew_peer_tokens(),
            Input::EndRollCall => self.end_roll_call(now),
            Input::Tick => self.tick(now),
        }
        self.close_roll_call(now);
    }

    /// The output of all inputs since the last call. The caller makes its commands durable, then sends the rest.
    pub fn take_output(&mut self) -> Output {
        self.sequencer.take_output()
    }

    fn register(&mut self, now: Now, candidate: Candidate) {
        if let Some(behind) = evidence::in_registration(self.state(), &candidate) {
            return self.sequencer.find_behind(behind);
        }
        let mut registrar = Registrar::new(&mut self.sequencer, &mut self.refusals, &self.settings, now);
        match &mut self.roll_call {
            Some(roll_call) => registrar.hear(candidate, roll_call),
            None => registrar.register(candidate),
        }
    }

    fn command_or_hold(&mut self, now: Now, call: CallId, command: Command) {
        if let Some(reply) = fleet_version::too_new(&command, self.state().fleet_version) {
            return self.sequencer.push(Outgoing::Answer { call, reply });
        }
        match &mut self.roll_call {
            Some(roll_call) if command.may_issue_epochs() => {
                if !roll_call.hold_call(call, command, now) {
                    self.sequencer.push(Outgoing::Unanswered { call });
                }
            }
            _ => self.command(now, call, command),
        }
    }

    fn end_roll_call(&mut self, now: Now) {
        if let Some(roll_call) = &mut self.roll_call {
            roll_call.end();
        }
        self.close_roll_call(now);
    }

    /// Takes in what waited for the end of the roll call, if that is over.
    fn close_roll_call(&mut self, now: Now) {
        if !self
            .roll_call
            .as_ref()
            .is_some_and(|roll_call| roll_call.is_over(now))
            || self.sequencer.is_behind()
        {
            return;
        }
        let roll_call = self.roll_call.take().expect("it is over");
        let view = roll_call.view(now.ms);
        if !self.state().is_first_start() {
            let (heard, missing) = (view.heard, view.awaited - view.heard);
            self.sequencer.note(Note::RollCallOver { heard, missing });
        }
        let held = roll_call.into_held();
        self.apply_first(now, held.first);
        self.hear_hangs(now, &held.candidates);
        for candidate in held.candidates {
            self.register(now, candidate);
        }
        let mut is_gone = |server: &ServerId| self.sequencer.connections().of(*server).is_none();
        let away: Vec<ServerId> = held.heard.into_iter().filter(&mut is_gone).collect();
        let servers: Vec<ServerId> = held.overdue.into_iter().filter(is_gone).collect();
        for server in away {
            self.sequencer.planner().await_return(server, now.ms);
        }
        let failed = (!servers.is_empty()).then_some(Command::ServersFailed { servers });
        self.sequencer.propose(now, failed);
        for (call, command) in held.calls {
            self.command(now, call, command);
        }
    }

    /// Commands of this start, for whose answers nobody waits.
    fn apply_first(&mut self, now: Now, first: Vec<Command>) {
        for command in first {
            let effects = self.sequencer.apply(now, command);
            let others = effects
                .into_iter()
                .filter(|effect| !matches!(effect, Effect::Reply(_)));
            others.for_each(|effect| self.sequencer.carry_out(effect));
        }
    }

    /// Takes in what all of them say of themselves before it judges any: when most hang, none is kept out for it.
    fn hear_hangs(&mut self, now: Now, candidates: &[Candidate]) {
        for candidate in candidates {
            if let Some(server) = evidence::holder_of(self.state(), candidate) {
                let hung_ms = candidate.register.hung_ms;
                self.sequencer.planner().hear_hang(server, hung_ms, now.ms);
            }
        }
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

    fn raise_fleet_version(&mut self, now: Now, call: CallId, members: Vec<String>) {
        let view = self.fleet_version(members);
        match fleet_version::refusal(&view) {
            Some(reply) => self.sequencer.push(Outgoing::Answer { call, reply }),
            None => self.command(now, call, Command::RaiseFleetVersion { to: view.newest }),
        }
    }

    fn closed(&mut self, now: Now, connection: ConnectionId) {
        if let Some(roll_call) = &mut self.roll_call {
            roll_call.closed(connection);
            self.sequencer.connections().forget(connection);
        }
        if let Some(server) = self.sequencer.connections().closed(connection) {
            self.sequencer.heard().forget(server);
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
        if let Some(roll_call) = &mut self.roll_call {
            if let Some(Command::ServersFailed { servers }) = failures {
                roll_call.note_overdue(servers);
            }
            for call in roll_call.take_expired_calls(now) {
                self.sequencer.push(Outgoing::Unanswered { call });
            }
            let view = roll_call.view(now.ms);
            if view.is_stuck && !std::mem::replace(&mut self.is_stuck, true) {
                self.sequencer.note(Note::RollCallStuck(view));
            }
            return;
        }
        self.sequencer.propose(now, failures);
        let (planner, state) = self.sequencer.planning();
        let hangs = planner.hangs(state, now.ms);
        self.sequencer.propose(now, hangs);
        let (planner, state) = self.sequencer.planning();
        let suspicions = planner.suspicions(state, now.ms);
        self.sequencer.propose(now, suspicions);
    }
}
