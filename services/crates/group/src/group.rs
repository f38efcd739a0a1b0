//! A group composed of its handlers: events in, outputs out.

mod questions;

use quorate_chain::{AppendRequest, Asked, ClientRef, Happened, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::control::ToCoordinator;
use quorate_types::planted::{self, Bug};
use quorate_types::space::Terms;
use quorate_types::{
    Code, ConfigDigest, Durability, Epoch, GroupConfig, GroupId, Index, Micros, Offset, ServerId,
};
use quorate_wire::client::{self, Message, kind};
use quorate_wire::peer::{self, Envelope};
use quorate_wire::{Batch, TraceContext};

use crate::answers;
use crate::appends::refusal_of;
use crate::counters::Counters;
use crate::event::{Event, Request};
use crate::intake::Intake;
use crate::layout_seal::LayoutSeal;
use crate::memory::Memory;
use crate::outcome::Basis;
use crate::output::{Output, Outputs, Record, Report};
use crate::reading::Reading;
use crate::refusal::Refusal;
use crate::spans::Spans;
use crate::throughput::WorkMeter;
use crate::turn::Turn;
use crate::view::View;

#[derive(Debug)]
pub struct Group {
    id: GroupId,
    me: ServerId,
    replica: Replica,
    intake: Intake,
    reading: Reading,
    counters: Counters,
    spans: Spans,
    /// Answers to retries of committed batches, until the round ends: one frame for those of a channel.
    retried: Vec<(ClientRef, u64, Offset)>,
    /// It may lack records that had been durable here, until it is a replica of the chain again.
    is_damaged: bool,
    /// Ticks since the last event that was none.
    quiet_ticks: u32,
    memory: Memory,
    work: WorkMeter,
    seal: LayoutSeal,
}

impl Group {
    /// A group that comes to this server. `is_dropping`: the journal does not yet have the note that an earlier replica
    /// of it was dropped here.
    pub fn new(
        id: GroupId,
        me: ServerId,
        durability: Durability,
        is_dropping: bool,
        hosting: u64,
        now_us: Micros,
    ) -> Self {
        let mut replica = Replica::new(me, durability);
        if is_dropping {
            replica.wait_for_drop();
        }
        Self::with_replica(id, me, replica, hosting, now_us)
    }

    /// A group found on disk. `is_damaged`: it may lack records that had been durable. That is written before
    /// anything else of the group, as the next scan of the disk must know it.
    pub fn recovered(
        id: GroupId,
        me: ServerId,
        replica: Replica,
        is_damaged: bool,
        hosting: u64,
        now_us: Micros,
        out: &mut Outputs,
    ) -> Self {
        let mut group = Self::with_replica(id, me, replica, hosting, now_us);
        group.is_damaged = is_damaged;
        if is_damaged {
            out.journal(group.repaired());
        }
        group
    }

    fn with_replica(id: GroupId, me: ServerId, mut replica: Replica, hosting: u64, now_us: Micros) -> Self {
        replica.pace_catchup();
        replica.hold_commit_notices();
        Self {
            id,
            me,
            replica,
            intake: Intake::default(),
            reading: Reading::new(hosting),
            counters: Counters::new(now_us),
            spans: Spans::default(),
            retried: Vec::new(),
            is_damaged: false,
            quiet_ticks: 0,
            memory: Memory::default(),
            work: WorkMeter::default(),
            seal: LayoutSeal::default(),
        }
    }

    /// Takes in one event. Call [`Group::flush`] after a round of them.
    pub fn step(&mut self, turn: &mut Turn, event: Event, out: &mut Outputs) {
        self.quiet_ticks = match event {
            Event::Tick { .. } => self.quiet_ticks.saturating_add(1),
            _ => 0,
        };
        match event {
            Event::Request { client, request } => self.request(turn, client, request, out),
            Event::Peer { from, epoch, message } => self.peer(turn, from, epoch, message, out),
            Event::Replica(event) => {
                self.step_replica(turn, event, out);
                if self.replica.is_isolated() && !planted::on(Bug::QueueOutlivesHead) {
                    self.turn_away(turn, out);
                }
            }
            Event::Loaded { generation, batches } => {
                if generation == self.reading.generation() {
                    self.step_replica(turn, ReplicaEvent::Loaded { batches }, out);
                }
            }
            Event::Configure(config) => self.configure(turn, *config, out),
            Event::PageRead { read, payloads } => {
                let (reading, mut view) = self.reading(turn, out);
                reading.page_read(read, payloads, &mut view);
            }
            Event::Damaged(damaged) => {
                let (reading, mut view) = self.reading(turn, out);
                reading.damaged(damaged, &mut view);
            }
            Event::Grant(grant) => {
                let (intake, mut view) = self.intake(turn, out);
                intake.grant(&grant, &mut view);
            }
            Event::Assume { epoch, rate_per_s } => {
                if epoch == self.replica.epoch() {
                    self.intake.assume(rate_per_s, turn.now_us);
                }
            }
            Event::Share(share) => {
                let (intake, mut view) = self.intake(turn, out);
                intake.share(share.as_ref(), &mut view);
            }
            Event::Restate => self.restate(out),
            Event::Tick {
                is_coordinator_silent,
            } => self.tick(turn, is_coordinator_silent, out),
            Event::Leave => self.leave(turn, out),
        }
        // A client looks elsewhere now: it does not wait for the end of the round.
        if !self.retried.is_empty() && (!self.replica.is_head() || self.replica.is_isolated()) {
            self.answer_retries(out);
        }
    }

    /// Ends a round: orders what the budget lets through, commits, feeds the successor, answers.
    pub fn flush(&mut self, turn: &mut Turn, out: &mut Outputs) {
        self.replica.set_memory_short(self.memory.is_short(turn));
        self.order_queue(turn, out);
        let acks_from = out.acks.len();
        out.acks.append(&mut self.retried);
        let mut commands = std::mem::take(&mut out.commands);
        self.replica.flush(&mut commands);
        self.carry_out(turn, &mut commands, out);
        out.commands = commands;
        let (intake, mut view) = self.intake(turn, out);
        intake.committed(&mut view);
        intake.answer_attaching(&mut view);
        out.frame_acks(acks_from);
        let (reading, mut view) = self.reading(turn, out);
        reading.serve(&mut view);
        if let Some((layout, end_offset)) = self.seal.end(&self.replica) {
            out.push(Output::Coordinator(ToCoordinator::LayoutSealed {
                group_id: self.id,
                layout,
                end_offset,
            }));
        }
        self.spans.end(&self.replica, turn, out);
        if self.replica.catchup_wanted_bytes() > 0 {
            out.push(Output::CatchupWanted);
        }
        if self.replica.is_commit_notice_pending() {
            out.push(Output::CommitNoticePending);
        }
        self.memory.note(self.held_bytes(), &mut turn.pool);
    }

    fn configure(&mut self, turn: &mut Turn, config: GroupConfig, out: &mut Outputs) {
        if self.replica.contradicts(&config) && !planted::on(Bug::DigestIgnored) {
            return self.refuse_config(config.epoch, out);
        }
        let (former, next) = (self.replica.epoch(), config.epoch);
        let is_other_layout = config.layout != self.replica.layout();
        let begins = next > former;
        if begins {
            self.counters.sample_epoch(self.id, &self.replica, turn);
        }
        self.intake.configure(&config.budget, begins, turn);
        if begins {
            let terms = Terms::of_config(&config);
            self.memory.admit(terms.space().memory_bytes);
            self.intake.keep_to(terms.window_bytes());
        }
        self.step_replica(turn, ReplicaEvent::Configure(Box::new(config)), out);
        if begins {
            self.counters.sample_epoch(self.id, &self.replica, turn);
        }
        if !self.replica.is_head() && !planted::on(Bug::QueueOutlivesHead) {
            let (intake, mut view) = self.intake(turn, out);
            intake.refuse_queue(Code::NotHead, &mut view);
        }
        if self.replica.access().is_suspended() {
            self.suspend(turn, out);
        }
        if is_other_layout {
            let (intake, mut view) = self.intake(turn, out);
            intake.refuse_queue(Code::LayoutChanged, &mut view);
        }
        self.seal.begin(&self.replica);
        // Another server may have been the head in an epoch that did not come here.
        if !self.replica.is_head() || next > former + 1 {
            self.intake.be_deposed(turn.now_us);
        }
        if begins && self.replica.role().is_whole() && std::mem::take(&mut self.is_damaged) {
            out.journal(self.repaired());
        }
    }

    /// Refuses what waits: clients may neither append nor read.
    fn suspend(&mut self, turn: &mut Turn, out: &mut Outputs) {
        let (intake, mut view) = self.intake(turn, out);
        intake.refuse_queue(Code::GroupSuspended, &mut view);
        let (reading, mut view) = self.reading(turn, out);
        reading.refuse_all(Code::GroupSuspended, &mut view);
    }

    /// The log is good as it stands, whatever earlier records are missing.
    fn repaired(&self) -> Record {
        let log = self.replica.log();
        Record::Repaired {
            index: log.last_index(),
            epoch: log.epoch_at(log.last_index()).unwrap_or(0),
            is_damaged: self.is_damaged,
            trimmed: self.replica.trimmed_through(),
        }
    }

    /// The epoch was issued twice: the one that was adopted stays, and the coordinator learns which that is.
    fn refuse_config(&self, epoch: Epoch, out: &mut Outputs) {
        out.push(Output::Report(Report::ConfigRefused { epoch }));
        out.push(Output::Coordinator(self.applied(epoch)));
    }

    fn applied(&self, epoch: Epoch) -> ToCoordinator {
        ToCoordinator::Applied {
            group_id: self.id,
            epoch,
            digest: self.replica.config().map(ConfigDigest::of),
        }
    }

    fn tick(&mut self, turn: &mut Turn, is_coordinator_silent: bool, out: &mut Outputs) {
        self.step_replica(turn, ReplicaEvent::CoordinatorSilent(is_coordinator_silent), out);
        self.step_replica(
            turn,
            ReplicaEvent::Tick {
                vouched_us: turn.vouched_us(),
            },
            out,
        );
        self.counters.account_time(&self.replica, turn.now_us);
        if self.replica.is_isolated() {
            self.turn_away(turn, out);
        }
        let (reading, mut view) = self.reading(turn, out);
        reading.advance_repairs(&mut view);
    }

    /// An isolated head refuses what waits; clients whose batches were ordered have been refused.
    fn turn_away(&mut self, turn: &mut Turn, out: &mut Outputs) {
        let (intake, mut view) = self.intake(turn, out);
        intake.refuse_queue(Code::CutOff, &mut view);
        self.answer_retries(out);
        self.refuse_attaching(Code::CutOff, turn, out);
    }

    /// Refuses the clients whose ATTACH has no answer yet. They may have sent more behind it: ATTACH is refused last, as
    /// nothing reaches a client after that.
    fn refuse_attaching(&mut self, code: Code, turn: &mut Turn, out: &mut Outputs) {
        for client in self.intake.take_unanswered() {
            self.reading.refuse_client(client, code, out);
            let (intake, mut view) = self.intake(turn, out);
            intake.refuse_attach(client, code, &mut view);
            self.forget(client);
        }
    }

    fn answer_retries(&mut self, out: &mut Outputs) {
        let acks_from = out.acks.len();
        out.acks.append(&mut self.retried);
        out.frame_acks(acks_from);
    }

    /// Answers all that waits here.
    fn leave(&mut self, turn: &mut Turn, out: &mut Outputs) {
        let (intake, mut view) = self.intake(turn, out);
        intake.refuse_queue(Code::GroupNotHere, &mut view);
        self.answer_retries(out);
        let mut commands = std::mem::take(&mut out.commands);
        self.replica.leave(&mut commands);
        self.carry_out(turn, &mut commands, out);
        out.commands = commands;
        let (reading, mut view) = self.reading(turn, out);
        reading.leave(&mut view);
        self.refuse_attaching(Code::GroupNotHere, turn, out);
        self.memory.give_back(&mut turn.pool);
    }

    /// The group is in quarantine: its part of what groups share is for others.
    pub(crate) fn give_back(&mut self, turn: &mut Turn) {
        self.memory.give_back(&mut turn.pool);
        turn.abandon_repairs(self.reading.repair_places());
    }

    /// States anew, behind everything else, where the log begins and ends: records that stated it were lost.
    fn restate(&self, out: &mut Outputs) {
        let log = self.replica.log();
        if self.replica.durability() != Durability::Persistent {
            return;
        }
        let base = log.base();
        if base.index > 0 {
            out.journal(Record::Base {
                base: base.encode(),
                index: base.index,
                epoch: base.epoch,
            });
        }
        if log.last_index() > 0 {
            // No truncation of the protocol's: nobody waits for this number.
            out.journal(Record::Truncated {
                index: log.last_index(),
                number: 0,
            });
        }
    }
}

/// The replica: its events and its commands.
impl Group {
    fn step_replica(&mut self, turn: &mut Turn, event: ReplicaEvent, out: &mut Outputs) {
        let arriving = Spans::arriving(&self.replica, turn, &event);
        let acks_from = out.acks.len();
        let mut commands = std::mem::take(&mut out.commands);
        let before = self.replica.log().last_index();
        self.replica.step(turn.now_us, event, &mut commands);
        assert!(
            !planted::is_poison(self.id.0.as_u128(), before, self.replica.log().last_index()),
            "{}",
            planted::POISON
        );
        self.carry_out(turn, &mut commands, out);
        out.commands = commands;
        self.retried.extend(out.acks.drain(acks_from..));
        if let Some(arriving) = arriving {
            self.spans.begin(&self.replica, arriving);
        }
    }

    fn peer(
        &mut self,
        turn: &mut Turn,
        from: ServerId,
        epoch: Epoch,
        message: peer::Message,
        out: &mut Outputs,
    ) {
        match message {
            peer::Message::Fetch { index } => self.serve_fetch(turn, from, index, out),
            peer::Message::Fetched { index, batch } => {
                let (reading, mut view) = self.reading(turn, out);
                reading.fetched(from, index, batch, &mut view);
            }
            message => self.step_replica(turn, ReplicaEvent::Peer { from, epoch, message }, out),
        }
    }

    /// Puts outputs for the replica's commands. Acks go to `out.acks`, and to no frame yet.
    fn carry_out(&mut self, turn: &mut Turn, commands: &mut Vec<ReplicaCommand>, out: &mut Outputs) {
        for command in commands.drain(..) {
            match command {
                ReplicaCommand::Send { to, message } => {
                    let envelope = Envelope {
                        group_id: self.id,
                        epoch: self.replica.epoch(),
                        message,
                    };
                    out.push(Output::Peer { to, envelope });
                }
                ReplicaCommand::Persist(batch) => out.journal(Record::Batch(batch)),
                ReplicaCommand::PersistBase { base, index, epoch } => {
                    out.journal(Record::Base { base, index, epoch })
                }
                ReplicaCommand::Truncate { index, number } => {
                    out.journal(Record::Truncated { index, number })
                }
                ReplicaCommand::PersistTrim { index } => out.journal(Record::Trim { index }),
                ReplicaCommand::Forget => self.reset(turn, out),
                ReplicaCommand::Load { from_index, to_index } => self.load(from_index, to_index, out),
                ReplicaCommand::Ack {
                    client,
                    seq,
                    base_offset,
                    entry_count,
                    arrival,
                } => {
                    if !turn.is_unmetered {
                        self.counters.committed(arrival, turn.now_us, entry_count);
                    }
                    out.acks.extend(client.map(|client| (client, seq, base_offset)));
                }
                ReplicaCommand::Refuse {
                    client,
                    seq,
                    entry_count,
                    code,
                    happened,
                    retry_after_ms,
                } => {
                    self.counters.refused(entry_count);
                    let refusal = Refusal {
                        retry_after_ms,
                        ..refusal_of(self.basis(code, happened), seq, code)
                    };
                    self.refuse(client, refusal, out);
                }
                ReplicaCommand::Answer {
                    client,
                    request,
                    asked,
                    refused,
                } => {
                    out.client(client, answers::asked(&self.replica, request, asked, refused));
                }
                // The journal's places go when a base is durable, which is what recovery needs.
                ReplicaCommand::Trimmed { .. } => {}
                ReplicaCommand::Adopted { epoch } => self.adopted(turn, epoch, out),
                ReplicaCommand::LearnerCaughtUp { learner } => self.caught_up(learner, out),
            }
        }
    }

    fn load(&self, from_index: Index, to_index: Index, out: &mut Outputs) {
        out.push(Output::Load {
            generation: self.reading.generation(),
            from_index,
            to_index,
        });
    }

    fn caught_up(&self, learner: ServerId, out: &mut Outputs) {
        let (group_id, epoch) = (self.id, self.replica.epoch());
        let message = ToCoordinator::LearnerCaughtUp {
            group_id,
            epoch,
            learner,
        };
        out.push(Output::Coordinator(message));
    }

    /// An append that the replica does not order, or of which it no longer knows whether it is.
    fn refuse(&self, client: ClientRef, refusal: Refusal, out: &mut Outputs) {
        let is_unknown = refusal.is_unknown && !planted::on(Bug::UnknownRefusedOutright);
        let head_address = answers::head_address(&self.replica);
        let refusal = Refusal {
            is_unknown,
            head_address,
            ..refusal
        };
        out.client(client, refusal.into_message());
    }

    /// The knowledge on which the replica's own refusal rests. `session_expired` speaks of this sending alone.
    fn basis(&self, code: Code, happened: Happened) -> Basis<'static> {
        if self.intake.excludes(&self.replica) || code == Code::SessionExpired {
            Basis::Judged(happened)
        } else {
            Basis::Nothing
        }
    }

    fn reset(&mut self, turn: &mut Turn, out: &mut Outputs) {
        out.push(Output::ForgetDisk);
        let (reading, mut view) = self.reading(turn, out);
        reading.reset(&mut view);
    }

    fn adopted(&mut self, turn: &Turn, epoch: Epoch, out: &mut Outputs) {
        out.push(Output::Report(Report::Adopted { epoch }));
        out.push(Output::Coordinator(self.applied(epoch)));
        self.intake.announce(&self.replica, turn, out);
    }

    /// A peer repairs a batch of the group.
    fn serve_fetch(&mut self, turn: &mut Turn, to: ServerId, index: Index, out: &mut Outputs) {
        // A group's entries are its replicas' affair only.
        let is_member = |config: &GroupConfig| config.line().any(|member| member.server_id == to);
        if !self.replica.config().is_some_and(is_member) {
            return;
        }
        let epoch = self.replica.epoch();
        let header = self.replica.log().header(index).copied();
        let in_memory = self.replica.payload(index).cloned();
        let batch = match (header, in_memory) {
            (Some(header), Some(payload)) => Some(Batch {
                header,
                payload,
                trace: None,
            }),
            (Some(header), None) if turn.begin_fetch() => {
                return out.push(Output::ReadForPeer { to, epoch, header });
            }
            _ => None,
        };
        let message = peer::Message::Fetched { index, batch };
        out.push(Output::Peer {
            to,
            envelope: Envelope {
                group_id: self.id,
                epoch,
                message,
            },
        });
    }
}

