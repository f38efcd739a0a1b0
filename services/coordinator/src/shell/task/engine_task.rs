//! The one task that owns the [`Engine`]. It feeds it inputs with the time, makes its commands durable, and sends what
//! follows, with the tokens and certificates that the engine asks for.
//!
//! No effect of a command leaves this task before the command is on stable storage. While one sync runs, inputs queue.
//! They do not wait for snapshots: another thread writes those, from a copy of the state.

use std::collections::HashMap;
use std::time::Duration;

use quorate_types::Place;
use quorate_types::control::{Placed, ToServer};
use quorate_types::limits::COORDINATOR_QUEUE_MAX;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use super::clock::unix_ms;
use super::credentials::Credentials;
use super::handle::{ConnectionOutbox, Handle, Release, TaskInput};
use super::notes;
use crate::exit::Failure;
use crate::log_file::{DurableLog, LogError, SnapshotWritten};
use crate::shell::secrets::PEER_TOKEN_TTL_S;
use quorate_coordinator_core::command::{Reply, Timed};
use quorate_coordinator_core::engine::{Engine, Input, Now, Outgoing, RollCallView, TICK_MS};
use quorate_coordinator_core::ids::{CallId, ConnectionId};

pub struct EngineTask {
    engine: Engine,
    log: Option<DurableLog>,
    /// A snapshot that another thread writes.
    snapshot: Option<JoinHandle<Result<SnapshotWritten, LogError>>>,
    credentials: Credentials,
    started: Instant,
    outboxes: HashMap<ConnectionId, ConnectionOutbox>,
    calls: HashMap<CallId, oneshot::Sender<Reply>>,
    calls_made: CallId,
    /// Answers from the state, until that is durable.
    releases: Vec<Release>,
    events: watch::Sender<u64>,
    roll_call: watch::Sender<Option<RollCallView>>,
    /// The end of the log as it is durable.
    place: Option<Place>,
}

/// Inputs taken in before one sync.
const BATCH_INPUTS: usize = 256;

impl EngineTask {
    pub fn new(
        engine: Engine,
        log: DurableLog,
        credentials: Credentials,
        started: Instant,
    ) -> (Self, Handle, mpsc::Receiver<TaskInput>) {
        let (inputs, receiver) = mpsc::channel(COORDINATOR_QUEUE_MAX);
        let (events, events_seen) = watch::channel(engine.state().events.last_seq());
        let (roll_call, roll_call_seen) = watch::channel(engine.roll_call(0));
        let task = Self {
            place: engine.state().history.place(),
            engine,
            log: Some(log),
            snapshot: None,
            credentials,
            started,
            outboxes: HashMap::new(),
            calls: HashMap::new(),
            calls_made: 0,
            releases: Vec::new(),
            events,
            roll_call,
        };
        let handle = Handle {
            inputs,
            events: events_seen,
            roll_call: roll_call_seen,
        };
        (task, handle, receiver)
    }

