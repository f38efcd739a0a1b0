//! Looks at the rings of links. Memory that others write wakes nobody, so somebody has to look.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Shard;

/// Looks before other tasks of the shard have their turn: as long as that takes, a few microseconds.
const LOOKS: usize = 48;
/// A peer that runs tells within this time what it has of the bytes sent. Nobody sleeps before that.
const SETTLING: Duration = Duration::from_micros(500);
/// A peer that does not: rings are looked at this often.
const SLOWLY: Duration = Duration::from_millis(1);

/// Looks without sleeping as long as bytes come, and for `spin` after that. Then it sleeps until a link writes, or a peer calls
/// on the socket.
pub async fn run(shard: Rc<RefCell<Shard>>, spin: Duration) {
    let wake = shard.borrow().executor.links.ring_wake();
    let mut quiet_since = None;
    loop {
        if look(&mut shard.borrow_mut()) {
            quiet_since = None;
            tokio::task::yield_now().await;
            continue;
        }
        let quiet = quiet_since.get_or_insert_with(Instant::now).elapsed();
        if quiet >= spin && shard.borrow_mut().executor.links.rest_rings() {
            quiet_since = None;
            wake.notified().await;
        } else if quiet < spin + SETTLING {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        } else {
            let _woken = tokio::time::timeout(SLOWLY, wake.notified()).await.is_ok();
        }
    }
}

/// Answers at once: a turn of the runtime takes as long as a hop. False: no bytes came, and none can go.
fn look(shard: &mut Shard) -> bool {
    let is_due = (0..LOOKS).any(|_| shard.poll_rings());
    if is_due {
        shard.flush();
    }
    is_due
}
