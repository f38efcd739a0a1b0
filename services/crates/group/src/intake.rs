//! Clients' messages before they are ordered: attachments, checks of appends, and the queue for budget.

use quorate_burst::exchange::GroupLoad;
use quorate_chain::{AppendRequest, ClientRef, Replica};
use quorate_qos::{Admitted, Offer, Ready};
use quorate_types::control::{GroupFlow, GroupShare, PartitionWant};
use quorate_types::cost::Budget;
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Micros, Permission};
use quorate_wire::TraceContext;
use quorate_wire::client::{self, kind};

use crate::answers;
use crate::append_queue::AppendQueue;
use crate::appends::{Appends, check, entry_bytes, refusal_of, request_of, timeout_ms};
use crate::attachments::Attachments;
use crate::burst::Burst;
use crate::grant::Grant;
use crate::latencies::ChainTime;
use crate::outcome::{Basis, is_recalled};
use crate::output::{Output, Outputs};
use crate::partition_demand::PartitionDemand;
use crate::project_share::ProjectShare;
use crate::refusal::Refusal;
use crate::turn::Turn;
use crate::view::View;

#[derive(Debug, Default)]
pub(crate) struct Intake {
    attachments: Attachments,
    appends: Appends,
    burst: Burst,
    share: ProjectShare,
    demand: PartitionDemand,
    /// The chain has agreed with this replica since it became the head. From then on no replica that takes over can
    /// bring a batch that this one lacks.
    has_agreed: bool,
}

/// Attachments.
impl Intake {
    pub fn attach(
        &mut self,
        client: ClientRef,
        number: u64,
        session: u64,
        permission: Permission,
        view: &mut View<'_>,
    ) {
        if session != 0 && view.replica.is_isolated() && !planted::on(Bug::IsolatedHeadAttaches) {
            return not_attached(client, number, Code::CutOff, view.out);
        }
        self.attachments.attach(client, number, session, permission);
        self.refuse_moved(client, session, view);
        if session != 0 && view.replica.is_head() {
            self.attachments.answer_later(client);
            self.answer_attaching(view);
        } else {
            self.send_attached(client, session, view);
        }
    }

    /// A head answers once its chain is known to agree with it. Before that, a replica that takes over could bring a
    /// batch of which `next_seq` said that it was not ordered.
    pub fn answer_attaching(&mut self, view: &mut View<'_>) {
        if view.replica.chain_agrees() {
            self.has_agreed = true;
        } else if view.replica.is_head() {
            return;
        }
        for client in self.attachments.take_unanswered() {
            if let Some(session) = self.attachments.session_of(client) {
                self.send_attached(client, session, view);
            }
        }
    }

    fn send_attached(&mut self, client: ClientRef, session: u64, view: &mut View<'_>) {
        let rate_per_s = self.rate_per_s(view.turn.now_us);
        self.burst.announced_to_one(rate_per_s);
        let attached = answers::attached(view.replica, session, rate_per_s);
        view.out.client(client, attached);
    }

    /// The channel is gone. Its batches that wait are not ordered, and have no answer.
    pub fn detach(&mut self, client: ClientRef, view: &mut View<'_>) {
        self.attachments.detach(client);
        for request in self.withdraw(|request| request.client == client) {
            view.counters.refused(request.entry_count);
        }
    }

    /// The session is attached on this channel now. Its batches that wait came before: their client is told what the log
    /// holds, and builds on that.
    fn refuse_moved(&mut self, client: ClientRef, session: u64, view: &mut View<'_>) {
        for request in self.withdraw(|request| request.client == client || request.session == session) {
            self.refuse_batch(&request, Code::SessionMoved, view);
        }
    }

    fn withdraw(&mut self, is_over: impl FnMut(&AppendRequest) -> bool) -> Vec<AppendRequest> {
        if planted::on(Bug::FormerOwnerOrders) {
            return Vec::new();
        }
        self.appends.remove_where(is_over)
    }

    /// The clients whose ATTACH has no answer yet. The caller gives it.
    pub fn take_unanswered(&mut self) -> Vec<ClientRef> {
        self.attachments.take_unanswered()
    }

    pub fn refuse_attach(&mut self, client: ClientRef, code: Code, view: &mut View<'_>) {
        let number = self.attachments.number_of(client);
        self.attachments.detach(client);
        if let Some(number) = number {
            not_attached(client, number, code, view.out);
        }
    }

    pub fn session_of(&self, client: ClientRef) -> Option<u64> {
        self.attachments.session_of(client)
    }

    pub fn may_read(&self, client: ClientRef, replica: &Replica, turn: &Turn) -> Result<(), Code> {
        self.attachments.may_read(client, turn.wall_s())?;
        match replica.access().is_suspended() {
            true => Err(Code::GroupSuspended),
            false => Ok(()),
        }
    }

