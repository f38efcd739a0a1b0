//! Wakers of links: a change for a link wakes its own task, or the task of the connection that serves it.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Belongs to one link. While a connection serves the link, calls are passed on to the connection's waker.
#[derive(Default)]
pub struct Wake {
    own: Notify,
    served_by: Mutex<Option<ServedBy>>,
}

struct ServedBy {
    waker: Arc<ConnectionWaker>,
    channel: u32,
}

/// Wakes the task of a connection, with the channels that have a change.
#[derive(Default)]
pub(crate) struct ConnectionWaker {
    woken: Notify,
    channels: Mutex<Vec<u32>>,
}

impl Wake {
    /// There is a change. A call before the task waits is not lost.
    pub fn notify_one(&self) {
        match &*self.served_by() {
            Some(served_by) => served_by.waker.wake(served_by.channel),
            None => self.own.notify_one(),
        }
    }

    /// Waits for a call, in the link's own task.
    pub(crate) async fn notified(&self) {
        self.own.notified().await;
    }

    /// From now on `waker` is woken. Changes from before must be looked for once.
    pub(crate) fn pass_on(&self, waker: Arc<ConnectionWaker>, channel: u32) {
        *self.served_by() = Some(ServedBy { waker, channel });
    }

    /// The link has its own task again.
    pub(crate) fn reset(&self) {
        *self.served_by() = None;
        self.own.notify_one();
    }

    fn served_by(&self) -> MutexGuard<'_, Option<ServedBy>> {
        self.served_by.lock().expect("no holder of the lock panics")
    }
}

impl ConnectionWaker {
    fn wake(&self, channel: u32) {
        let mut channels = self.channels.lock().expect("no holder of the lock panics");
        let is_first = channels.is_empty();
        // A channel that calls again before it is served is known already.
        if channels.last() != Some(&channel) {
            channels.push(channel);
        }
        drop(channels);
        if is_first {
            self.woken.notify_one();
        }
    }

    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Adds the channels that were woken.
    pub fn take(&self, into: &mut Vec<u32>) {
        into.append(&mut self.channels.lock().expect("no holder of the lock panics"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn is_notified(notified: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(Duration::from_millis(20), notified)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn the_task_that_serves_the_link_is_woken() {
        let (wake, waker, mut woken) = (Wake::default(), Arc::new(ConnectionWaker::default()), Vec::new());
        wake.notify_one();
        assert!(is_notified(wake.notified()).await, "the call came before");
        wake.pass_on(waker.clone(), 7);
        wake.notify_one();
        wake.notify_one();
        assert!(is_notified(waker.woken()).await);
        waker.take(&mut woken);
        assert_eq!(woken, [7]);
        assert!(!is_notified(waker.woken()).await && !is_notified(wake.notified()).await);
        wake.reset();
        assert!(is_notified(wake.notified()).await, "to look for missed changes");
        wake.notify_one();
        assert!(is_notified(wake.notified()).await);
        assert!(!is_notified(waker.woken()).await);
    }
}
