//! Looks at the rings of links. Memory that others write wakes nobody, so somebody has to look.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_one_sided::{Next, Pace};

use super::Shard;

/// Looks before other tasks of the shard have their turn: as long as that takes, a few microseconds.
const LOOKS: usize = 48;

/// Looks without sleeping as long as bytes come, and for `spin` after that. Then it sleeps until a link writes, or a peer calls
/// on the socket.
pub async fn run(shard: Rc<RefCell<Shard>>, spin: Duration) {
    let wake = shard.borrow().executor.links.ring_wake();
    let mut pace = Pace::new(spin);
    loop {
        if look(&mut shard.borrow_mut()) {
            pace.moved();
            tokio::task::yield_now().await;
            continue;
        }
        let rest = || Ok::<_, Infallible>(shard.borrow_mut().executor.links.rest_rings());
        let Ok(next) = pace.quiet(Instant::now(), rest);
        match next {
            Next::Look => {
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
            Next::Slowly(pause) => {
                let _woken = tokio::time::timeout(pause, wake.notified()).await.is_ok();
            }
            Next::Sleep => wake.notified().await,
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
