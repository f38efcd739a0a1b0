//! One group on this server: its replica, the queue in front of it, its clients; commands carried out.

use quorate_chain::{AppendRequest, ClientRef, Command, Event, Happened, Replica};
use quorate_qos::{Admission, QueueLimits, Ready};
use quorate_replica_log::record::{KIND_BASE, KIND_BATCH};
use quorate_replica_log::{Durable, Entry, Place, Places, is_whole};
use quorate_telemetry::usage::Sample;
use quorate_types::control::{GroupReport, ToCoordinator};
use quorate_types::cost::Budget;
use quorate_types::ids::IdMap;
use quorate_types::limits::UNCOMMITTED_BYTES_MAX;
use quorate_types::{Code, Durability, GroupConfig, GroupId, Index, Micros, Offset};
use quorate_wire::client::{self, kind};
use quorate_wire::peer::Envelope;

use crate::disk::Placed;
use crate::shard::io::{Io, Refusal};
use crate::shard::lending::Watched;
use crate::shard::reads::Readers;
use crate::shard::repair::Repairs;
use crate::shard::serve::Channel;
use crate::shard::traced::Traced;
use crate::usage::Counters;

/// Acks in one frame, so that its head fits 16 bits of length.
const ACKS_PER_FRAME: usize = 4_000;

pub struct Group {
    pub id: GroupId,
    /// Another one when the group comes again after it was dropped, or its log begins anew: what was begun before is
    /// of no use then.
    pub life: u64,
    pub replica: Replica,
    /// Set with the first configuration, which brings the budget.
    pub admission: Option<Admission<AppendRequest>>,
    pub budget: Option<Budget>,
    pub channels: IdMap<ClientRef, Channel>,
    /// The channel that each session was attached on last: it alone may append.
    pub sessions: IdMap<u64, ClientRef>,
    /// Attached with a session, and not answered before the ring has closed.
    pub attaching: Vec<ClientRef>,
    pub readers: Readers,
    pub places: Places,
    pub repairs: Repairs,
    /// It may lack what had been durable here, until it is a replica of the chain again.
    pub is_damaged: bool,
    /// Bases submitted to the journal and not yet durable: (index, lsn).
    bases: Vec<(Index, quorate_journal::Lsn)>,
    pub counters: Counters,
    /// Samples at the end of one epoch and the beginning of the next, for [`crate::usage`].
    pub cuts: Vec<Sample>,
    pub traced: Traced,
    pub lending: Watched,
    acks: Vec<(ClientRef, u64, Offset)>,
    pub is_dirty: bool,
    /// It is among those that owe their successors a notice.
    pub is_owing: bool,
    /// Waits for room on the link to its successor, in that link's list.
    pub is_held: bool,
}

impl Group {
    pub fn new(id: GroupId, mut replica: Replica, places: Places, life: u64, now: Micros) -> Self {
        replica.pace_catchup();
        replica.hold_notices();
        Self {
            id,
            life,
            replica,
            admission: None,
            budget: None,
            channels: IdMap::default(),
            sessions: IdMap::default(),
            attaching: Vec::new(),
            readers: Readers::default(),
            places,
            repairs: Repairs::default(),
            is_damaged: false,
            bases: Vec::new(),
            counters: Counters::new(now),
            cuts: Vec::new(),
            traced: Traced::default(),
            lending: Watched::default(),
            acks: Vec::new(),
            is_dirty: false,
            is_owing: false,
            is_held: false,
        }
    }

    /// Has it flushed in this round.
    pub fn mark(&mut self, io: &mut Io) {
        if !self.is_dirty {
            self.is_dirty = true;
            io.dirty_groups.push(self.id);
            // The first one's wake-up serves all.
            if io.dirty_groups.len() == 1 {
                io.wake_flush();
            }
        }
    }

    pub fn step(&mut self, io: &mut Io, event: Event) {
        let arriving = self.arriving_trace(io, &event);
        let mut commands = std::mem::take(&mut io.scratch.commands);
        self.replica.step(io.now_us(), event, &mut commands);
        self.carry_out(io, &mut commands);
        io.scratch.commands = commands;
        if let Some(arriving) = arriving {
            self.begin_span(io, arriving);
        }
    }