    pub fn may_trim(&self, client: ClientRef, turn: &Turn) -> Result<(), Code> {
        self.attachments.may_append(client, turn.wall_s()).map(|_| ())
    }
}

/// Appends.
impl Intake {
    /// The request, if it is to be ordered now. All others wait or have their refusal.
    pub fn append(
        &mut self,
        client: ClientRef,
        append: client::Append,
        trace: Option<TraceContext>,
        view: &mut View<'_>,
    ) -> Option<AppendRequest> {
        let session = match check(&self.attachments, view.replica, client, &append, view.turn) {
            Ok(session) => session,
            Err((code, detail)) => {
                self.refuse(client, &append, code, detail, view);
                return None;
            }
        };
        let timeout_ms = timeout_ms(&append);
        let request = request_of(client, session, append, trace, view.turn);
        // A batch that was ordered before is answered with its place, also in a group that takes no more.
        let is_recalled = is_recalled(view.replica, session, request.seq, request.floor_index);
        if !is_recalled && let Some(code) = self.takes_none(client, view.replica) {
            self.refuse_batch(&request, code, view);
            return None;
        }
        if !view.turn.is_unmetered {
            view.counters.offered(request.entry_count, entry_bytes(&request));
        }
        // It costs nothing, and a refusal for lack of budget would say that it did not happen.
        if is_recalled {
            return Some(request);
        }
        if self.attachments.is_behind_refused(client, request.seq) {
            self.refuse_batch(&request, Code::SequenceGap, view);
            return None;
        }
        self.offer(request, timeout_ms, view)
    }

    /// Why the group takes no new batches of this client, whatever they are.
    fn takes_none(&self, client: ClientRef, replica: &Replica) -> Option<Code> {
        if replica.access().is_suspended() {
            return Some(Code::GroupSuspended);
        }
        let is_other = self.attachments.has_other_layout(client, replica.layout());
        is_other.then_some(Code::LayoutChanged)
    }

    fn refuse_batch(&self, request: &AppendRequest, code: Code, view: &mut View<'_>) {
        view.counters.refused(request.entry_count);
        let refusal = refusal_of(self.basis(view.replica, request), request.seq, code);
        view.out.client(request.client, refusal.into_message());
    }

    /// Before anything is spent on the append.
    fn refuse(
        &self,
        client: ClientRef,
        append: &client::Append,
        code: Code,
        detail: Option<String>,
        view: &mut View<'_>,
    ) {
        view.counters.refused(append.entry_count);
        // The session of a channel that is not attached is not known, nor what was ordered of it.
        let basis = match self.attachments.session_of(client) {
            Some(session) => self.basis_of(view.replica, session, append.seq, append.floor_index),
            None => Basis::Nothing,
        };
        let refusal = Refusal {
            detail,
            head_address: answers::head_address(view.replica),
            ..refusal_of(basis, append.seq, code)
        };
        view.out.client(client, refusal.into_message());
    }

