//! What clients ask of a group: attaching, appending, its status. Reading is in [`crate::shard::reads`].

use quorate_chain::{AppendRequest, Asked, ClientRef, Event, Verdict};
use quorate_qos::Offer;
use quorate_types::cost::Budget;
use quorate_types::limits::{
    APPEND_TIMEOUT_MS_DEFAULT, BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX, RETRY_AFTER_MS_HELD,
    SESSION_WINDOW_BATCHES,
};
use quorate_types::{Code, Durability, Index};
use quorate_wire::client::{self, Message, kind};
use quorate_wire::{TraceContext, cursor};

use crate::clock::wall_us;
use crate::shard::ClientRequest;
use crate::shard::group::{Group, retry_ms};
use crate::shard::io::{Io, Refusal};
use quorate_tokens::Permission;

/// From here on a throttled client is told that its batches are dear because they are short.
const SHORT_TIMES_TOLD: f64 = 1.2;

/// A client's way into the group: one for each connection and channel.
pub struct Channel {
    /// Of its ATTACH.
    pub number: u64,
    pub session: u64,
    pub permission: Permission,
    /// A batch refused for lack of budget or room: until it comes again, those behind it cannot be ordered.
    pub refused_seq: Option<u64>,
}

fn advice(budget: &Budget, entries: u64, bytes: u64) -> Option<String> {
    let (own, all) = (budget.cost.of(entries, bytes), budget.batch_milli(entries, bytes));
    let times = (0..3).map(|i| all[i] as f64 / own[i].max(1) as f64);
    let (times, full) = (times.fold(1.0, f64::max), budget.short_batch.entries);
    (times > SHORT_TIMES_TOLD).then(|| {
        format!(
            "Each entry of this batch of {entries} costs {times:.1} times what it would in one of {full} or more: \
             send more entries in a batch."
        )
    })
}

impl Group {
    pub fn client_request(&mut self, io: &mut Io, client: ClientRef, request: ClientRequest) {
        match request {
            ClientRequest::Attach {
                number,
                session,
                permission,
            } => {
                let channel = Channel {
                    number,
                    session,
                    permission,
                    refused_seq: None,
                };
                self.attach(io, client, channel);
            }
            ClientRequest::Message { message, trace } => self.client_message(io, client, message, trace),
            ClientRequest::Gone => self.detach(client),
        }
    }

    fn attach(&mut self, io: &mut Io, client: ClientRef, channel: Channel) {
        let session = channel.session;
        if session != 0 && self.replica.is_cut_off() {
            return io.refuse_attach(client, channel.number, Code::CutOff);
        }
        self.channels.insert(client, channel);
        // Also where this server is not the head: it may become it, and the client need not attach again then.
        if session != 0 {
            self.sessions.insert(session, client);
        }
        if session != 0 && self.replica.is_head() {
            self.attaching.push(client);
            self.answer_attaching(io);
        } else {
            self.send_attached(io, client, session);
        }
    }

    /// A head answers once its chain is known to agree with it: before, a batch that its session table lacks
    /// could still come from a replica that takes over, though `next_seq` said that it was not ordered.
    pub fn answer_attaching(&mut self, io: &mut Io) {
        if self.replica.is_head() && !self.replica.ring_closed() {
            return;
        }
        for client in std::mem::take(&mut self.attaching) {
            if let Some(channel) = self.channels.get(&client) {
                let session = channel.session;
                self.send_attached(io, client, session);
            }
        }
    }

    /// Whoever waits for a head that is cut off is told to look elsewhere; those whose batches were ordered have been.
    pub fn turn_away(&mut self, io: &mut Io) {
        if !self.replica.is_cut_off() {
            return;
        }
        self.refuse_queue(io, Code::CutOff);
        for client in std::mem::take(&mut self.attaching) {
            let number = self.channels.get(&client).map(|channel| channel.number);
            self.detach(client);
            if let Some(number) = number {
                io.refuse_attach(client, number, Code::CutOff);
            }
        }
    }

    fn send_attached(&mut self, io: &mut Io, client: ClientRef, session: u64) {
        let rate_per_s = self.rate_for_one();
        let log = self.replica.log();
        let attached = client::Attached {
            epoch: self.replica.epoch(),
            role: self.replica.role() as u8,
            durability: match self.replica.durability() {
                Durability::InMemory => 1,
                Durability::Persistent => 2,
            },
            state: self.replica.state() as u8,
            window_batches: SESSION_WINDOW_BATCHES,
            last_index: log.last_index(),
            next_seq: log.sessions().next_seq(session),
            commit_offset: self.replica.commit_offset(),
            trim_offset: self.replica.trim_offset(),
            rate_per_s,
            head_address: self.head_address(),
        };
        io.send_client(client, Message::Attached(attached));
    }

