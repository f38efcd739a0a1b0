//! How far a reader goes before what it has read is sent on.
//!
//! A shard sends once every reader has read what there is. A server would take in all bytes of a full socket before it sends
//! the first of them on, and the next server has nothing to do until then. The more each server takes in, the more arrives at
//! the next at once. In the end everything under way travels together, and one server of the chain works at a time. So a
//! reader stops after a while for a flush, though its socket has more.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use quorate_types::limits::READ_BATCH_BYTES;
use tokio::task::yield_now;

use super::Shard;

/// Bytes that a reader has taken from its socket since the last flush, or since the socket was empty.
#[derive(Default)]
pub struct ReadBatch {
    bytes: usize,
}

impl ReadBatch {
    /// Waits for `read`. A socket that has nothing begins a batch: flushes happen meanwhile.
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

    /// So many more were read, and given to the shard. Waits for a flush when the batch is full.
    pub async fn goes_on(&mut self, shard: &Rc<RefCell<Shard>>, bytes: usize) {
        self.bytes += bytes;
        if self.bytes < READ_BATCH_BYTES || self.bytes < shard.borrow().executor.disk.read_batch_bytes() {
            return;
        }
        self.bytes = 0;
        shard.borrow_mut().pause_reading();
        yield_now().await;
    }
}

impl Shard {
    /// A flush comes, though there is more to read.
    fn pause_reading(&mut self) {
        self.executor.disk.reads_go_on();
        self.flush_wake.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};
    use std::time::Duration;

    use quorate_recovery::GroupRecord;
    use quorate_types::GroupId;
    use tokio::task::{LocalSet, spawn_local};
    use uuid::Uuid;

    use super::*;
    use crate::shard::run::flush_task;
    use crate::shard::test_shard::test_shard;

    #[test]
    fn a_reader_stops_for_a_flush_when_its_batch_is_full() {
        let dir = std::env::temp_dir().join(format!("quorate-read-batch-{}", std::process::id()));
        let shard = Rc::new(RefCell::new(test_shard(&dir, |_| {}).shard));
        let mut batch = ReadBatch::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut reads = |bytes| {
            let read = pin!(batch.goes_on(&shard, bytes));
            read.poll(&mut context).is_ready()
        };
        let stopped = || shard.borrow_mut().executor.disk.take_reads_go_on();
        assert!(reads(READ_BATCH_BYTES / 2) && !stopped());
        assert!(!reads(READ_BATCH_BYTES / 2) && stopped(), "a flush comes first");
        assert!(reads(READ_BATCH_BYTES / 2) && !stopped(), "the next batch");
        {
            let mut nothing_yet = pin!(batch.await_more(yield_now()));
            assert!(nothing_yet.as_mut().poll(&mut context).is_pending());
        }
        {
            let slow = pin!(batch.goes_on(&shard, READ_BATCH_BYTES / 2));
            assert!(
                slow.poll(&mut context).is_ready() && !stopped(),
                "the socket was empty meanwhile"
            );
        }
        drop(shard);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn records_that_a_flush_held_are_committed_though_nothing_else_happens() {
        let dir = std::env::temp_dir().join(format!("quorate-hold-{}", std::process::id()));
        let mut shard = test_shard(&dir, |_| {}).shard;
        let place = |shard: &mut Shard| {
            shard
                .executor
                .disk
                .port
                .write(GroupRecord::trim(GroupId(Uuid::nil()), 1));
            shard.pause_reading();
        };
        let placed_bytes = |shard: &Shard| shard.executor.disk.port.placed_bytes();
        place(&mut shard);
        shard.flush();
        assert!(placed_bytes(&shard) > 0, "a reader goes on: held");
        shard.flush();
        assert_eq!(placed_bytes(&shard), 0, "for one flush");
        place(&mut shard);
        shard.executor.disk.release_hold();
        shard.flush();
        assert_eq!(placed_bytes(&shard), 0, "the last flush holds nothing");
        // None of the shard's other tasks is there, which would flush sooner or later.
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
            assert_eq!(placed_bytes(&shard.borrow()), 0, "held for good");
            task.abort();
            let _aborted = task.await.is_err();
        });
        drop(shard);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
