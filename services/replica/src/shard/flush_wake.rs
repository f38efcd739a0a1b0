//! The wake-up of the shard's flush task, shared by all that give it work.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

#[derive(Clone, Default)]
pub struct FlushWake {
    notify: Rc<Notify>,
    /// A flush writes by itself what it makes: it needs no other.
    is_flushing: Rc<Cell<bool>>,
}

impl FlushWake {
    /// There is something to flush.
    pub fn wake(&self) {
        if !self.is_flushing.get() {
            self.notify.notify_one();
        }
    }

    /// There is something to flush that a flush under way does not see.
    pub fn wake_again(&self) {
        self.notify.notify_one();
    }

    pub fn begin(&self) {
        self.is_flushing.set(true);
    }

    pub fn end(&self) {
        self.is_flushing.set(false);
    }

    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}