    pub fn configure(&mut self, io: &mut Io, config: GroupConfig) {
        let now = io.now_us();
        match &mut self.admission {
            Some(admission) => admission.set_budget(now, &config.budget),
            None => self.admission = Some(Admission::new(&config.budget, QueueLimits::default(), now)),
        }
        self.budget = Some(config.budget.clone());
        let begins = config.epoch > self.replica.epoch();
        if begins {
            self.cut_sample();
            self.end_lending(io);
        }
        self.step(io, Event::Configure(config));
        if begins {
            self.cut_sample();
        }
        if !self.replica.is_head() {
            self.refuse_queue(io, Code::NotHead);
        }
        if begins && is_whole(self.replica.role()) && std::mem::take(&mut self.is_damaged) {
            let last_index = self.replica.log().last_index();
            io.journal.write(Entry::mended(self.id, last_index, false));
        }
    }

    /// Ends a round: orders what the budget lets through, commits, feeds the successor, answers.
    pub fn flush(&mut self, io: &mut Io) {
        self.order_queue(io);
        if let Some(successor) = self.replica.feeds() {
            self.is_held = io.is_held(successor, self.id, self.is_held);
            self.replica.hold(self.is_held);
        }
        if self.acks.is_empty() {
            self.acks = std::mem::take(&mut io.scratch.acks);
        }
        let mut commands = std::mem::take(&mut io.scratch.commands);
        self.replica.flush(&mut commands);
        self.carry_out(io, &mut commands);
        io.scratch.commands = commands;
        self.time_committed(io);
        self.answer_attaching(io);
        self.send_acks(io);
        self.serve_readers(io);
        self.end_spans(io);
        if self.replica.catchup_wanted_bytes() > 0 {
            io.wants_catchup(self.id);
        }
        if self.replica.owes_notice() && !std::mem::replace(&mut self.is_owing, true) {
            io.owes_notice(self.id);
        }
    }

    fn order_queue(&mut self, io: &mut Io) {
        // Only a head is offered anything.
        let is_needed = self.replica.is_head() && !io.shared.is_unisolated();
        if !is_needed && self.admission.as_ref().is_none_or(Admission::is_empty) {
            return;
        }
        let now = io.now_us();
        let open = self.replica.uncommitted_bytes() < UNCOMMITTED_BYTES_MAX && !self.is_disk_behind(io);
        let Some(admission) = &mut self.admission else {
            return;
        };
        admission.set_window_open(open);
        if admission.is_empty() {
            return;
        }
        // Each admitted batch may close the windows: asked again before the next.
        loop {
            self.judge_lent(io, now);
            let Some(ready) = self.admission.as_mut().and_then(|admission| admission.pop(now)) else {
                break;
            };
            match ready {
                Ready::Admitted(request) => self.order_if_owned(io, request),
                Ready::Expired {
                    item,
                    retry_after_us,
                    within_sla,
                } => {
                    self.expire(io, item, retry_after_us, within_sla);
                }
            }
            let open = self.replica.uncommitted_bytes() < UNCOMMITTED_BYTES_MAX && !self.is_disk_behind(io);
            if let Some(admission) = &mut self.admission {
                admission.set_window_open(open);
            }
        }
        if self.admission.as_mut().is_some_and(Admission::take_returned) {
            self.owner_returned(io, now);
        }
        io.wake_in_time(self.id);
    }

    /// Orders what waited, unless its session has been attached on another channel since, or its channel is
    /// gone: its client was told by then what the log holds, and builds on that.
    fn order_if_owned(&mut self, io: &mut Io, request: AppendRequest) {
        if self.sessions.get(&request.session) == Some(&request.client) {
            self.order(io, request);
            return;
        }
        self.counters.totals.refused_entries += u64::from(request.entry_count);
        let refusal = self.refusal_of(&request, Code::SessionMoved);
        io.refuse(request.client, refusal);
    }

