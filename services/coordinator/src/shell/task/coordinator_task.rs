//! The one task that owns the [`Coordinator`]. It feeds it events with the time, has its writes done, and sends what
//! follows, with the tokens and certificates that the engine asks for.
//!
//! While a batch is not agreed, inputs queue. Other threads write the log and its snapshots.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorate_quorum::{Change, Event as QuorumEvent, MemberId, Members, RoleView};
use quorate_types::control::{FlowReport, Placed, SharingReport, ToServer};
use quorate_types::limits::COORDINATOR_QUEUE_MAX;
use quorate_types::{Place, ServerId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tracing::{info, warn};

use super::calls::{Calls, LeaderAddresses, Waiting};
use super::clock::unix_ms;
use super::credentials::Credentials;
use super::handle::{Asked, ConnectionOutbox, Handle, QuorumChange, Reported, TaskInput};
use super::notes;
use crate::disk::{Disk, Done, Order, SnapshotOrder};
use crate::exit::Failure;
use crate::shell::members::{Contact, ForTask, FromMember, JoinAnswer, Links};
use quorate_coordinator_core::command::Command as LogCommand;
use quorate_coordinator_core::coordinator::{Command, Coordinator, Event};
use quorate_coordinator_core::engine::{Input, Now, Outgoing, RollCallView, TICK_MS, lacks};
use quorate_coordinator_core::ids::{CallId, ConnectionId};
use quorate_coordinator_core::view::QuorumView;

use crate::shell::secrets::PEER_TOKEN_TTL_S;

/// Tasks that compute with servers' reports.
pub struct Reports {
    pub sharing: mpsc::Sender<Reported<SharingReport>>,
    pub flows: mpsc::Sender<Reported<FlowReport>>,
}

pub struct CoordinatorTask {
    coordinator: Coordinator,
    disk: Disk,
    members: ForTask,
    /// The members, as links know them.
    known: Members,
    /// Addresses of each for servers and callers.
    contacts: BTreeMap<MemberId, Contact>,
    /// The log has grown: a snapshot is due.
    has_grown: bool,
    credentials: Credentials,
    data_dir: PathBuf,
    started: Instant,
    outboxes: HashMap<ConnectionId, ConnectionOutbox>,
    reports: Reports,
    calls: Calls,
    events: watch::Sender<u64>,
    quorum: watch::Sender<Option<QuorumView>>,
    roll_call: watch::Sender<Option<RollCallView>>,
}

/// Inputs taken in before one batch.
const BATCH_INPUTS: usize = 256;
/// Members, and some that were members or will be.
const CONTACTS_MAX: usize = 16;
/// An orderly stop waits so long for the last batch.
const LAST_BATCH: Duration = Duration::from_secs(2);

impl CoordinatorTask {
    pub fn new(
        coordinator: Coordinator,
        disk: Disk,
        members: ForTask,
        credentials: Credentials,
        data_dir: PathBuf,
        started: Instant,
        reports: Reports,
    ) -> (Self, Handle, mpsc::Receiver<TaskInput>) {
        let (inputs, receiver) = mpsc::channel(COORDINATOR_QUEUE_MAX);
        let (events, events_seen) = watch::channel(0);
        let (quorum, quorum_seen) = watch::channel(None);
        let (roll_call, roll_call_seen) = watch::channel(None);
        let contacts = BTreeMap::from([(members.own.member, members.own.contact.clone())]);
        let task = Self {
            coordinator,
            disk,
            members,
            known: Members::default(),
            contacts,
            has_grown: false,
            credentials,
            data_dir,
            started,
            outboxes: HashMap::new(),
            reports,
            calls: Calls::default(),
            events,
            quorum,
            roll_call,
        };
        let handle = Handle {
            inputs,
            events: events_seen,
            quorum: quorum_seen,
            roll_call: roll_call_seen,
        };
        (task, handle, receiver)
    }

    /// Runs until `stop` changes, or it cannot go on.
    pub async fn run(
        mut self,
        mut inputs: mpsc::Receiver<TaskInput>,
        mut done: UnboundedReceiver<Done>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let mut tick = interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renew = interval(Duration::from_secs(PEER_TOKEN_TTL_S / 2));
        renew.tick().await;
        let mut taken = Vec::with_capacity(BATCH_INPUTS);
        loop {
            let is_open = self.coordinator.is_open(self.now().ms);
            tokio::select! {
                biased;
                _ = stop.changed() => return self.stop(done).await,
                // First, so that others' messages hold up no heartbeat.
                _ = tick.tick() => self.tick(),
                done = done.recv() => self.took_place(done.ok_or_else(disk_is_gone)?)?,
                Some(input) = self.members.inputs.recv() => self.hear(input),
                _ = renew.tick(), if is_open => self.feed(Event::Input(Input::RenewPeerTokens)),
                _ = inputs.recv_many(&mut taken, BATCH_INPUTS), if is_open => {}
            }
            for input in taken.drain(..) {
                self.take(input);
            }
            self.carry_out()?;
        }
    }

    fn tick(&mut self) {
        self.feed(Event::Tick);
        self.care_for_secrets();
        self.show_quorum();
    }

    fn show_quorum(&mut self) {
        let mut view = QuorumView::of(&self.coordinator.view(self.now().ms));
        for (id, contact) in &self.contacts {
            view.tell_contact(*id, &contact.control, &contact.http);
        }
        let transports = self.members.links.iter().flat_map(Links::transports);
        transports.for_each(|(id, transport)| view.tell_transport(id, transport));
        self.quorum.send_replace(Some(view));
    }

    /// A leader encrypts the keys again while the fleet's key is being replaced.
    fn care_for_secrets(&mut self) {
        let leads = self.coordinator.engine().is_some() && self.coordinator.is_open(self.now().ms);
        if leads && let Some(secrets) = self.credentials.sealed_again() {
            let (call, secrets) = (self.calls.next(), Box::new(secrets));
            let command = LogCommand::UseSecrets { secrets };
            self.feed(Event::Input(Input::Command { call, command }));
        }
    }

    fn took_place(&mut self, done: Done) -> Result<(), Failure> {
        let event = match done {
            Done::Written(id) => QuorumEvent::Written { id },
            Done::Compacted(through) => QuorumEvent::Compacted { through },
            Done::Loaded(snapshot) => QuorumEvent::SnapshotLoaded { snapshot },
            Done::Grown => {
                self.has_grown = true;
                return Ok(());
            }
            Done::Failed(error) => return Err(error.into()),
        };
        self.feed(Event::Quorum(event));
        Ok(())
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
                let Some(engine) = self.coordinator.engine() else {
                    let leader = self.leader_control();
                    let message = ToServer::NotLeader { leader };
                    let _is_gone = outbox.try_send(Placed { place: None, message }).is_err();
                    return;
                };
                self.outboxes.insert(connection, outbox);
                let (at, shown) = ((connection, from), certificate.as_ref());
                let candidate = self.credentials.candidate(engine, at, *register, shown);
                self.feed(Event::Input(Input::Register(candidate)));
            }
            TaskInput::ClientKeys(keys) => self.feed(Event::Input(Input::ClientKeys(keys))),
            TaskInput::Message { connection, message } => {
                self.feed(Event::Input(Input::Message { connection, message }));
            }
            TaskInput::Closed { connection } => {
                self.outboxes.remove(&connection);
                self.feed(Event::Input(Input::Closed { connection }));
            }
            TaskInput::Command { command, reply } => {
                let call = self.calls.add(Waiting::Command(reply));
                self.feed(Event::Input(Input::Command { call, command }));
            }
            TaskInput::ChangeQuorum { change, reply } => {
                let call = self.calls.add(Waiting::Change(reply));
                self.feed(Event::Quorum(match change {
                    QuorumChange::Members(change) => QuorumEvent::Change { call, change },
                    QuorumChange::StepDown { to } => QuorumEvent::StepDown { call, to },
                }));
            }
            TaskInput::RaiseFleetVersion { reply } => {
                let call = self.calls.add(Waiting::Command(reply));
                let members = self.members_behind();
                self.feed(Event::Input(Input::RaiseFleetVersion { call, members }));
            }
            TaskInput::EndRollCall => self.feed(Event::Input(Input::EndRollCall)),
            TaskInput::Ask(asked) => {
                let call = self.calls.add(Waiting::Ask(asked));
                self.feed(Event::Read { call });
            }
        }
    }

    fn hear(&mut self, input: FromMember) {
        match input {
            FromMember::Message { from, message } => {
                self.feed(Event::Quorum(QuorumEvent::Received { from, message }));
            }
            FromMember::Greeted {
                member,
                address,
                contact,
            } => {
                self.note_contact(member, contact);
                if let Some(links) = &mut self.members.links {
                    links.greet(member, address);
                }
            }
            FromMember::Disconnected { member } => {
                self.feed(Event::Quorum(QuorumEvent::Disconnected { member }));
            }
            FromMember::Closed { member } => self.feed(Event::Quorum(QuorumEvent::Closed { member })),
            FromMember::Join {
                member,
                address,
                answer,
            } => self.join(member, address, answer),
        }
    }

    fn note_contact(&mut self, member: MemberId, contact: Contact) {
        if self.contacts.len() >= CONTACTS_MAX {
            let members = self.coordinator.members();
            self.contacts.retain(|id, _| members.get(*id).is_some());
        }
        self.contacts.insert(member, contact);
    }

    /// Addresses of the one that leads, if it is another.
    fn leader_addresses(&self) -> LeaderAddresses {
        let leader = self.coordinator.leader();
        let member = leader.and_then(|leader| self.coordinator.members().get(leader));
        let contact = leader.and_then(|leader| self.contacts.get(&leader));
        let known = |address: &String| Some(address.clone()).filter(|address| !address.is_empty());
        LeaderAddresses {
            http: contact.and_then(|contact| known(&contact.http)),
            members: member.and_then(|member| known(&member.address)),
        }
    }

    fn leader_control(&self) -> Option<String> {
        let contact = self.contacts.get(&self.coordinator.leader()?)?;
        Some(contact.control.clone()).filter(|address| !address.is_empty())
    }

    /// A member is taken in, or moves. A repetition changes nothing.
    fn join(&mut self, id: MemberId, address: String, answer: oneshot::Sender<JoinAnswer>) {
        let known = self
            .coordinator
            .members()
            .get(id)
            .map(|member| member.address.clone());
        let change = match known {
            Some(known) if known == address => {
                let _waits_no_more = answer.send(JoinAnswer::TakenIn).is_err();
                return;
            }
            Some(_) => Change::Move { id, address },
            None => Change::AddLearner { id, address },
        };
        let call = self.calls.add(Waiting::Join(answer));
        self.feed(Event::Quorum(QuorumEvent::Change { call, change }));
    }

    fn feed(&mut self, event: Event) {
        let now = self.now();
        self.coordinator.take(now, event);
    }

    fn now(&self) -> Now {
        Now {
            ms: self.started.elapsed().as_millis() as u64,
            unix_ms: unix_ms(),
        }
    }

    fn carry_out(&mut self) -> Result<(), Failure> {
        let now = self.now();
        for command in self.coordinator.take_commands(now) {
            match command {
                Command::Write(write) => {
                    if write.snapshot.is_some()
                        && let Some(fleet) = self.members.own.fleet.get()
                    {
                        self.disk.order(Order::Fleet(*fleet));
                    }
                    self.disk.order(Order::Write(write));
                }
                Command::LoadSnapshot => self.disk.order(Order::Load),
                Command::ToMember { to, message } => {
                    if let Some(links) = &self.members.links {
                        links.send(to, message);
                    }
                }
                Command::Release { place, outgoing } => {
                    for outgoing in outgoing {
                        self.send_out(place, outgoing);
                    }
                }
                Command::Show { call } => self.show(call),
                Command::Done { call } => {
                    // The caller may look at once.
                    self.show_quorum();
                    self.calls.done(call);
                }
                Command::Refused { call, why } => self.calls.refuse(call, why, self.leader_addresses()),
                Command::Note(note) => notes::write(&note),
                Command::Role(role) => self.role(role),
                Command::End(ending) => return Err(Failure::of(&ending, &self.data_dir)),
            }
        }
        if self.has_grown
            && let Some(order) = self.snapshot()
        {
            self.has_grown = false;
            self.disk.order(Order::Snapshot(Box::new(order)));
        }
        self.know_members();
        self.know_fleet_version();
        self.know_secrets()?;
        self.tell_watchers(now);
        Ok(())
    }

    fn know_members(&mut self) {
        let members = self.coordinator.members();
        if *members == self.known {
            return;
        }
        self.known.clone_from(members);
        if let Some(links) = &mut self.members.links {
            links.know(members);
        }
        let own = members.get(self.members.own.member);
        let is_known = own.is_some_and(|own| own.address == self.members.own.address);
        self.members.is_known.send_replace(is_known);
    }

    fn know_fleet_version(&self) {
        if let Some(state) = self.coordinator.agreed_state() {
            let known = &self.members.own.fleet_version;
            known.store(state.fleet_version, Ordering::Relaxed);
        }
    }

    fn know_secrets(&mut self) -> Result<(), Failure> {
        let state = self.coordinator.agreed_state();
        if let Some(secrets) = state.and_then(|state| state.secrets.as_deref()) {
            let leads = self.coordinator.engine().is_some();
            // A snapshot leaves out what they were encrypted with before.
            self.has_grown |= self.credentials.follow(secrets, leads)?;
        }
        Ok(())
    }

    fn role(&mut self, role: RoleView) {
        match role {
            RoleView::Leader { term } => info!(term = term.0, "leads"),
            RoleView::Follower { term, leader } => {
                info!(term = term.0, leader = leader.map(|id| id.to_string()), "follows");
                self.outboxes.clear();
                self.calls.forget_all();
            }
        }
    }

    fn show(&mut self, call: CallId) {
        match self.calls.take_asked(call) {
            Some(Asked::Look(look)) => {
                look(Ok(self.coordinator.agreed_state().expect("it may be shown")));
            }
            Some(Asked::Quote { request, answer }) => {
                let quote = self.coordinator.quote(&request);
                let _waits_no_more = answer.send(Ok(quote.expect("it may be shown"))).is_err();
            }
            Some(Asked::QuoteGuarantee {
                project_id,
                guarantee,
                answer,
            }) => {
                let reply = self.coordinator.quote_guarantee(project_id, &guarantee);
                let _waits_no_more = answer.send(Ok(reply.expect("it may be shown"))).is_err();
            }
            Some(Asked::Servers { only, answer }) => {
                let engine = self.coordinator.engine().expect("it may be shown");
                let _waits_no_more = answer.send(Ok(engine.servers(only))).is_err();
            }
            Some(Asked::FleetVersion(answer)) => {
                let engine = self.coordinator.engine().expect("it may be shown");
                let view = engine.fleet_version(self.members_behind());
                let _waits_no_more = answer.send(Ok(view)).is_err();
            }
            None => {}
        }
    }

    /// Coordinators that cannot read the newest forms, and the next step for each.
    fn members_behind(&self) -> Vec<String> {
        let told = |id: &MemberId| self.contacts.get(id).map(|contact| contact.fleet_versions);
        let ids = self.coordinator.members().ids();
        ids.filter_map(|id| Some(format!("coordinator {id} {}", lacks(told(&id))?)))
            .collect()
    }

    fn tell_watchers(&mut self, now: Now) {
        if let Some(state) = self.coordinator.agreed_state() {
            let last = state.events.last_seq();
            self.events
                .send_if_modified(|seen| std::mem::replace(seen, last) != last);
        }
        if let Some(engine) = self.coordinator.engine() {
            let roll_call = engine.roll_call(now.ms);
            self.roll_call
                .send_if_modified(|seen| std::mem::replace(seen, roll_call.clone()) != roll_call);
        }
    }

    fn snapshot(&self) -> Option<SnapshotOrder> {
        let due = self.coordinator.snapshot_due()?;
        Some(SnapshotOrder {
            point: due.point,
            members: due.members,
            state: due.state.clone(),
            entries: due.entries,
        })
    }

    /// An orderly stop leaves nothing to replay: the next start may be of another release.
    async fn stop(mut self, mut done: UnboundedReceiver<Done>) -> Result<(), Failure> {
        self.carry_out()?;
        let deadline = Instant::now() + LAST_BATCH;
        while self.coordinator.agreed_state().is_none() {
            let Ok(done) = timeout_at(deadline, done.recv()).await else {
                break;
            };
            self.took_place(done.ok_or_else(disk_is_gone)?)?;
            self.carry_out()?;
        }
        let last = self.snapshot();
        let disk = self.disk;
        let stopped = tokio::task::spawn_blocking(move || disk.stop(last)).await;
        stopped.map_err(|e| Failure::disk(format!("writing the log: {e}")))?;
        // A write that failed is the last word.
        while let Ok(done) = done.try_recv() {
            if let Done::Failed(error) = done {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn send_out(&mut self, place: Option<Place>, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Message(connection, message) => self.send(place, connection, message),
            Outgoing::Welcome {
                connection,
                mut welcome,
                certificate,
            } => {
                welcome.term = Some(self.coordinator.term());
                welcome.peer_token = self.credentials.peer_token(welcome.server_id);
                welcome.certificate_pem = certificate.and_then(|order| self.credentials.issue(&order));
                self.send(place, connection, ToServer::Welcome(welcome));
            }
            Outgoing::Certificate { connection, order } => {
                if let Some(certificate_pem) = self.credentials.issue(&order) {
                    self.send(place, connection, ToServer::Certificate { certificate_pem });
                }
            }
            Outgoing::PeerToken { connection, server } => {
                let token = self.credentials.peer_token(server);
                self.send(place, connection, ToServer::PeerToken { token });
            }
            Outgoing::Close(connection) => {
                self.outboxes.remove(&connection);
            }
            Outgoing::Sharing {
                connection,
                server,
                report,
            } => self.pass_on(connection, server, report, |reports| &reports.sharing),
            Outgoing::Flows {
                connection,
                server,
                report,
            } => self.pass_on(connection, server, report, |reports| &reports.flows),
            Outgoing::Unanswered { call } => self.calls.forget(call),
            Outgoing::Answer { call, reply } => self.calls.answer(call, reply),
        }
    }

    /// A report that finds no room is lost.
    fn pass_on<T>(
        &self,
        connection: ConnectionId,
        server: ServerId,
        report: T,
        to: impl Fn(&Reports) -> &mpsc::Sender<Reported<T>>,
    ) {
        if let Some(outbox) = self.outboxes.get(&connection) {
            let outbox = outbox.downgrade();
            let _is_full = to(&self.reports)
                .try_send(Reported {
                    server,
                    outbox,
                    report,
                })
                .is_err();
        }
    }

    fn send(&mut self, place: Option<Place>, connection: ConnectionId, message: ToServer) {
        let Some(outbox) = self.outboxes.get(&connection) else {
            return;
        };
        if outbox.try_send(Placed { place, message }).is_err() {
            warn!(connection, "a server does not read its messages; disconnected");
            // The connection's own task says that it is closed, as the outbox is dropped.
            self.outboxes.remove(&connection);
        }
    }
}

/// An assertion ended its thread, and said why.
fn disk_is_gone() -> Failure {
    Failure::disk("the thread that writes the log has ended")
}
