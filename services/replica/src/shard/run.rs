//! A shard's thread: its runtime and its tasks.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quorate_journal::Event as JournalEvent;
use quorate_transport::spin::spin_for;
use quorate_transport::{Detached, ReadHalf, WriteHalf};
use quorate_types::Micros;
use quorate_types::limits::{CATCHUP_PACE_MS, FAIR_BLOCKED_WAIT_US, NOTICE_HOLD_MS};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::now_us;
use crate::disk::JournalPort;
use crate::shard::io::{Io, Work};
use crate::shard::links::ALIVE_INTERVAL_US;
use crate::shard::{Shard, ShardMessage, clients, fair, links, reads};
use crate::shared::Shared;

/// Of the runtime's timer wheel.
const TIMER_GRAIN: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_millis(100);
/// Messages taken from the inbox in one step.
const INBOX_BATCH: usize = 256;

/// Runs the shard until [`ShardMessage::Stop`]. Call on the shard's own thread.
pub fn run(
    index: usize,
    shared: Arc<Shared>,
    port: JournalPort,
    inbox: mpsc::UnboundedReceiver<ShardMessage>,
    spin: Duration,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let (io, work) = Io::new(index, shared, port);
    let shard = Rc::new(RefCell::new(Shard {
        groups: Default::default(),
        io,
        parted: Vec::new(),
        lost: HashSet::new(),
    }));
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        spawn_local(flush_task(shard.clone(), spin));
        spawn_local(tick_task(shard.clone()));
        spawn_local(timer_task(shard.clone()));
        spawn_local(pace_task(shard.clone()));
        spawn_local(notice_task(shard.clone()));
        spawn_local(pass_task(shard.clone()));
        spawn_work(&shard, work);
        inbox_task(shard, inbox).await;
    });
}

/// After a round, what comes next is looked for without sleeping for as long as `spin`.
pub(super) async fn flush_task(shard: Rc<RefCell<Shard>>, spin: Duration) {
    let wake = shard.borrow().io.wake.clone();
    loop {
        spin_for(spin, wake.notified()).await;
        shard.borrow_mut().flush();
        fair::let_next_read(&shard).await;
        let is_held = shard.borrow().io.journal.placed_bytes() > 0;
        if is_held {
            // What readers read now is written with it.
            tokio::task::yield_now().await;
            wake.notify_one();
        }
    }
}

async fn tick_task(shard: Rc<RefCell<Shard>>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut alive_at = 0;
    loop {
        interval.tick().await;
        let mut shard = shard.borrow_mut();
        shard.tick();
        if now_us() >= alive_at {
            alive_at = now_us() + ALIVE_INTERVAL_US;
            shard.keep_links_alive();
            shard.weigh_tenants();
        }
    }
}

/// Wakes groups when something in their queue, or a waiting read, has its time. Only groups in which something waits are
/// looked at, and once a millisecond at most: many that wait are no burden on each round.
async fn timer_task(shard: Rc<RefCell<Shard>>) {
    let timer = shard.borrow().io.timer.clone();
    loop {
        let now = now_us();
        let next = shard.borrow_mut().wake_timed(now);
        let woken_early = match next {
            None => {
                timer.notified().await;
                true
            }
            Some(at) => {
                let wait = Duration::from_micros(at.saturating_sub(now)).max(TIMER_GRAIN);
                tokio::time::timeout(wait, timer.notified()).await.is_ok()
            }
        };
        if woken_early {
            tokio::time::sleep(TIMER_GRAIN).await;
        }
    }
}

impl Shard {
    /// Carries out the groups in which something has its time; when the next has.
    pub(super) fn wake_timed(&mut self, now: Micros) -> Option<Micros> {
        let mut next = None;
        for id in std::mem::take(&mut self.io.timed) {
            let wake_at = self.groups.get_mut(&id).and_then(|group| group.next_wake(now));
            let Some(at) = wake_at else {
                continue;
            };
            self.io.timed.insert(id);
            if at <= now {
                self.with_group(id, |_, _| {});
            }
            next = Some(next.map_or(at, |next: Micros| next.min(at)));
        }
        next
    }
}

/// Gives learners their allowance, while any waits for it.
async fn pace_task(shard: Rc<RefCell<Shard>>) {
    let pacing = shard.borrow().io.pacing.clone();
    loop {
        pacing.notified().await;
        while !shard.borrow().io.catching_up.is_empty() {
            tokio::time::sleep(Duration::from_millis(CATCHUP_PACE_MS)).await;
            shard.borrow_mut().allow_catchup();
        }
    }
}

/// Tells what is committed where no batch has carried it meanwhile.
async fn notice_task(shard: Rc<RefCell<Shard>>) {
    let notices = shard.borrow().io.notices.clone();
    loop {
        notices.notified().await;
        tokio::time::sleep(Duration::from_millis(NOTICE_HOLD_MS)).await;
        shard.borrow_mut().tell_late();
    }
}

/// Ends a round between tenants that waits for one of them, when that is enough.
async fn pass_task(shard: Rc<RefCell<Shard>>) {
    let later = shard.borrow().io.pass_later.clone();
    loop {
        later.notified().await;
        tokio::time::sleep(Duration::from_micros(FAIR_BLOCKED_WAIT_US)).await;
        shard.borrow().io.call_readers();
    }
}

