//! The shard's ways out: connections, links, the journal, other shards. Groups use them; they know no groups.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quorate_chain::{ClientRef, Command, Event};
use quorate_qos::{FairQueue, Pace};
use quorate_types::ids::IdMap;
use quorate_types::limits::{
    CATCHUP_BURST_MS, CLIENT_OUTBOX_BYTES_MAX, LINK_FEED_BYTES_MAX, LINK_OUTBOX_BYTES_MAX,
};
use quorate_types::{Code, GroupConfig, GroupId, Index, Micros, Offset, ServerId};
use quorate_wire::{client, peer};
use tokio::sync::{Notify, mpsc};

use crate::clock;
use crate::disk::JournalPort;
use crate::shard::ShardMessage;
use crate::shard::clients::Connection;
use crate::shard::crossing::Crossings;
use crate::shard::fair::answer_cost;
use crate::shard::links::Link;
use crate::shard::reads::DiskRead;
use crate::shard::stretch::SyncHold;
use crate::shared::Shared;

/// The upper bits of a connection's number say which shard owns it.
const CONNECTION_SHARD_SHIFT: u32 = 56;

pub struct Io {
    pub shard: usize,
    pub shared: Arc<Shared>,
    pub connections: IdMap<u64, Connection>,
    pub links: IdMap<ServerId, Link>,
    /// Clients of other shards' connections.
    pub crossings: Crossings,
    pub journal: JournalPort,
    pub dirty_groups: Vec<GroupId>,
    dirty_connections: Vec<u64>,
    dirty_links: Vec<ServerId>,
    /// A round is being carried out: it needs no other to write what it makes.
    pub is_flushing: bool,
    /// Whether what a round placed in the journal is left to the next one.
    pub sync_hold: SyncHold,
    /// Groups that waited for room on a link that has some.
    pub released: Vec<GroupId>,
    /// Groups that hold back what is committed for their next batch to carry.
    pub owing: Vec<GroupId>,
    /// Wakes the task that tells it when none comes.
    pub notices: Rc<Notify>,
    /// Wakes the flush task.
    pub wake: Rc<Notify>,
    /// Groups in which something waits for its time.
    pub timed: BTreeSet<GroupId>,
    /// Wakes the timer task: there is one more, or another time.
    pub timer: Rc<Notify>,
    next_connection: u64,
    next_life: u64,
    loads: mpsc::UnboundedSender<Loaded>,
    disk_reads: mpsc::UnboundedSender<DiskRead>,
    damaged: mpsc::UnboundedSender<(GroupId, Index)>,
    /// Repairs for which a peer was asked, and batches being read back for peers that repair.
    pub repairs: usize,
    pub fetches_served: usize,
    /// What learners of this shard's groups may be sent.
    pub pace: Pace,
    /// Groups whose learner waits for its allowance.
    pub catching_up: BTreeSet<GroupId>,
    /// Wakes the pace task: one of them waits.
    pub pacing: Rc<Notify>,
    /// Whose connection is read next.
    pub fair: FairQueue,
    /// Those named last; empty, the allocation is kept.
    pub next_readers: Vec<u64>,
    /// Wakes the task that has them named again in a while.
    pub pass_later: Rc<Notify>,
    turn: Option<Turn>,
    /// Of the group that is at work: one piece of memory for all of them, which is in the cache.
    pub scratch: Scratch,
}

/// The clocks as they were when it began: what is done in one go happens at one time, and a look at a clock for each
/// frame and group would be a twentieth of what short batches cost.
struct Turn {
    now: Micros,
    wall_us: Option<u64>,
}

/// Empty between two uses.
#[derive(Default)]
pub struct Scratch {
    pub commands: Vec<Command>,
    pub acks: Vec<(ClientRef, u64, Offset)>,
}

/// What was read back for a group's successor; of use in the life in which it was asked for.
pub struct Loaded {
    pub group_id: GroupId,
    pub life: u64,
    pub event: Event,
}

