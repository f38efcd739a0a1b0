//! Events that are due, in the order of their times.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use quorate_group::Event;
use quorate_quorum::Message;
use quorate_types::control::ToServer;
use quorate_types::{GroupId, Micros};

use super::{ClientId, DiskRead, FromClient, Node, ToClient};

#[derive(Debug)]
pub enum Scheduled {
    /// A frame arrives on the link.
    Peer {
        from: usize,
        to: usize,
        generation: u64,
    },
    LinkUp {
        server: usize,
        peer: usize,
        generation: u64,
    },
    LinkDown {
        server: usize,
        peer: usize,
        generation: u64,
    },
    /// The server has got nothing from its peer for long, unless it has meanwhile.
    Silence {
        server: usize,
        peer: usize,
        generation: u64,
    },
    Dial {
        a: usize,
        b: usize,
    },
    /// A control message arrives at the coordinator, or the end of its connection.
    AtCoordinator {
        member: usize,
        server: usize,
        connection: u64,
    },
    /// A control message arrives at the server, or the end of its connection.
    AtServer {
        server: usize,
        connection: u64,
    },
    ControlDial {
        server: usize,
        incarnation: u64,
    },
    Heartbeat {
        server: usize,
        incarnation: u64,
        connection: u64,
    },
    /// The main thread looks whether the shard ticks and syncs return.
    Watch {
        server: usize,
        incarnation: u64,
    },
    /// An order of the coordinator that the main thread has handed to the shard.
    Order {
        server: usize,
        incarnation: u64,
        order: Box<ToServer>,
    },
    /// The shard's thread hangs no more.
    ShardGoesOn {
        server: usize,
        incarnation: u64,
    },
    Unanswered {
        server: usize,
        connection: u64,
    },
    /// A message of one coordinator arrives at another.
    AtMember {
        member: usize,
        from: usize,
        incarnation: u64,
        message: Box<Message>,
    },
    /// A coordinator sees the end of the connection on which another one sends.
    MemberClosed {
        member: usize,
        from: usize,
        incarnation: u64,
    },
    CoordinatorTick {
        member: usize,
        incarnation: u64,
    },
    CoordinatorSynced {
        member: usize,
        incarnation: u64,
    },
    /// A coordinator has read its newest snapshot.
    SnapshotLoaded {
        member: usize,
        incarnation: u64,
    },
    CoordinatorRestart {
        member: usize,
    },
    CoordinatorResume {
        member: usize,
    },
    CoordinatorDiskFast {
        member: usize,
    },
    Synced {
        server: usize,
        incarnation: u64,
    },
    /// The disk has read something.
    DiskRead {
        server: usize,
        incarnation: u64,
        group: GroupId,
        read: Box<DiskRead>,
    },
    /// The journal's copier goes over what it has not read.
    Copy {
        server: usize,
        incarnation: u64,
    },
    AtGroup {
        server: usize,
        incarnation: u64,
        group: GroupId,
        event: Box<Event>,
    },
    Flush {
        server: usize,
        incarnation: u64,
    },
    Tick {
        server: usize,
        incarnation: u64,
    },
    /// A queue has something to order or to refuse.
    Wake {
        server: usize,
        incarnation: u64,
        group: GroupId,
    },
    /// A replica has held back what is committed for long enough.
    CommitNoticeDue {
        server: usize,
        incarnation: u64,
        group: GroupId,
    },
    /// A learner may get more.
    CatchupDue {
        server: usize,
        incarnation: u64,
        group: GroupId,
    },
    DiskWorks {
        server: usize,
        incarnation: u64,
    },
    DiskFast {
        server: usize,
    },
    Restart {
        server: usize,
    },
    Resume {
        server: usize,
    },
    ClientTick {
        client: ClientId,
    },
    FromClient {
        server: usize,
        incarnation: u64,
        client: ClientId,
        message: Box<FromClient>,
    },
    ToClient {
        client: ClientId,
        connection: u64,
        message: Box<ToClient>,
    },
    Unblock {
        from: Node,
        to: Node,
    },
    Fault,
    /// Whether the fleet has healed is checked.
    Check,
}

#[derive(Debug, Default)]
pub struct Schedule {
    heap: BinaryHeap<Due>,
    order: u64,
}

#[derive(Debug)]
struct Due {
    at: Micros,
    order: u64,
    event: Scheduled,
}

impl Schedule {
    pub fn at(&mut self, at: Micros, event: Scheduled) {
        self.order += 1;
        let order = self.order;
        self.heap.push(Due { at, order, event });
    }

    pub fn pop(&mut self) -> Option<(Micros, Scheduled)> {
        self.heap.pop().map(|due| (due.at, due.event))
    }
}

impl Ord for Due {
    /// The earliest is the greatest; of one time, the one that was scheduled first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