fn spawn_work(shard: &Rc<RefCell<Shard>>, work: Work) {
    let Work {
        mut loads,
        mut disk_reads,
        mut damaged,
    } = work;
    let owner = shard.clone();
    spawn_local(async move {
        while let Some((group_id, index)) = damaged.recv().await {
            owner
                .borrow_mut()
                .with_group(group_id, |group, io| group.repair(io, vec![(index, None)]));
        }
    });
    let owner = shard.clone();
    spawn_local(async move {
        while let Some(loaded) = loads.recv().await {
            owner.borrow_mut().with_group(loaded.group_id, |group, io| {
                if group.life == loaded.life {
                    group.step(io, loaded.event);
                }
            });
        }
    });
    let owner = shard.clone();
    spawn_local(async move {
        while let Some(mut read) = disk_reads.recv().await {
            let owner = owner.clone();
            let io = {
                let io = &owner.borrow().io;
                reads::ReadIo {
                    journal: io.journal.journal(),
                    logs: io.shared.group_logs(),
                }
            };
            spawn_local(async move {
                let payloads = reads::read_payloads(io, &mut read).await;
                let group_id = read.group_id;
                owner
                    .borrow_mut()
                    .with_group(group_id, |group, io| group.disk_read_done(io, read, payloads));
            });
        }
    });
}

async fn inbox_task(shard: Rc<RefCell<Shard>>, mut inbox: mpsc::UnboundedReceiver<ShardMessage>) {
    let mut messages = Vec::with_capacity(INBOX_BATCH);
    while inbox.recv_many(&mut messages, INBOX_BATCH).await > 0 {
        for message in messages.drain(..) {
            if matches!(message, ShardMessage::Stop) {
                // What the round has made is still written: answers reach their clients.
                let mut shard = shard.borrow_mut();
                shard.io.sync_hold.release();
                shard.flush();
                return;
            }
            handle(&shard, message);
        }
    }
}

fn handle(owner: &Rc<RefCell<Shard>>, message: ShardMessage) {
    let mut shard = owner.borrow_mut();
    match message {
        ShardMessage::Configure(config) => shard.configure(config),
        ShardMessage::Drop { group_id, epoch } => shard.drop_group(group_id, epoch),
        ShardMessage::Lost(group_id) => {
            shard.lost.insert(group_id);
        }
        ShardMessage::Recovered {
            group_id,
            replica,
            places,
            is_damaged,
        } => shard.recovered(group_id, *replica, places, is_damaged),
        ShardMessage::Moved { group_id, records } => shard.moved(group_id, &records),
        ShardMessage::LostInJournal { lsns, answer } => shard.lost_in_journal(&lsns, &answer),
        ShardMessage::DamagedInLog {
            group_id,
            place,
            answer,
        } => shard.damaged_in_log(group_id, place, &answer),
        ShardMessage::Restate(group_id) => shard.restate(group_id),
        ShardMessage::Fetched { to, envelope } => {
            shard.io.fetches_served -= 1;
            shard.io.send_peer(to, envelope);
        }
        ShardMessage::Journal(event) => journal_event(&mut shard, event),
        ShardMessage::Client { stream, rest, slot } => {
            if let Some(stream) = adopt(stream) {
                spawn_local(clients::run(owner.clone(), stream, rest, slot));
            }
        }
        ShardMessage::Link { server, stream, rest } => {
            if let Some(stream) = adopt(stream) {
                spawn_local(links::accept(owner.clone(), server, stream, rest));
            }
        }
        ShardMessage::Dial(server) => {
            spawn_local(links::dial(owner.clone(), server));
        }
        ShardMessage::LinkUp(server) => shard.links_changed(server, true),
        ShardMessage::LinkDown(server) => shard.links_changed(server, false),
        ShardMessage::FromPeer { from, envelope } => shard.peer_envelope(from, envelope),
        ShardMessage::ToPeer { to, envelope } => shard.io.send_peer(to, envelope),
        ShardMessage::NotAttached { client, number } => shard.io.free_channel(client, number),
        ShardMessage::FromClient {
            group_id,
            client,
            request,
            backlog,
            weight,
        } => {
            backlog.taken(weight);
            shard.io.crossings.note(client, &request, backlog);
            shard.group_request(group_id, client, request);
        }
        ShardMessage::ToClient {
            client,
            message,
            weight,
        } => shard.io.answer_has_crossed(client, message, weight),
        ShardMessage::Cut { connection } => shard.io.cut_connection(connection),
        ShardMessage::Sample(answer) => {
            let _gone = answer.send(shard.sample()).is_err();
        }
        ShardMessage::Lending(request) => shard.lending(request),
        ShardMessage::Stop => unreachable!("handled by the inbox"),
    }
}

pub(super) fn journal_event(shard: &mut Shard, event: JournalEvent) {
    match event {
        JournalEvent::Durable { tag, .. } => {
            for durable in shard.io.journal.completed(tag) {
                shard.with_group(durable.group_id, |group, io| group.durable(io, durable));
            }
            shard.io.wake.notify_one();
        }
        // What waits is submitted again by the next round.
        JournalEvent::Room => shard.io.wake.notify_one(),
        JournalEvent::DiskFree => {
            if shard
                .io
                .shared
                .storage_fault
                .lock()
                .expect("storage fault")
                .take()
                .is_some()
            {
                tracing::info!("the disk takes records again");
            }
            shard.storage_fault(false);
            shard.io.wake.notify_one();
        }
        JournalEvent::Failed { reason } => {
            shard.io.journal.died();
            *shard.io.shared.storage_fault.lock().expect("storage fault") = Some(reason.to_string());
            shard.storage_fault(true);
        }
        JournalEvent::DiskFull { reason } => {
            *shard.io.shared.storage_fault.lock().expect("storage fault") = Some(reason.to_string());
            shard.storage_fault(true);
        }
    }
}

/// A socket handed over by another thread joins this shard's runtime; one that is broken is dropped.
fn adopt(stream: Detached) -> Option<(ReadHalf, WriteHalf)> {
    stream.attach().ok()
}