    fn is_disk_behind(&self, io: &Io) -> bool {
        self.replica.durability() == Durability::Persistent && io.journal.is_crowded()
    }

    pub fn order(&mut self, io: &mut Io, request: AppendRequest) {
        let before = self.replica.log().last_index();
        self.step(io, Event::Append(request));
        // Retries and what is refused order nothing.
        if self.replica.log().last_index() > before {
            self.time_ordered(io.now_us());
        }
    }

    fn expire(&mut self, io: &mut Io, request: AppendRequest, retry_after_us: Micros, within_sla: bool) {
        self.counters.throttled(request.entry_count, within_sla);
        self.note_refused(request.client, request.seq);
        let code = if within_sla {
            Code::DeadlineExceeded
        } else {
            Code::Throttled
        };
        let mut refusal = self.refusal_of(&request, code);
        refusal.retry_after_ms = retry_ms(retry_after_us);
        refusal.detail = self.advice(&request).filter(|_| code == Code::Throttled);
        io.refuse(request.client, refusal);
    }

    /// Refuses all that waits in the queue: it was not ordered.
    pub fn refuse_queue(&mut self, io: &mut Io, code: Code) {
        let waiting = self.admission.as_mut().map(Admission::drain).unwrap_or_default();
        for request in waiting {
            self.counters.totals.refused_entries += u64::from(request.entry_count);
            let mut refusal = self.refusal_of(&request, code);
            refusal.head_address = self.head_address();
            io.refuse(request.client, refusal);
        }
    }

    fn refusal_of(&self, request: &AppendRequest, code: Code) -> Refusal {
        let mut refusal = Refusal::new(kind::APPEND, request.seq, code);
        refusal.unknown = self.may_have_happened(request.session, request.seq, request.floor_index);
        refusal
    }

    /// The group leaves this server.
    pub fn abandon(&mut self, io: &mut Io) {
        self.refuse_queue(io, Code::GroupNotHere);
        let mut commands = Vec::new();
        self.replica.leave(&mut commands);
        self.carry_out(io, &mut commands);
        self.refuse_readers(io, Code::GroupNotHere);
        self.abandon_repairs(io);
    }

    fn carry_out(&mut self, io: &mut Io, commands: &mut Vec<Command>) {
        for command in commands.drain(..) {
            match command {
                Command::Send { to, message } => {
                    let envelope = Envelope {
                        group_id: self.id,
                        epoch: self.replica.epoch(),
                        message,
                    };
                    io.send_peer(to, envelope);
                }
                Command::Persist(batch) => io.journal.write(Entry::batch(&batch)),
                Command::PersistBase { base, index, epoch } => {
                    io.journal.write(Entry::base(self.id, base, index, epoch));
                }
                Command::Cut { index, number } => io.journal.write(Entry::cut(self.id, index, number)),
                Command::PersistTrim { index } => io.journal.write(Entry::trim(self.id, index)),
                Command::Forget => self.forget_disk(io),
                Command::Load { from_index, to_index } => self.load_for_successor(io, from_index, to_index),
                Command::Ack {
                    client,
                    seq,
                    base_offset,
                    entry_count,
                    received_us,
                } => {
                    if !io.shared.is_unisolated() {
                        let latency_us = io.now_us().saturating_sub(received_us);
                        self.counters.latency.record(latency_us, u64::from(entry_count));
                    }
                    self.acks.push((client, seq, base_offset));
                }
                Command::Refuse {
                    client,
                    seq,
                    entry_count,
                    code,
                    happened,
                    retry_after_ms,
                } => {
                    self.counters.totals.refused_entries += u64::from(entry_count);
                    let mut refusal = Refusal::new(kind::APPEND, seq, code);
                    refusal.unknown = happened == Happened::Unknown;
                    refusal.retry_after_ms = retry_after_ms;
                    refusal.head_address = self.head_address();
                    io.refuse(client, refusal);
                }
                Command::Answer {
                    client,
                    request,
                    asked,
                    refused,
                } => self.answer_asked(io, client, request, asked, refused),
                Command::Committed => self.readers.is_behind = true,
                // The journal's places go when a base is durable, which is what recovery needs.
                Command::Trimmed { .. } => {}
                Command::Adopted { epoch } => self.adopted(io, epoch),
                Command::LearnerCaughtUp { learner } => {
                    let (group_id, epoch) = (self.id, self.replica.epoch());
                    io.shared.tell_coordinator(ToCoordinator::LearnerCaughtUp {
                        group_id,
                        epoch,
                        learner,
                    });
                }
            }
        }
    }