    /// Runs until `stop` changes, or the disk fails.
    pub async fn run(
        mut self,
        mut inputs: mpsc::Receiver<TaskInput>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let mut tick = interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renew = interval(Duration::from_secs(PEER_TOKEN_TTL_S / 2));
        renew.tick().await;
        let mut taken = Vec::with_capacity(BATCH_INPUTS);
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => return self.leave_snapshot().await,
                _ = tick.tick() => self.feed(Input::Tick),
                _ = renew.tick() => self.feed(Input::RenewPeerTokens),
                _ = inputs.recv_many(&mut taken, BATCH_INPUTS) => {}
            }
            for input in taken.drain(..) {
                self.take(input);
            }
            self.commit().await?;
        }
    }

    fn take(&mut self, input: TaskInput) {
        match input {
            TaskInput::Register {
                connection,
                from,
                outbox,
                register,
                certificate,
            } => {
                self.outboxes.insert(connection, outbox);
                let (at, shown) = ((connection, from), certificate.as_ref());
                let candidate = self.credentials.candidate(&self.engine, at, *register, shown);
                self.feed(Input::Register(candidate));
            }
            TaskInput::ClientKeys(keys) => self.feed(Input::ClientKeys(keys)),
            TaskInput::Message { connection, message } => {
                self.feed(Input::Message { connection, message });
            }
            TaskInput::Closed { connection } => {
                self.outboxes.remove(&connection);
                self.feed(Input::Closed { connection });
            }
            TaskInput::Command { command, reply } => {
                self.calls_made += 1;
                let call = self.calls_made;
                self.calls.insert(call, reply);
                self.feed(Input::Command { call, command });
            }
            TaskInput::EndRollCall => self.feed(Input::EndRollCall),
            TaskInput::Read(read) => self.releases.push(read(self.engine.state())),
            TaskInput::Quote {
                sla,
                replaces,
                answer,
            } => {
                let quote = self.engine.quote(&sla, replaces);
                self.releases.push(Box::new(move || drop(answer.send(quote))));
            }
        }
    }

    fn feed(&mut self, input: Input) {
        self.engine.take(self.now(), input);
    }

    fn now(&self) -> Now {
        Now {
            ms: self.started.elapsed().as_millis() as u64,
            unix_ms: unix_ms(),
        }
    }

    /// Makes the engine's commands durable, then sends what follows from them.
    async fn commit(&mut self) -> Result<(), Failure> {
        let output = self.engine.take_output();
        output.notes.iter().for_each(notes::write);
        if let Some(behind) = output.behind {
            // Nothing leaves, not even the commands to the log.
            return Err(Failure::behind(&behind));
        }
        if !output.commands.is_empty() {
            self.append(output.commands).await?;
        }
        self.place = output.place;
        for outgoing in output.outgoing {
            self.send_out(outgoing);
        }
        for release in std::mem::take(&mut self.releases) {
            release();
        }
        let last = self.engine.state().events.last_seq();
        self.events
            .send_if_modified(|seen| std::mem::replace(seen, last) != last);
        let roll_call = self.engine.roll_call(self.now().ms);
        self.roll_call
            .send_if_modified(|seen| std::mem::replace(seen, roll_call.clone()) != roll_call);
        Ok(())
    }

    /// An orderly stop leaves nothing to replay: the next start may be of another release.
    async fn leave_snapshot(&mut self) -> Result<(), Failure> {
        self.commit().await?;
        // Both would write the same file.
        if let Some(snapshot) = self.snapshot.take() {
            let _unused = snapshot.await.is_ok();
        }
        let mut log = self.log.take().expect("the log is put back after each use");
        let state = self.engine.state().clone();
        let written = tokio::task::spawn_blocking(move || log.rewrite(&state)).await;
        written.map_err(|e| Failure::disk(format!("writing the log: {e}")))??;
        Ok(())
    }

    async fn append(&mut self, commands: Vec<Timed>) -> Result<(), Failure> {
        self.with_log(|log| log.append(commands)).await?;
        let log = self.log.as_mut().expect("the log is put back after each use");
        if log.wants_snapshot() {
            let (begun, state) = (log.begin_snapshot(), self.engine.state().clone());
            self.snapshot = Some(tokio::task::spawn_blocking(move || begun.write(&state)));
        }
        let is_due = log.awaits_snapshot();
        if self
            .snapshot
            .as_ref()
            .is_some_and(|snapshot| is_due || snapshot.is_finished())
        {
            self.put_snapshot_in_place().await?;
        }
        Ok(())
    }

    async fn put_snapshot_in_place(&mut self) -> Result<(), Failure> {
        let Some(snapshot) = self.snapshot.take() else {
            return Ok(());
        };
        let written = snapshot
            .await
            .map_err(|e| Failure::disk(format!("writing a snapshot: {e}")))??;
        self.with_log(|log| log.put_in_place(written)).await
    }

    /// Works on the log in a thread that may wait for the disk.
    async fn with_log(
        &mut self,
        work: impl FnOnce(&mut DurableLog) -> Result<(), LogError> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut log = self.log.take().expect("the log is put back after each use");
        let worked = tokio::task::spawn_blocking(move || {
            work(&mut log)?;
            Ok::<_, Failure>(log)
        });
        let worked = worked.await;
        self.log = Some(worked.map_err(|e| Failure::disk(format!("writing the log: {e}")))??);
        Ok(())
    }

    fn send_out(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Message(connection, message) => self.send(connection, message),
            Outgoing::Welcome {
                connection,
                mut welcome,
                certificate,
            } => {
                welcome.peer_token = self.credentials.peer_token(welcome.server_id);
                welcome.certificate_pem = certificate.and_then(|order| self.credentials.issue(&order));
                self.send(connection, ToServer::Welcome(welcome));
            }
            Outgoing::Certificate { connection, order } => {
                if let Some(certificate_pem) = self.credentials.issue(&order) {
                    self.send(connection, ToServer::Certificate { certificate_pem });
                }
            }
            Outgoing::PeerToken { connection, server } => {
                let token = self.credentials.peer_token(server);
                self.send(connection, ToServer::PeerToken { token });
            }
            Outgoing::Close(connection) => {
                self.outboxes.remove(&connection);
            }
            // The caller learns at once that it has no answer.
            Outgoing::Unanswered { call } => drop(self.calls.remove(&call)),
            Outgoing::Answer { call, reply } => {
                // A caller that has ceased to wait does not need it.
                let _ = self.calls.remove(&call).map(|waiting| waiting.send(reply));
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, message: ToServer) {
        let Some(outbox) = self.outboxes.get(&connection) else {
            return;
        };
        let place = self.place;
        if outbox.try_send(Placed { place, message }).is_err() {
            warn!(connection, "a server does not read its messages; disconnected");
            self.outboxes.remove(&connection);
            self.feed(Input::Closed { connection });
        }
    }
}