    /// The knowledge on which a refusal of this request rests.
    fn basis<'a>(&self, replica: &'a Replica, request: &AppendRequest) -> Basis<'a> {
        self.basis_of(replica, request.session, request.seq, request.floor_index)
    }

    fn basis_of<'a>(&self, replica: &'a Replica, session: u64, seq: u64, floor_index: Index) -> Basis<'a> {
        if !self.excludes(replica) {
            return Basis::Nothing;
        }
        Basis::Table {
            head: replica,
            session,
            seq,
            floor_index,
        }
    }

    /// Whether a batch that the replica's session table lacks was not ordered anywhere.
    pub fn excludes(&self, replica: &Replica) -> bool {
        self.has_agreed || replica.chain_agrees()
    }

    fn offer(
        &mut self,
        request: AppendRequest,
        timeout_ms: u32,
        view: &mut View<'_>,
    ) -> Option<AppendRequest> {
        if view.turn.is_unmetered && self.appends.queue.is_some() {
            return Some(request);
        }
        self.burst
            .judge(self.appends.queue.as_mut(), view.replica, view.turn);
        let (client, seq, entry_count) = (request.client, request.seq, request.entry_count);
        let Some(offer) = self.appends.offer(request, timeout_ms, view.turn.pool.is_full()) else {
            view.counters.refused(entry_count);
            let refusal = refusal_of(Basis::Nothing, seq, Code::Syncing);
            view.out.client(client, refusal.into_message());
            return None;
        };
        self.note_return(view);
        match offer {
            Offer::Admitted(admitted) => return Some(passed(admitted, view)),
            Offer::Queued => view.out.push(Output::WakeInTime),
            Offer::Throttled {
                item,
                retry_after_us,
                within_sla,
            } => {
                self.refuse_throttled(&item, retry_after_us, within_sla, false, view);
            }
        }
        None
    }

    /// Looks at the queue; false: nothing waits in it.
    pub fn begin_queue(&mut self, view: &View<'_>) -> bool {
        // Only a head is offered anything.
        let is_needed = view.replica.is_head() && !view.turn.is_unmetered;
        if !is_needed && self.appends.is_empty() {
            return false;
        }
        self.appends.set_window(view.replica, view.turn, view.out);
        !self.appends.is_empty()
    }

    /// The next request that the budget and the windows let through. Each ordered batch may close the windows, so this
    /// is asked again after it.
    pub fn next_admitted(&mut self, view: &mut View<'_>) -> Option<AppendRequest> {
        loop {
            self.appends.set_window(view.replica, view.turn, view.out);
            self.burst
                .judge(self.appends.queue.as_mut(), view.replica, view.turn);
            match self.appends.pop(view.turn.now_us)? {
                Ready::Admitted(admitted) => return Some(passed(admitted, view)),
                Ready::Expired {
                    item,
                    retry_after_us,
                    within_sla,
                } => {
                    self.refuse_throttled(&item, retry_after_us, within_sla, true, view);
                }
            }
        }
    }

    pub fn end_queue(&mut self, view: &mut View<'_>) {
        self.note_return(view);
        view.out.push(Output::WakeInTime);
    }

    /// The request was given to the replica; `is_new`: the log did not hold its batch before.
    pub fn ordered(&mut self, replica: &Replica, turn: &Turn, is_new: bool) {
        if is_new {
            self.burst
                .ordered(self.appends.queue.as_ref(), replica, turn.now_us);
        }
    }

    /// Takes in the commitment. A batch that waits may pass now, and no event comes for it.
    pub fn committed(&mut self, view: &mut View<'_>) {
        if self
            .burst
            .committed(self.appends.queue.as_mut(), view.replica, view.turn)
        {
            view.out.push(Output::WakeInTime);
        }
    }

    fn refuse_throttled(
        &mut self,
        request: &AppendRequest,
        retry_after_us: Micros,
        within_sla: bool,
        is_expired: bool,
        view: &mut View<'_>,
    ) {
        view.counters.throttled(request.entry_count, within_sla);
        self.attachments.note_refused(request.client, request.seq);
        let basis = self.basis(view.replica, request);
        let refusal = self
            .appends
            .throttled(basis, request, retry_after_us, within_sla, is_expired);
        view.out.client(request.client, refusal.into_message());
    }

    /// Refuses all that waits in the queue: it was not ordered.
    pub fn refuse_queue(&mut self, code: Code, view: &mut View<'_>) {
        for request in self.appends.drain() {
            view.counters.refused(request.entry_count);
            let basis = self.basis(view.replica, &request);
            let refusal = Refusal {
                head_address: answers::head_address(view.replica),
                ..refusal_of(basis, request.seq, code)
            };
            view.out.client(request.client, refusal.into_message());
        }
    }

    fn note_return(&mut self, view: &mut View<'_>) {
        if self.appends.take_returned() {
            view.out.push(Output::OwnerReturned {
                epoch: view.replica.epoch(),
            });
        }
    }

    pub fn next_wake(&mut self, now_us: Micros) -> Option<Micros> {
        self.appends.next_wake(now_us)
    }
}

/// Budget and burst capacity.
impl Intake {
    /// A configuration comes; `begins_epoch`: of a later epoch than the replica's.
    pub fn configure(&mut self, budget: &quorate_types::cost::Budget, begins_epoch: bool, turn: &Turn) {
        self.appends.configure(turn.now_us, budget);
        if begins_epoch {
            self.burst.begin_epoch(self.appends.queue.as_mut(), turn);
        }
    }

    /// Keeps to the window that the group was admitted with, when the server has no memory beyond what it promised.
    pub fn keep_to(&mut self, window_bytes: u64) {
        self.appends.keep_to(window_bytes);
    }

    /// Bytes of appends that wait.
    pub fn waiting_bytes(&self) -> u64 {
        self.appends.waiting_bytes()
    }

    /// Another head may have ordered batches that this replica lacks, and has the group's share of its project's guarantee.
    pub fn be_deposed(&mut self, now_us: Micros) {
        self.has_agreed = false;
        self.share.end(self.appends.queue.as_mut(), now_us);
        self.demand.end();
    }

    pub fn grant(&mut self, grant: &Grant, view: &mut View<'_>) {
        let may_take = view.replica.is_head() && view.replica.access().is_full();
        if view.replica.epoch() != grant.epoch || !may_take {
            return;
        }
        let Some(queue) = &mut self.appends.queue else {
            return;
        };
        self.burst
            .grant(queue, grant, self.share.idle_max_per_s(), view.turn.now_us);
        self.rate_changed(view);
    }

