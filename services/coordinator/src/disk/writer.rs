//! The thread that writes the log: orders in, in order; what is done comes back. Writes that wait together are synced once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use quorate_coordinator_core::state::CoordinatorState;
use quorate_quorum::{Entry, Members, Point, Position, Snapshot, Write, WriteId};
use quorate_types::FleetId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::log_file::{DurableLog, LogError, SnapshotBegun, SnapshotWritten};

#[derive(Debug)]
pub enum Order {
    Write(Write),
    /// The state there, with the entries behind it that the log has. Another thread writes it.
    Snapshot(Box<SnapshotOrder>),
    /// The member belongs to this fleet, from the next snapshot on.
    Fleet(FleetId),
    /// The newest snapshot is needed.
    Load,
    /// The snapshot is written before the thread ends. Nothing comes after it.
    Last(Option<Box<SnapshotOrder>>),
    /// The thread that writes a snapshot has ended.
    Written(Box<Result<SnapshotWritten, LogError>>, Position),
}

#[derive(Debug)]
pub struct SnapshotOrder {
    pub point: Point,
    pub members: Members,
    pub state: CoordinatorState,
    pub entries: Vec<Entry>,
}

#[derive(Debug)]
pub enum Done {
    /// This write and all before it are on stable storage.
    Written(WriteId),
    /// The log has grown so much that a snapshot is worth its write. Said once, until one was ordered.
    Grown,
    /// A snapshot with everything up to there is in place.
    Compacted(Position),
    Loaded(Arc<Snapshot>),
    /// Nothing is written any more.
    Failed(LogError),
}

/// The thread. The queues have no bound of their own: the quorum bounds its writes, and everything else comes one at a time.
#[derive(Debug)]
pub struct Disk {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

impl Disk {
    pub fn start(log: DurableLog) -> (Self, UnboundedReceiver<Done>) {
        let (orders, queue) = channel();
        let (done, results) = unbounded_channel();
        let own_orders = orders.clone();
        let thread = std::thread::Builder::new().name("disk".into()).spawn(move || {
            let mut writer = Writer {
                log,
                own_orders,
                done,
                snapshot: None,
                has_said_grown: false,
            };
            writer.run(&queue);
        });
        let thread = thread.expect("a thread starts");
        (Self { orders, thread }, results)
    }

    /// A thread that has failed has said so, and does nothing more.
    pub fn order(&self, order: Order) {
        let _ended = self.orders.send(order).is_err();
    }

    /// Ends the thread, with a last snapshot. Waits for it.
    pub fn stop(self, last: Option<SnapshotOrder>) {
        self.order(Order::Last(last.map(Box::new)));
        let _panicked = self.thread.join().is_err();
    }
}

struct Writer {
    log: DurableLog,
    own_orders: Sender<Order>,
    done: UnboundedSender<Done>,
    /// The thread that writes a snapshot.
    snapshot: Option<JoinHandle<()>>,
    has_said_grown: bool,
}

/// Orders that are looked at before one sync.
const BATCH_ORDERS: usize = 256;

impl Writer {
    fn run(&mut self, queue: &Receiver<Order>) {
        while let Ok(first) = queue.recv() {
            let more = queue.try_iter().take(BATCH_ORDERS);
            let orders: Vec<Order> = std::iter::once(first).chain(more).collect();
            match self.carry_out(orders) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.say(Done::Failed(error)),
            }
            if self.log.awaits_snapshot()
                && let Some(thread) = self.snapshot.take()
            {
                // Its order comes next.
                let _panicked = thread.join().is_err();
            }
        }
    }

    /// False: that was the last one.
    fn carry_out(&mut self, orders: Vec<Order>) -> Result<bool, LogError> {
        let mut writes = Vec::new();
        for order in orders {
            if let Order::Write(write) = order {
                writes.push(write);
                continue;
            }
            self.write(&mut writes)?;
            match order {
                Order::Write(_) => unreachable!("taken above"),
                Order::Snapshot(order) => self.begin_snapshot(*order),
                Order::Fleet(fleet) => self.log.know_fleet(fleet),
                Order::Load => self.say(Done::Loaded(self.log.newest_snapshot()?)),
                Order::Written(written, position) => self.put_in_place(*written, position)?,
                Order::Last(last) => {
                    if let Some(order) = last {
                        let (begun, state) = self.begun(*order);
                        let written = begun.write(&state)?;
                        self.log.put_in_place(written)?;
                    }
                    return Ok(false);
                }
            }
        }
        self.write(&mut writes)?;
        Ok(true)
    }

    fn write(&mut self, writes: &mut Vec<Write>) -> Result<(), LogError> {
        let Some(last) = writes.last().map(|write| write.id) else {
            return Ok(());
        };
        self.log.write(writes)?;
        writes.clear();
        self.say(Done::Written(last));
        if self.log.wants_snapshot() && !std::mem::replace(&mut self.has_said_grown, true) {
            self.say(Done::Grown);
        }
        Ok(())
    }

    fn begun(&mut self, order: SnapshotOrder) -> (SnapshotBegun, CoordinatorState) {
        if let Some(thread) = self.snapshot.take() {
            // Both would write the same file. The earlier one is not put in place.
            let _panicked = thread.join().is_err();
        }
        let begun = self.log.begin_snapshot(order.point, order.members, order.entries);
        (begun, order.state)
    }

    fn begin_snapshot(&mut self, order: SnapshotOrder) {
        self.has_said_grown = false;
        let position = order.point.position;
        let (begun, state) = self.begun(order);
        let orders = self.own_orders.clone();
        let thread = std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                let written = Box::new(begun.write(&state));
                let _ended = orders.send(Order::Written(written, position)).is_err();
            });
        self.snapshot = Some(thread.expect("a thread starts"));
    }

    fn put_in_place(
        &mut self,
        written: Result<SnapshotWritten, LogError>,
        position: Position,
    ) -> Result<(), LogError> {
        if self.log.put_in_place(written?)? {
            self.snapshot = None;
            self.say(Done::Compacted(position));
        }
        Ok(())
    }

    fn say(&self, done: Done) {
        let _ended = self.done.send(done).is_err();
    }
}