/// Clients: attaching and appending.
impl Group {
    fn request(&mut self, turn: &mut Turn, client: ClientRef, request: Request, out: &mut Outputs) {
        match request {
            Request::Message { message, trace } => self.message(turn, client, message, trace, out),
            Request::Attach {
                number,
                session,
                permission,
            } => {
                let (intake, mut view) = self.intake(turn, out);
                intake.attach(client, number, session, permission, &mut view);
            }
            Request::Gone => {
                let (intake, mut view) = self.intake(turn, out);
                intake.detach(client, &mut view);
                self.forget(client);
            }
        }
    }

    fn message(
        &mut self,
        turn: &mut Turn,
        client: ClientRef,
        message: Message,
        trace: Option<TraceContext>,
        out: &mut Outputs,
    ) {
        match message {
            Message::Append(append) => self.append(turn, client, append, trace, out),
            Message::Read { request, .. }
            | Message::Subscribe { request, .. }
            | Message::Credit { request, .. } => self.read(turn, client, request, &message, out),
            Message::Cancel { request } => self.reading.cancel(client, request),
            Message::Status { request } => self.ask(turn, client, request, Asked::Status, out),
            Message::Trim {
                request,
                before_offset,
            } => match self.intake.may_trim(client, turn) {
                Ok(()) => self.ask(turn, client, request, Asked::Trim { before_offset }, out),
                Err(code) => {
                    let refusal = Refusal::new(kind::TRIM, u64::from(request), code);
                    out.client(client, refusal.into_message());
                }
            },
            // All others are a connection's business and were handled there.
            _ => {}
        }
    }