    /// The group's share of its project's guarantee; `None`: it has none any more.
    pub fn share(&mut self, share: Option<&GroupShare>, view: &mut View<'_>) {
        let (queue, now_us) = (self.appends.queue.as_mut(), view.turn.now_us);
        match (queue, share) {
            (Some(queue), Some(share)) if view.replica.is_head() && share.per_s.is_some() => {
                let chain_time = view.counters.chain_time();
                self.share.take(queue, share, chain_time, now_us);
            }
            (queue, _) => self.share.end(queue, now_us),
        }
        self.rate_changed(view);
    }

    fn rate_changed(&mut self, view: &mut View<'_>) {
        let rate_per_s = self.rate_per_s(view.turn.now_us);
        if self.burst.is_news(rate_per_s) {
            self.announce(view.replica, view.turn, view.out);
        }
        // A batch that waits may pass now, or has longer to wait.
        view.out.push(Output::WakeInTime);
    }

    pub fn assume(&mut self, rate_per_s: Option<u64>, now_us: Micros) {
        if let Some(queue) = &mut self.appends.queue {
            queue.assume(now_us, rate_per_s);
        }
    }

    /// Tells all attached clients the epoch, and the rate that passes now. The answer to an ATTACH that waits will have both.
    pub fn announce(&mut self, replica: &Replica, turn: &Turn, out: &mut Outputs) {
        let rate_per_s = self.rate_per_s(turn.now_us);
        self.burst.announced_to_all(rate_per_s);
        let notice = answers::notice(replica, rate_per_s);
        for client in self.attachments.answered() {
            out.client(client, notice.clone());
        }
    }

    pub fn take_load(
        &mut self,
        replica: &Replica,
        chain_time: ChainTime,
        now_us: Micros,
    ) -> Option<GroupLoad> {
        let max_per_s = self.share.idle_max_per_s();
        self.burst.load(
            self.appends.queue.as_ref(),
            replica,
            chain_time,
            max_per_s,
            now_us,
        )
    }

    /// The part of its project's guarantee that the group wants and has, if it is the head and was told any.
    pub fn take_flow(
        &mut self,
        replica: &Replica,
        chain_time: ChainTime,
        now_us: Micros,
    ) -> Option<GroupFlow> {
        let (config, queue) = (replica.config()?, self.appends.queue.as_ref()?);
        let wanted_per_s = self.share.wanted_per_s(queue, chain_time, now_us)?;
        Some(GroupFlow {
            group_id: config.group_id,
            wanted_per_s,
            share_per_s: queue.share_per_s(),
            idle_max_per_s: self.share.idle_max_per_s(),
        })
    }

    /// The rate that a partition wants, if this is its head.
    pub fn take_demand(
        &mut self,
        replica: &Replica,
        chain_time: ChainTime,
        now_us: Micros,
    ) -> Option<PartitionWant> {
        let (config, queue) = (replica.config()?, self.appends.queue.as_ref()?);
        if config.layout.is_none() || !replica.is_head() {
            return None;
        }
        Some(PartitionWant {
            group_id: config.group_id,
            wanted_per_s: self.demand.take(queue, chain_time, now_us),
        })
    }

    pub fn share_per_s(&self) -> u64 {
        self.appends.queue.as_ref().map_or(0, AppendQueue::share_per_s)
    }

    pub fn budget(&self) -> Option<&Budget> {
        self.appends.queue.as_ref().map(|queue| &queue.budget)
    }

    pub fn take_burst_requests(&mut self) -> u64 {
        self.burst.take_requests(self.appends.queue.as_ref())
    }

    /// Requests/s that pass now.
    pub fn rate_per_s(&self, now_us: Micros) -> u64 {
        self.burst.rate_per_s(self.appends.queue.as_ref(), now_us)
    }
}

/// A request that the budget lets through, with the time from which the SLA counts its latency.
fn passed(admitted: Admitted<AppendRequest>, view: &mut View<'_>) -> AppendRequest {
    let Admitted {
        mut item,
        is_owed,
        start_us,
    } = admitted;
    item.arrival.start_us = start_us;
    item.arrival.ordered_us = view.turn.now_us;
    if is_owed {
        view.counters.passed_reservation(item.entry_count);
    }
    item
}

fn not_attached(client: ClientRef, number: u64, code: Code, out: &mut Outputs) {
    let message = Refusal::new(kind::ATTACH, 0, code).into_message();
    out.push(Output::NotAttached {
        client,
        number,
        message,
    });
}