    fn detach(&mut self, client: ClientRef) {
        if let Some(channel) = self.channels.remove(&client)
            && self.sessions.get(&channel.session) == Some(&client)
        {
            self.sessions.remove(&channel.session);
        }
        self.attaching.retain(|waiting| *waiting != client);
        self.readers.forget(client);
        self.replica.forget_client(client);
    }

    fn client_message(
        &mut self,
        io: &mut Io,
        client: ClientRef,
        message: Message,
        trace: Option<TraceContext>,
    ) {
        match message {
            Message::Append(append) => self.append(io, client, append, trace),
            Message::Read {
                request,
                max_bytes,
                max_entries,
                wait_ms,
                offset,
            } => self.read_request(io, client, request, max_bytes, max_entries, wait_ms, offset),
            Message::Subscribe {
                request,
                credit_bytes,
                offset,
            } => self.subscribe(io, client, request, credit_bytes, offset),
            Message::Credit { request, bytes } => self.credit(io, client, request, bytes),
            Message::Cancel { request } => self.readers.cancel(client, request),
            Message::Status { request } => self.ask(io, client, request, Asked::Status),
            Message::Trim {
                request,
                before_offset,
            } => match self.may_append(client, wall_us()) {
                Ok(_) => self.ask(io, client, request, Asked::Trim { before_offset }),
                Err(code) => io.refuse(client, Refusal::new(kind::TRIM, u64::from(request), code)),
            },
            // Whatever else is a connection's business and was handled there.
            _ => {}
        }
    }

    fn append(
        &mut self,
        io: &mut Io,
        client: ClientRef,
        append: client::Append,
        trace: Option<TraceContext>,
    ) {
        let wall_us = io.wall_us();
        let session = match self.check_append(client, &append, wall_us) {
            Ok(session) => session,
            Err((code, detail)) => return self.refuse_append(io, client, &append, code, detail),
        };
        let timeout_ms = if append.timeout_ms == 0 {
            APPEND_TIMEOUT_MS_DEFAULT
        } else {
            append.timeout_ms
        };
        let entry_count = append.entry_count;
        let request = AppendRequest {
            client,
            session,
            seq: append.seq,
            floor_index: append.floor_index,
            expected_offset: append.expected_offset,
            fencing_token: append.fencing_token,
            entry_count,
            payload: append.payload,
            payload_crc: append.payload_crc,
            received_us: io.now_us(),
            wall_us,
            trace,
        };
        if !io.shared.is_unisolated() {
            self.counters.offered(entry_count, entry_bytes(&request));
        }
        // Of a batch that was ordered before, the answer is its place: it costs nothing, and must not be refused for
        // lack of budget or room, as if it had not happened.
        if self.may_have_happened(session, request.seq, request.floor_index) {
            self.order(io, request);
            return;
        }
        if self.is_behind_a_refused(client, request.seq) {
            self.counters.totals.refused_entries += u64::from(entry_count);
            let refusal = Refusal::new(kind::APPEND, request.seq, Code::SequenceGap);
            io.refuse(client, refusal);
            return;
        }
        self.offer(io, request, timeout_ms);
    }

    fn refuse_append(
        &mut self,
        io: &mut Io,
        client: ClientRef,
        append: &client::Append,
        code: Code,
        detail: Option<String>,
    ) {
        self.counters.totals.refused_entries += u64::from(append.entry_count);
        let mut refusal = Refusal::new(kind::APPEND, append.seq, code);
        refusal.detail = detail;
        refusal.head_address = self.head_address();
        let session = self.channels.get(&client).map_or(0, |channel| channel.session);
        refusal.unknown = self.may_have_happened(session, append.seq, append.floor_index);
        io.refuse(client, refusal);
    }