    /// The client's channel is gone: nobody waits for its answers.
    fn forget(&mut self, client: ClientRef) {
        self.retried.retain(|(of, _, _)| *of != client);
        self.reading.forget(client);
        self.replica.forget_client(client);
    }

    fn append(
        &mut self,
        turn: &mut Turn,
        client: ClientRef,
        append: client::Append,
        trace: Option<TraceContext>,
        out: &mut Outputs,
    ) {
        let (intake, mut view) = self.intake(turn, out);
        if let Some(request) = intake.append(client, append, trace, &mut view) {
            self.order(turn, request, out);
        }
    }

    fn order_queue(&mut self, turn: &mut Turn, out: &mut Outputs) {
        let (intake, view) = self.intake(turn, out);
        if !intake.begin_queue(&view) {
            return;
        }
        loop {
            let (intake, mut view) = self.intake(turn, out);
            match intake.next_admitted(&mut view) {
                Some(request) => self.order(turn, request, out),
                None => return intake.end_queue(&mut view),
            }
        }
    }

    fn order(&mut self, turn: &mut Turn, request: AppendRequest, out: &mut Outputs) {
        let before = self.replica.log().last_index();
        self.step_replica(turn, ReplicaEvent::Append(request), out);
        // Retries and refused appends order nothing.
        let is_new = self.replica.log().last_index() > before;
        self.intake.ordered(&self.replica, turn, is_new);
    }

