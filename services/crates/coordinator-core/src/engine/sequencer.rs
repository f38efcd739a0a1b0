//! The sequencer: a command gets its place in the log and is applied, and its effects find their connections.

use quorate_guarantees::Guarantee;
use quorate_types::ServerId;
use quorate_types::control::ToServer;
use quorate_types::sla::Quote;
use uuid::Uuid;

use super::connections::Connections;
use super::heard::Heard;
use super::io::{Behind, Note, Now, Outgoing, Output};
use crate::command::{Command, Effect, QuoteRequest, Reply, Timed};
use crate::ids::ConnectionId;
use crate::planner::Planner;
use crate::state::{CoordinatorState, applied, quote, quote_guarantee};

#[derive(Debug)]
pub struct Sequencer {
    state: CoordinatorState,
    planner: Planner,
    connections: Connections,
    heard: Heard,
    output: Output,
}

impl Sequencer {
    pub fn new(state: CoordinatorState, planner: Planner) -> Self {
        Self {
            state,
            planner,
            connections: Connections::default(),
            heard: Heard::default(),
            output: Output::default(),
        }
    }

    pub fn state(&self) -> &CoordinatorState {
        &self.state
    }

    pub fn into_state(self) -> CoordinatorState {
        self.state
    }

    pub fn quote(&mut self, asked: &QuoteRequest) -> Quote {
        quote(&mut self.state, asked)
    }

    /// A dry run of a change of a project's guarantee.
    pub fn quote_guarantee(&mut self, project_id: Uuid, guarantee: &Guarantee) -> Reply {
        quote_guarantee(&mut self.state, project_id, guarantee)
    }

    pub fn planner(&mut self) -> &mut Planner {
        &mut self.planner
    }

    /// The planner, with the state that it plans for.
    pub fn planning(&mut self) -> (&mut Planner, &CoordinatorState) {
        (&mut self.planner, &self.state)
    }

    pub fn connections(&mut self) -> &mut Connections {
        &mut self.connections
    }

    /// To look at.
    pub fn connected(&self) -> &Connections {
        &self.connections
    }

    /// Servers' reports of their groups.
    pub fn heard(&mut self) -> &mut Heard {
        &mut self.heard
    }

    /// Messages that a server may have missed, once it has reported all its groups.
    pub fn corrections(&self, server: ServerId) -> Vec<ToServer> {
        let reports = self.heard.whole(server);
        reports.map_or_else(Vec::new, |reports| {
            self.state
                .corrections(server, |group_id| reports.epoch_of(group_id))
        })
    }

    /// Nothing counts after it.
    pub fn is_behind(&self) -> bool {
        self.output.behind.is_some()
    }

    /// A server proves that the log is behind; the first proof is as good as any.
    pub fn find_behind(&mut self, behind: Behind) {
        self.output.behind.get_or_insert(behind);
    }

    pub fn take_output(&mut self) -> Output {
        let behind = self.output.behind.clone();
        let mut output = std::mem::take(&mut self.output);
        output.place = self.state.history.place();
        // The next call gets the same answer.
        self.output.behind = behind;
        output
    }

    /// Gives a command its place in the log, and applies it. The caller carries out its effects.
    pub fn apply(&mut self, now: Now, command: Command) -> Vec<Effect> {
        let at_ms = now.unix_ms;
        let (effects, issued) = applied(&mut self.state, at_ms, &command);
        self.output.commands.push(Timed {
            at_ms,
            command,
            issued: Some(issued),
        });
        self.planner.observe(&self.state, now.ms);
        effects
    }

    /// Does the same for commands of the planner, and carries out their effects.
    pub fn propose(&mut self, now: Now, commands: impl IntoIterator<Item = Command>) {
        for command in commands {
            for effect in self.apply(now, command) {
                self.carry_out(effect);
            }
        }
    }

    pub fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { server, message } => {
                if let Some(connection) = self.connections.of(server) {
                    self.send(connection, message);
                }
            }
            Effect::Disconnect { server } => {
                self.note(Note::Failed(server));
                if let Some(connection) = self.connections.unbind(server) {
                    self.close(connection);
                }
            }
            Effect::Accept { .. } | Effect::Refuse { .. } | Effect::Issued(_) | Effect::Reply(_) => {
                unreachable!("handled where the command was given: {effect:?}")
            }
        }
    }

    pub fn send(&mut self, connection: ConnectionId, message: ToServer) {
        self.push(Outgoing::Message(connection, message));
    }

    /// Closes a connection: inputs on it count no more.
    pub fn close(&mut self, connection: ConnectionId) {
        self.connections.forget(connection);
        self.push(Outgoing::Close(connection));
    }

    pub fn push(&mut self, outgoing: Outgoing) {
        self.output.outgoing.push(outgoing);
    }

    pub fn note(&mut self, note: Note) {
        self.output.notes.push(note);
    }
}
