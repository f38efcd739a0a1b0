//! How a link's task, or whoever serves the link meanwhile, is told that there is something new for it.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

/// Belongs to one link. While the link is served with others over a connection, the bell of that connection is rung.
#[derive(Default)]
pub struct Wake {
    own: Notify,
    seat: Mutex<Option<Seat>>,
}

/// Where a link is served.
struct Seat {
    bell: Arc<Bell>,
    channel: u32,
}

/// Tells the task that serves several links which of them there is something new for.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Notify,
    channels: Mutex<Vec<u32>>,
}

impl Wake {
    /// There is something new. What was said before anybody listened is not lost.
    pub fn notify_one(&self) {
        match &*self.seat() {
            Some(seat) => seat.bell.ring(seat.channel),
            None => self.own.notify_one(),
        }
    }

    /// Waits for that, where the link has its own task.
    pub(crate) async fn notified(&self) {
        self.own.notified().await;
    }

    /// From now on `bell` is rung. What was said before must be looked for once.
    pub(crate) fn sit(&self, bell: Arc<Bell>, channel: u32) {
        *self.seat() = Some(Seat { bell, channel });
    }

    /// The link is its own task's again.
    pub(crate) fn stand(&self) {
        *self.seat() = None;
        self.own.notify_one();
    }

    fn seat(&self) -> MutexGuard<'_, Option<Seat>> {
        self.seat.lock().expect("no holder of the lock panics")
    }
}

impl Bell {
    fn ring(&self, channel: u32) {
        let mut channels = self.channels.lock().expect("no holder of the lock panics");
        let is_first = channels.is_empty();
        // Who calls often and is not served yet is known already.
        if channels.last() != Some(&channel) {
            channels.push(channel);
        }
        drop(channels);
        if is_first {
            self.rung.notify_one();
        }
    }

    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    /// Adds the channels that it was rung for.
    pub fn take(&self, into: &mut Vec<u32>) {
        into.append(&mut self.channels.lock().expect("no holder of the lock panics"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn is_told(told: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(Duration::from_millis(20), told)
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn whoever_serves_the_link_is_told() {
        let (wake, bell, mut rung) = (Wake::default(), Arc::new(Bell::default()), Vec::new());
        wake.notify_one();
        assert!(is_told(wake.notified()).await, "though it was said before");
        wake.sit(bell.clone(), 7);
        wake.notify_one();
        wake.notify_one();
        assert!(is_told(bell.rung()).await);
        bell.take(&mut rung);
        assert_eq!(rung, [7]);
        assert!(!is_told(bell.rung()).await && !is_told(wake.notified()).await);
        wake.stand();
        assert!(is_told(wake.notified()).await, "to look what it missed");
        wake.notify_one();
        assert!(is_told(wake.notified()).await);
        assert!(!is_told(bell.rung()).await);
    }
}