/// Work that the shard's tasks do on the groups' behalf. Unbounded channels, bounded by their use: one load
/// for each successor, one disk read for each waiting reader.
pub struct Work {
    pub loads: mpsc::UnboundedReceiver<Loaded>,
    pub disk_reads: mpsc::UnboundedReceiver<DiskRead>,
    /// Batches that were found damaged when they were read for a successor.
    pub damaged: mpsc::UnboundedReceiver<(GroupId, Index)>,
}

impl Io {
    pub fn new(shard: usize, shared: Arc<Shared>, journal: JournalPort) -> (Self, Work) {
        let (loads, loads_receiver) = mpsc::unbounded_channel();
        let (disk_reads, disk_reads_receiver) = mpsc::unbounded_channel();
        let (damaged, damaged_receiver) = mpsc::unbounded_channel();
        let io = Self::with_work(shard, shared, journal, loads, disk_reads, damaged);
        (
            io,
            Work {
                loads: loads_receiver,
                disk_reads: disk_reads_receiver,
                damaged: damaged_receiver,
            },
        )
    }

    fn with_work(
        shard: usize,
        shared: Arc<Shared>,
        journal: JournalPort,
        loads: mpsc::UnboundedSender<Loaded>,
        disk_reads: mpsc::UnboundedSender<DiskRead>,
        damaged: mpsc::UnboundedSender<(GroupId, Index)>,
    ) -> Self {
        let bytes_per_s = shared.catchup_bytes_per_s.load(Ordering::Relaxed) / shared.shard_count() as u64;
        let burst_bytes = (bytes_per_s * CATCHUP_BURST_MS / 1_000).max(1);
        let pace = Pace::new(bytes_per_s, burst_bytes, clock::now_us());
        let fair = FairQueue::new(shared.shard_capacity_milli());
        Self {
            shard,
            shared,
            connections: IdMap::default(),
            links: IdMap::default(),
            crossings: Crossings::default(),
            journal,
            dirty_groups: Vec::new(),
            dirty_connections: Vec::new(),
            dirty_links: Vec::new(),
            is_flushing: false,
            sync_hold: SyncHold::default(),
            released: Vec::new(),
            owing: Vec::new(),
            notices: Rc::new(Notify::new()),
            wake: Rc::new(Notify::new()),
            timed: BTreeSet::new(),
            timer: Rc::new(Notify::new()),
            next_connection: 1,
            next_life: 1,
            loads,
            disk_reads,
            damaged,
            repairs: 0,
            fetches_served: 0,
            pace,
            catching_up: BTreeSet::new(),
            pacing: Rc::new(Notify::new()),
            fair,
            next_readers: Vec::new(),
            pass_later: Rc::new(Notify::new()),
            turn: None,
            scratch: Scratch::default(),
        }
    }

    /// Until [`Io::end_turn`], time stands still for what the shard does. To be ended before anything is awaited.
    pub fn begin_turn(&mut self) {
        let now = clock::now_us();
        self.turn = Some(Turn { now, wall_us: None });
    }

    pub fn end_turn(&mut self) {
        self.turn = None;
    }

    pub fn now_us(&self) -> Micros {
        self.turn.as_ref().map_or_else(clock::now_us, |turn| turn.now)
    }

    pub fn wall_us(&mut self) -> u64 {
        let turn = self.turn.as_mut();
        turn.map_or_else(clock::wall_us, |turn| {
            *turn.wall_us.get_or_insert_with(clock::wall_us)
        })
    }

    /// The group's learner waits until it may be sent more.
    pub fn wants_catchup(&mut self, group_id: GroupId) {
        self.catching_up.insert(group_id);
        self.pacing.notify_one();
    }

    /// Something was made dirty.
    pub fn wake_flush(&self) {
        if !self.is_flushing {
            self.wake.notify_one();
        }
    }

    /// The group's successor has not been told what is committed.
    pub fn owes_notice(&mut self, group_id: GroupId) {
        if self.owing.is_empty() {
            self.notices.notify_one();
        }
        self.owing.push(group_id);
    }

    /// Where a batch goes that was found damaged.
    pub fn damaged(&self) -> mpsc::UnboundedSender<(GroupId, Index)> {
        self.damaged.clone()
    }