    /// Orders the batch, has it wait for budget or room, or refuses it.
    fn offer(&mut self, io: &mut Io, request: AppendRequest, timeout_ms: u32) {
        let (client, entry_count, now) = (request.client, request.entry_count, request.received_us);
        let is_isolated = !io.shared.is_unisolated();
        if is_isolated {
            self.judge_lent(io, now);
        }
        let (Some(admission), Some(budget)) = (&mut self.admission, &self.budget) else {
            self.counters.totals.refused_entries += u64::from(entry_count);
            let refusal = Refusal::new(kind::APPEND, request.seq, Code::Syncing);
            io.refuse(client, refusal);
            return;
        };
        if !is_isolated {
            return self.order(io, request);
        }
        let cost = budget.batch_milli(u64::from(entry_count), entry_bytes(&request));
        let bytes = request.payload.len() as u64;
        let offer = admission.offer(now, request, cost, bytes, now + u64::from(timeout_ms) * 1000);
        if admission.take_returned() {
            self.owner_returned(io, now);
        }
        match offer {
            Offer::Admitted(request) => self.order(io, request),
            Offer::Queued => io.wake_in_time(self.id),
            Offer::Throttled {
                item,
                retry_after_us,
                within_sla,
            } => {
                self.counters.throttled(entry_count, within_sla);
                self.note_refused(client, item.seq);
                let code = if within_sla {
                    Code::Overloaded
                } else {
                    Code::Throttled
                };
                let mut refusal = Refusal::new(kind::APPEND, item.seq, code);
                refusal.retry_after_ms = retry_ms(retry_after_us);
                refusal.detail = self.advice(&item).filter(|_| code == Code::Throttled);
                io.refuse(client, refusal);
            }
        }
    }

    /// What somebody who is above the reserved rate can do, where it is above it because it sends short batches.
    pub fn advice(&self, request: &AppendRequest) -> Option<String> {
        advice(
            self.budget.as_ref()?,
            u64::from(request.entry_count),
            entry_bytes(request),
        )
    }

    /// Whether an earlier sending of the batch was ordered, or the table has forgotten too much to tell: then no
    /// refusal of this sending may say that it did not happen.
    pub fn may_have_happened(&self, session: u64, seq: u64, floor_index: Index) -> bool {
        let verdict = self.replica.log().sessions().judge(session, seq, floor_index);
        session != 0 && matches!(verdict, Verdict::Ordered(_) | Verdict::Expired)
    }

    /// A batch of the channel was refused for lack of budget or room.
    pub fn note_refused(&mut self, client: ClientRef, seq: u64) {
        if let Some(channel) = self.channels.get_mut(&client) {
            let least = channel.refused_seq.map_or(seq, |refused| refused.min(seq));
            channel.refused_seq = Some(least);
        }
    }

    /// Whether the batch would leave a gap, since one before it was refused. Told at once, it takes neither budget nor
    /// room from batches that can be ordered.
    fn is_behind_a_refused(&mut self, client: ClientRef, seq: u64) -> bool {
        let Some(channel) = self.channels.get_mut(&client) else {
            return false;
        };
        let is_behind = channel.refused_seq.is_some_and(|refused| seq > refused);
        if !is_behind {
            channel.refused_seq = None;
        }
        is_behind
    }

    /// What can be refused before anything is spent on the append; the session that it is of.
    fn check_append(
        &self,
        client: ClientRef,
        append: &client::Append,
        wall_us: u64,
    ) -> Result<u64, (Code, Option<String>)> {
        let refuse = |code| Err((code, None));
        let channel = self.may_append(client, wall_us).map_err(|code| (code, None))?;
        if channel.session == 0 || append.seq == 0 {
            return refuse(Code::SessionMissing);
        }
        if !self.replica.is_head() {
            return refuse(Code::NotHead);
        }
        if self.sessions.get(&channel.session) != Some(&client) {
            return refuse(Code::SessionMoved);
        }
        if self.replica.is_cut_off() {
            return refuse(Code::CutOff);
        }
        if append.payload.len() > BATCH_BYTES_MAX as usize || append.entry_count > BATCH_ENTRIES_MAX {
            let (bytes, entries) = (append.payload.len(), append.entry_count);
            let detail = format!(
                "The batch has {bytes} bytes and {entries} entries; allowed are {BATCH_BYTES_MAX} and {BATCH_ENTRIES_MAX}."
            );
            return Err((Code::BatchTooLarge, Some(detail)));
        }
        match cursor::check_entries(&append.payload) {
            Err(_) => refuse(Code::BatchMalformed),
            Ok((count, _)) if count != append.entry_count || count == 0 => refuse(Code::BatchMalformed),
            Ok((_, longest)) if longest > ENTRY_BYTES_MAX => {
                let detail = format!("An entry has {longest} bytes; allowed are {ENTRY_BYTES_MAX}.");
                Err((Code::EntryTooLarge, Some(detail)))
            }
            Ok(_) => Ok(channel.session),
        }
    }