    /// The log was lost and begins anew: on disk it is another group's from here on.
    fn forget_disk(&mut self, io: &mut Io) {
        io.journal.write(Entry::dropped(self.id));
        self.places = Places::default();
        self.bases.clear();
        self.life = io.new_life();
        self.refuse_parked(io);
        self.abandon_repairs(io);
    }

    fn adopted(&mut self, io: &mut Io, epoch: u64) {
        tracing::debug!(group_id = %self.id, epoch, role = ?self.replica.role(), "epoch adopted");
        io.shared.tell_coordinator(ToCoordinator::Applied {
            group_id: self.id,
            epoch,
        });
        let notice = client::Notice {
            epoch,
            role: self.replica.role() as u8,
            state: self.replica.state() as u8,
            rate_per_s: self.rate_for_all(),
            head_address: self.head_address(),
        };
        for client in self.channels.keys() {
            io.send_client(*client, client::Message::Notice(notice.clone()));
        }
    }

    /// Acks of one channel that follow one another share a frame.
    fn send_acks(&mut self, io: &mut Io) {
        let mut acks = std::mem::take(&mut self.acks);
        let mut rest = acks.as_slice();
        while let Some((client, _, _)) = rest.first() {
            let run = rest
                .iter()
                .take(ACKS_PER_FRAME)
                .take_while(|(c, _, _)| c == client)
                .count();
            io.send_acks(*client, &rest[..run]);
            rest = &rest[run..];
        }
        acks.clear();
        io.scratch.acks = acks;
    }

    /// The journal said where a record will lie.
    pub fn placed(&mut self, placed: Placed) {
        let Placed {
            durable,
            lsn,
            location,
        } = placed;
        match durable.kind {
            KIND_BASE => self.bases.push((durable.index, lsn)),
            KIND_BATCH => self.places.note(durable.index, lsn, Place::Journal(location)),
            _ => {}
        }
    }

    /// The journal said that a record is durable.
    pub fn durable(&mut self, io: &mut Io, durable: Durable) {
        if durable.kind == KIND_BASE {
            for (index, lsn) in self.bases.extract_if(.., |(index, _)| *index <= durable.index) {
                self.places.forget_through(index);
                self.places.base = Some((index, lsn));
                if let Some(logs) = io.shared.group_logs() {
                    logs.trim(self.id, index, lsn);
                }
            }
        }
        if let Some(event) = durable.event() {
            self.step(io, event);
        }
    }

    pub fn head_address(&self) -> String {
        self.replica
            .config()
            .and_then(|c| c.head())
            .map(|m| m.address.clone())
            .unwrap_or_default()
    }

    pub fn report(&self) -> Option<GroupReport> {
        let config = self.replica.config()?;
        Some(GroupReport {
            group_id: self.id,
            epoch: config.epoch,
            role: self.replica.role(),
            state: self.replica.state(),
            last_index: self.replica.log().last_index(),
            commit_offset: self.replica.commit_offset(),
        })
    }

    /// When the queue next has something to order or to refuse.
    pub fn next_wake(&mut self, now: Micros) -> Option<Micros> {
        let queue = self.admission.as_mut().and_then(|a| a.next_wake(now));
        let reads = self.readers.next_deadline();
        match (queue, reads) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Rounded up, at least one: a client that comes back at once would only be refused again.
pub fn retry_ms(retry_after_us: Micros) -> u32 {
    retry_after_us.div_ceil(1000).clamp(1, 60_000) as u32
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