    /// Where an event for a group goes that a task of this shard produced.
    pub fn loads(&self) -> mpsc::UnboundedSender<Loaded> {
        self.loads.clone()
    }

    pub fn read_from_disk(&self, read: DiskRead) {
        let _stopping = self.disk_reads.send(read).is_err();
    }

    pub fn new_connection_id(&mut self) -> u64 {
        let id = (self.shard as u64) << CONNECTION_SHARD_SHIFT | self.next_connection;
        self.next_connection += 1;
        id
    }

    /// For a group, or a log of a group, that begins here.
    pub fn new_life(&mut self) -> u64 {
        self.next_life += 1;
        self.next_life
    }

    pub fn shard_of_connection(&self, client: ClientRef) -> usize {
        (client.connection >> CONNECTION_SHARD_SHIFT) as usize
    }

    pub fn send_client(&mut self, client: ClientRef, message: client::Message) {
        let owner = self.shard_of_connection(client);
        if owner != self.shard {
            let message = self.crossings.for_client(client, message);
            if let Some(message) = message {
                self.shared.send(owner, message);
            }
            return;
        }
        let is_isolated = !self.shared.is_unisolated();
        self.push_to(client.connection, |connection| {
            let before = connection.outbox.len();
            connection
                .outbox
                .push(|out| message.encode(client.channel, None, out));
            if is_isolated {
                connection.spend(answer_cost(&message, connection.outbox.len() - before));
            }
        });
    }

