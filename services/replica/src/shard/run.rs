//! A shard's thread: its runtime and its tasks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quorate_transport::spin::spin_for;
use quorate_transport::{Detached, ReadHalf, WriteHalf};
use quorate_types::limits::{CATCHUP_PACE_MS, COMMIT_NOTICE_HOLD_MS, FAIR_BLOCKED_WAIT_US, LINK_ALIVE_US};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

use super::{Shard, client_task, disk_task, link_task, ring_task};
use crate::clock::now_us;
use crate::journal_port::JournalPort;
use crate::messages::{ClientMessage, LinkMessage, ShardMessage};
use crate::shared::Shared;

/// The grain of the runtime's timer wheel.
const TIMER_GRAIN: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_micros(LINK_ALIVE_US);
/// Tenants are weighed again this often: all connections are looked at.
const WEIGH_TICKS: u64 = 5;
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
    shared.processors.join();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let (shard, work) = Shard::new(index, shared, port);
    let shard = Rc::new(RefCell::new(shard));
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        spawn_local(flush_task(shard.clone(), spin));
        spawn_local(tick_task(shard.clone()));
        spawn_local(timer_task(shard.clone()));
        spawn_local(pace_task(shard.clone()));
        spawn_local(notice_task(shard.clone()));
        spawn_local(pass_task(shard.clone()));
        spawn_local(ring_task::run(shard.clone(), spin));
        spawn_local(disk_task::run(shard.clone(), work));
        inbox_task(shard, inbox).await;
    });
}

/// After a flush, what comes next is looked for without sleeping for as long as `spin`.
pub(super) async fn flush_task(shard: Rc<RefCell<Shard>>, spin: Duration) {
    let wake = shard.borrow().flush_wake.clone();
    loop {
        spin_for(spin, wake.woken()).await;
        shard.borrow_mut().flush();
        let_next_read(&shard).await;
        let is_held = shard.borrow().executor.disk.port.placed_bytes() > 0;
        if is_held {
            // Batches that readers read now are written with it.
            tokio::task::yield_now().await;
            wake.wake_again();
        }
    }
}

/// Says which connection is read next, once every reader that is ready has asked. Sockets are looked at before, which
/// the runtime does not do by itself while it has tasks to run.
pub(super) async fn let_next_read(shard: &Rc<RefCell<Shard>>) {
    let wants_pass = shard.borrow().executor.clients.wants_pass();
    if wants_pass {
        tokio::task::yield_now().await;
    }
    shard.borrow_mut().executor.clients.let_read();
}

async fn tick_task(shard: Rc<RefCell<Shard>>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut ticks = 0u64;
    loop {
        interval.tick().await;
        let mut shard = shard.borrow_mut();
        shard.tick();
        let share_version = shard.shared().burst.share_version();
        shard.executor.links.keep_alive(share_version, now_us());
        ticks += 1;
        if ticks.is_multiple_of(WEIGH_TICKS) {
            shard.executor.clients.weigh_tenants();
        }
    }
}

/// Wakes groups when something in their queue, or a waiting read, has its time. Only groups in which something waits are
/// looked at, and once a millisecond at most: many that wait are no burden on each round.
async fn timer_task(shard: Rc<RefCell<Shard>>) {
    let timer = shard.borrow().executor.wakeups.timer.clone();
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

/// Gives learners their allowance, while any waits for it.
async fn pace_task(shard: Rc<RefCell<Shard>>) {
    let pacing = shard.borrow().executor.wakeups.pacing.clone();
    loop {
        pacing.notified().await;
        while shard.borrow().executor.wakeups.has_catching_up() {
            tokio::time::sleep(Duration::from_millis(CATCHUP_PACE_MS)).await;
            shard.borrow_mut().allow_catchup();
        }
    }
}

/// Tells what is committed where no batch has carried it meanwhile.
async fn notice_task(shard: Rc<RefCell<Shard>>) {
    let notices = shard.borrow().executor.wakeups.notices.clone();
    loop {
        notices.notified().await;
        tokio::time::sleep(Duration::from_millis(COMMIT_NOTICE_HOLD_MS)).await;
        shard.borrow_mut().send_commit_notices();
    }
}

/// Ends a round between tenants that waits for one of them, when that is enough.
async fn pass_task(shard: Rc<RefCell<Shard>>) {
    let later = shard.borrow().executor.clients.pass_later.clone();
    loop {
        later.notified().await;
        tokio::time::sleep(Duration::from_micros(FAIR_BLOCKED_WAIT_US)).await;
        shard.borrow().executor.clients.call_readers();
    }
}

async fn inbox_task(shard: Rc<RefCell<Shard>>, mut inbox: mpsc::UnboundedReceiver<ShardMessage>) {
    let mut messages = Vec::with_capacity(INBOX_BATCH);
    while inbox.recv_many(&mut messages, INBOX_BATCH).await > 0 {
        for message in messages.drain(..) {
            if matches!(message, ShardMessage::Stop) {
                // This flush is still written: answers reach their clients.
                let mut shard = shard.borrow_mut();
                shard.executor.disk.release_hold();
                shard.flush();
                return;
            }
            handle(&shard, message);
        }
    }
}

/// A connection or a link begins a task; all else is the shard's.
fn handle(shard: &Rc<RefCell<Shard>>, message: ShardMessage) {
    match message {
        ShardMessage::Client(ClientMessage::Accepted {
            stream,
            rest,
            slot,
            version,
        }) => {
            if let Some(stream) = adopt(stream) {
                spawn_local(client_task::run(shard.clone(), stream, rest, slot, version));
            }
        }
        ShardMessage::Link(LinkMessage::Accepted {
            server,
            stream,
            rest,
            version,
        }) => {
            if let Some(halves) = adopt(stream) {
                let opened = link_task::Opened {
                    halves,
                    rest,
                    version,
                };
                spawn_local(link_task::serve(shard.clone(), server, opened));
            }
        }
        ShardMessage::Link(LinkMessage::Dial(server)) => {
            spawn_local(link_task::dial(shard.clone(), server));
        }
        message => shard.borrow_mut().message(message),
    }
}

/// A socket handed over by another thread joins this shard's runtime; one that is broken is dropped.
fn adopt(stream: Detached) -> Option<(ReadHalf, WriteHalf)> {
    stream.attach().ok()
}