    fn intake<'a>(&'a mut self, turn: &'a mut Turn, out: &'a mut Outputs) -> (&'a mut Intake, View<'a>) {
        let (intake, _, view) = self.handlers(turn, out);
        (intake, view)
    }

    fn reading<'a>(&'a mut self, turn: &'a mut Turn, out: &'a mut Outputs) -> (&'a mut Reading, View<'a>) {
        let (_, reading, view) = self.handlers(turn, out);
        (reading, view)
    }

    /// Both handlers of clients' messages, and the rest of the state as they see it.
    fn handlers<'a>(
        &'a mut self,
        turn: &'a mut Turn,
        out: &'a mut Outputs,
    ) -> (&'a mut Intake, &'a mut Reading, View<'a>) {
        let view = View {
            group_id: self.id,
            me: self.me,
            replica: &self.replica,
            counters: &mut self.counters,
            turn,
            out,
        };
        (&mut self.intake, &mut self.reading, view)
    }
}

/// Clients: reading and asking.
impl Group {
    /// READ, SUBSCRIBE, CREDIT.
    fn read(
        &mut self,
        turn: &mut Turn,
        client: ClientRef,
        request: u32,
        message: &Message,
        out: &mut Outputs,
    ) {
        if let Err(code) = self.intake.may_read(client, &self.replica, turn) {
            let refusal = Refusal::new(message.kind(), u64::from(request), code);
            out.client(client, refusal.into_message());
            if matches!(message, Message::Credit { .. }) {
                self.reading.cancel(client, request);
            }
            return;
        }
        let (reading, mut view) = self.reading(turn, out);
        reading.message(client, message, &mut view);
    }

    fn ask(&mut self, turn: &mut Turn, client: ClientRef, request: u32, asked: Asked, out: &mut Outputs) {
        self.step_replica(
            turn,
            ReplicaEvent::Ask {
                client,
                request,
                asked,
            },
            out,
        );
    }
}