    /// For a connection of this shard, if it is still there.
    fn push_to(&mut self, id: u64, push: impl FnOnce(&mut Connection)) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        // A client that asks and does not read is cut off before it costs more memory.
        if connection.outbox.len() > 2 * CLIENT_OUTBOX_BYTES_MAX {
            connection.cut("does not read its answers");
            return;
        }
        push(connection);
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.dirty_connections.push(id);
            self.wake_flush();
        }
    }

    /// Batches that are committed, all of one client.
    pub fn send_acks(&mut self, client: ClientRef, acks: &[(ClientRef, u64, Offset)]) {
        let acks = acks.iter().map(|(_, seq, base_offset)| (*seq, *base_offset));
        if self.shard_of_connection(client) != self.shard {
            return self.send_client(client, client::Message::Acked(acks.collect()));
        }
        self.push_to(client.connection, |connection| {
            connection.outbox.push(|out| {
                client::encode_acked(client.channel, acks, out);
                None
            });
        });
    }

    /// From a group of another shard.
    pub fn answer_has_crossed(&mut self, client: ClientRef, message: client::Message, weight: usize) {
        if let Some(connection) = self.connections.get(&client.connection) {
            connection.backlog.arrived(weight);
        }
        self.send_client(client, message);
    }

    pub fn cut_connection(&self, id: u64) {
        if let Some(connection) = self.connections.get(&id) {
            connection.cut("does not read the answers from groups of other shards");
        }
    }

    /// Has the group carried out when something of it has its time.
    pub fn wake_in_time(&mut self, group_id: GroupId) {
        self.timed.insert(group_id);
        self.timer.notify_one();
    }

    pub fn mark_connection(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.is_dirty {
            connection.is_dirty = true;
            self.dirty_connections.push(id);
            self.wake_flush();
        }
    }

    /// To a peer, if its link is up; otherwise the message is lost, and the protocol asks again when it is.
    pub fn send_peer(&mut self, to: ServerId, envelope: peer::Envelope) {
        let owner = self.shared.shard_of_peer(to);
        if owner != self.shard {
            self.shared.send(owner, ShardMessage::ToPeer { to, envelope });
            return;
        }
        let Some(link) = self.links.get_mut(&to) else {
            return;
        };
        let before = link.outbox.len();
        link.outbox.push(|out| envelope.into_frame(out));
        link.pushed_bytes += (link.outbox.len() - before) as u64;
        if link.outbox.len() > LINK_OUTBOX_BYTES_MAX {
            tracing::warn!(peer = to.0, "link is too far behind; it is opened anew");
            link.close.notify_one();
        }
        if !std::mem::replace(&mut link.is_dirty, true) {
            self.dirty_links.push(to);
            self.wake_flush();
        }
    }

    /// Whether a group has to wait before it sends more to a peer whose link is full; if so, it is flushed again when
    /// there is room. Of links of this shard: what goes over others' is bounded by each group's window.
    pub fn is_held(&mut self, to: ServerId, group_id: GroupId, was_held: bool) -> bool {
        let Some(link) = self.links.get_mut(&to) else {
            return false;
        };
        let is_held = link.outbox.len() > LINK_FEED_BYTES_MAX;
        if is_held && !was_held {
            link.held.push(group_id);
        }
        is_held
    }

    /// Groups need wait no longer for room on a link.
    pub fn release(&mut self, held: Vec<GroupId>) {
        if !held.is_empty() {
            self.released.extend(held);
            self.wake.notify_one();
        }
    }

    pub fn mark_link(&mut self, to: ServerId) {
        let Some(link) = self.links.get_mut(&to) else {
            return;
        };
        if !link.is_dirty {
            link.is_dirty = true;
            self.dirty_links.push(to);
            self.wake_flush();
        }
    }

    /// Writes what waits on each socket that got something in this round.
    pub fn write_dirty(&mut self) {
        for id in self.dirty_connections.drain(..) {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            connection.is_dirty = false;
            match connection.outbox.try_write(&connection.stream) {
                Ok(true) => {}
                Ok(false) => connection.blocked.notify_one(),
                Err(_) => connection.close.notify_one(),
            }
        }
        let mut released = Vec::new();
        for server in self.dirty_links.drain(..) {
            let Some(link) = self.links.get_mut(&server) else {
                continue;
            };
            link.is_dirty = false;
            match link.outbox.try_write(&link.stream) {
                Ok(true) => {}
                Ok(false) => link.blocked.notify_one(),
                Err(_) => link.close.notify_one(),
            }
            if link.outbox.len() <= LINK_FEED_BYTES_MAX / 2 {
                released.append(&mut link.held);
            }
        }
        self.release(released);
    }

    /// The journal takes nothing: persistent groups of this server become read-only, and say so.
    pub fn storage_refused(&self, reason: &str) {
        let mut fault = self.shared.storage_fault.lock().expect("storage fault");
        if fault.is_none() {
            tracing::error!(
                reason,
                "the disk takes no more records; persistent groups are read-only"
            );
            *fault = Some(reason.to_string());
            self.shared.broadcast(|| {
                ShardMessage::Journal(quorate_journal::Event::DiskFull {
                    reason: reason.into(),
                })
            });
        }
    }

    pub fn note_peers(&self, config: &GroupConfig) {
        self.shared.note_peers(config);
    }

    pub fn forget_peers_of(&self, group_id: GroupId) {
        self.shared.forget_peers_of(group_id);
    }

    pub fn refuse(&mut self, client: ClientRef, refusal: Refusal) {
        let Refusal {
            op,
            id,
            code,
            unknown,
            retry_after_ms,
            head_address,
            detail,
        } = refusal;
        let message = match detail {
            Some(detail) => format!("{} {detail}", code.explanation()),
            None => code.explanation().to_string(),
        };
        let refused = client::Refused {
            op,
            outcome: if unknown {
                client::Outcome::Unknown
            } else {
                client::Outcome::Refused
            } as u8,
            retry: client::retry_byte(code),
            code: code as u16,
            retry_after_ms,
            id,
            head_address,
            message,
        };
        self.send_client(client, client::Message::Refused(refused));
    }
}

/// A refusal to be sent.
pub struct Refusal {
    /// Kind of the message refused.
    pub op: u8,
    pub id: u64,
    pub code: Code,
    /// Whether it may have happened all the same.
    pub unknown: bool,
    pub retry_after_ms: u32,
    pub head_address: String,
    pub detail: Option<String>,
}

impl Refusal {
    pub fn new(op: u8, id: u64, code: Code) -> Self {
        Self {
            op,
            id,
            code,
            unknown: false,
            retry_after_ms: 0,
            head_address: String::new(),
            detail: None,
        }
    }

    pub fn detail(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }
}