    /// Also what it takes to trim: whoever may append can push out what is old anyway, by filling what is retained.
    fn may_append(&self, client: ClientRef, wall_us: u64) -> Result<&Channel, Code> {
        match self.channels.get(&client) {
            None => Err(Code::UnknownChannel),
            Some(channel) if !channel.permission.may_append => Err(Code::PermissionDenied),
            Some(channel) if channel.permission.expires_at_s < wall_us / 1_000_000 => Err(Code::TokenExpired),
            Some(channel) => Ok(channel),
        }
    }

    pub fn may_read(&self, io: &mut Io, client: ClientRef, op: u8, request: u32) -> bool {
        let code = match self.channels.get(&client) {
            None => Code::UnknownChannel,
            Some(channel) if !channel.permission.may_read => Code::PermissionDenied,
            Some(channel) if channel.permission.expires_at_s < wall_us() / 1_000_000 => Code::TokenExpired,
            Some(_) => return true,
        };
        io.refuse(client, Refusal::new(op, u64::from(request), code));
        false
    }

    fn ask(&mut self, io: &mut Io, client: ClientRef, request: u32, asked: Asked) {
        self.step(
            io,
            Event::Ask {
                client,
                request,
                asked,
            },
        );
    }

    /// The replica answers what a client asked.
    pub fn answer_asked(
        &self,
        io: &mut Io,
        client: ClientRef,
        request: u32,
        asked: Asked,
        refused: Option<Code>,
    ) {
        match (asked, refused) {
            (Asked::Status, None) => self.status(io, client, request),
            (Asked::Trim { .. }, None) => {
                let trim_offset = self.replica.trim_offset();
                io.send_client(client, Message::TrimOk { request, trim_offset });
            }
            (_, Some(code)) => {
                let op = match asked {
                    Asked::Status => kind::STATUS,
                    Asked::Trim { .. } => kind::TRIM,
                };
                let mut refusal = Refusal::new(op, u64::from(request), code);
                refusal.head_address = self.head_address();
                // A trim that was under way when the head was deposed may go on under the next one.
                refusal.unknown = matches!(code, Code::EpochChanged | Code::CutOff);
                if matches!(code, Code::Paused | Code::Syncing | Code::Overloaded) {
                    refusal.retry_after_ms = RETRY_AFTER_MS_HELD as u32;
                }
                if code == Code::TrimBeyondCommit {
                    let commit_offset = self.replica.commit_offset();
                    refusal.detail = Some(format!("The commit offset is {commit_offset}."));
                }
                io.refuse(client, refusal);
            }
        }
    }

    fn status(&self, io: &mut Io, client: ClientRef, request: u32) {
        let status = client::StatusOk {
            request,
            role: self.replica.role() as u8,
            state: self.replica.state() as u8,
            epoch: self.replica.epoch(),
            commit_offset: self.replica.commit_offset(),
            durable_offset: self.replica.durable_offset(),
            trim_offset: self.replica.trim_offset(),
            next_offset: self.replica.log().next_offset(),
            head_address: self.head_address(),
        };
        io.send_client(client, Message::StatusOk(status));
    }
}

/// Without the lengths before each entry.
fn entry_bytes(request: &AppendRequest) -> u64 {
    request.payload.len() as u64 - 4 * u64::from(request.entry_count)
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{AppendCost, ShortBatch};

    use super::*;

    #[test]
    fn who_sends_short_batches_is_told_what_they_cost_and_others_are_not() {
        let cost = AppendCost {
            fixed_milli: [2_000_000, 100, 0],
            per_byte_milli: [0, 2_000, 0],
        };
        let mut budget = Budget::for_rate(1_000, 64, cost);
        assert_eq!(advice(&budget, 1, 64), None, "batches cost nothing themselves");
        budget.short_batch = ShortBatch {
            entries: 16,
            lacking_milli: [300_000, 0, 0],
        };
        let told = advice(&budget, 1, 64).unwrap();
        assert!(
            told.contains("of 1 costs 3.2 times") && told.contains("one of 16 or more"),
            "{told}"
        );
        assert!(advice(&budget, 6, 6 * 64).is_some());
        assert_eq!(advice(&budget, 15, 15 * 64), None, "hardly dearer");
        assert_eq!(advice(&budget, 100, 6_400), None);
    }
}
