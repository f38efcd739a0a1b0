//! How far a reader goes before what it has read is sent on.
//!
//! A shard sends once everybody has read what there is. What has piled up in a socket would all be taken in before the
//! first of it goes on to the next server, which has nothing to do until then; the more each server takes in, the more
//! arrives at the next at once, and in the end everything that is under way travels together and one server of the
//! chain works at a time. So a reader stops after a while for a round to be carried out, though its socket has more.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use quorate_types::limits::{READ_STRETCH_BYTES, READ_STRETCH_SYNCED_BYTES, SYNC_HOLD_BYTES};
use tokio::task::yield_now;

use crate::shard::Shard;
use crate::shard::io::Io;

#[derive(Default)]
pub struct Stretch {
    bytes: usize,
}

impl Stretch {
    /// Waits for `read`. A socket that has nothing begins a stretch: rounds are carried out meanwhile.
    pub async fn await_more<T>(&mut self, read: impl Future<Output = T>) -> T {
        let mut read = pin!(read);
        poll_fn(|context| {
            let polled = read.as_mut().poll(context);
            if polled.is_pending() {
                self.bytes = 0;
            }
            polled
        })
        .await
    }

    /// So many more were read, and what came of them was given to the shard.
    pub async fn goes_on(&mut self, shard: &Rc<RefCell<Shard>>, bytes: usize) {
        self.bytes += bytes;
        if self.bytes < READ_STRETCH_BYTES || self.bytes < shard.borrow().io.stretch_bytes() {
            return;
        }
        self.bytes = 0;
        shard.borrow_mut().io.pause_reading();
        yield_now().await;
    }
}

impl Io {
    fn stretch_bytes(&self) -> usize {
        match self.journal.is_idle() {
            true => READ_STRETCH_BYTES,
            false => READ_STRETCH_SYNCED_BYTES,
        }
    }

    /// A round is to be carried out, though there is more to read.
    fn pause_reading(&mut self) {
        self.sync_hold.reads_go_on = true;
        self.wake_flush();
    }
}

/// What a round places in the journal is written with what the next one does, if readers are about to go on: one sync for
/// both. Not twice in turn: a group's sync does not wait for as long as others have something to read.
#[derive(Default)]
pub struct SyncHold {
    /// A reader stopped for a round to be carried out, and has more to read after it.
    reads_go_on: bool,
    is_held: bool,
}

impl SyncHold {
    /// No round comes after the next one.
    pub fn release(&mut self) {
        self.reads_go_on = false;
    }

    /// At the end of a round that leaves so much placed and not committed.
    pub fn holds(&mut self, placed_bytes: usize) -> bool {
        let goes_on = std::mem::take(&mut self.reads_go_on);
        let is_little = (1..SYNC_HOLD_BYTES).contains(&placed_bytes);
        self.is_held = goes_on && is_little && !self.is_held;
        self.is_held
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};
    use std::time::Duration;

    use quorate_replica_log::Entry;
    use quorate_types::GroupId;
    use tokio::task::{LocalSet, spawn_local};
    use uuid::Uuid;

    use super::*;
    use crate::shard::lone_shard::lone_shard;
    use crate::shard::run::flush_task;

    #[test]
    fn a_reader_stops_for_a_round_when_it_has_read_a_stretch() {
        let dir = std::env::temp_dir().join(format!("quorate-stretch-{}", std::process::id()));
        let shard = Rc::new(RefCell::new(lone_shard(&dir, |_| {})));
        let mut stretch = Stretch::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut reads = |bytes| {
            let read = pin!(stretch.goes_on(&shard, bytes));
            read.poll(&mut context).is_ready()
        };
        let stopped = || std::mem::take(&mut shard.borrow_mut().io.sync_hold.reads_go_on);
        assert!(reads(READ_STRETCH_BYTES / 2) && !stopped());
        assert!(!reads(READ_STRETCH_BYTES / 2) && stopped(), "a round comes first");
        assert!(reads(READ_STRETCH_BYTES / 2) && !stopped(), "the next stretch");
        {
            let mut nothing_yet = pin!(stretch.await_more(yield_now()));
            assert!(nothing_yet.as_mut().poll(&mut context).is_pending());
        }
        {
            let slow = pin!(stretch.goes_on(&shard, READ_STRETCH_BYTES / 2));
            assert!(
                slow.poll(&mut context).is_ready() && !stopped(),
                "the socket was empty meanwhile"
            );
        }
        drop(shard);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_a_round_held_is_committed_though_nothing_else_happens() {
        let dir = std::env::temp_dir().join(format!("quorate-hold-{}", std::process::id()));
        let mut shard = lone_shard(&dir, |_| {});
        let place = |shard: &mut Shard| {
            shard.io.journal.write(Entry::trim(GroupId(Uuid::nil()), 1));
            shard.io.pause_reading();
        };
        place(&mut shard);
        shard.flush();
        assert!(shard.io.journal.placed_bytes() > 0, "a reader goes on: held");
        shard.flush();
        assert_eq!(shard.io.journal.placed_bytes(), 0, "for one round");
        place(&mut shard);
        shard.io.sync_hold.release();
        shard.flush();
        assert_eq!(shard.io.journal.placed_bytes(), 0, "the last round holds nothing");
        // None of the shard's other tasks is there, which would carry out a round sooner or later.
        let shard = Rc::new(RefCell::new(shard));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            let task = spawn_local(flush_task(shard.clone(), Duration::ZERO));
            place(&mut shard.borrow_mut());
            for _ in 0..1_000 {
                yield_now().await;
            }
            assert_eq!(shard.borrow().io.journal.placed_bytes(), 0, "held for good");
            task.abort();
            let _aborted = task.await.is_err();
        });
        drop(shard);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_sync_is_held_for_one_round_however_much_others_read() {
        let mut hold = SyncHold::default();
        assert!(!hold.holds(10), "nobody has more to read");
        let mut round = |placed_bytes| {
            hold.reads_go_on = true;
            hold.holds(placed_bytes)
        };
        assert_eq!([10, 20, 10, 20].map(&mut round), [true, false, true, false]);
        assert!(!round(0), "nothing is placed");
        assert!(!round(SYNC_HOLD_BYTES), "enough for a write of its own");
        assert!(round(SYNC_HOLD_BYTES - 1));
    }
}
