//! Collecting records that the journal has lost.

use std::io;
use std::ops::Range;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use quorate_journal::Lsn;

use crate::core::Core;
use crate::events::{Answer, Event, Listener, Rescued};

/// Interval between looks at whether to stop.
const STOP_POLL: Duration = Duration::from_millis(500);

/// Asks for the records with these lsns; answers those that were sent, in order, each once.
pub(crate) fn collect(core: &Core, events: &Listener, lsns: Range<Lsn>) -> io::Result<Vec<Rescued>> {
    let (answer, answers) = mpsc::channel();
    events(Event::Lost { lsns, answer });
    let mut rescued = receive(core, &answers)?;
    rescued.sort_by_key(|one| one.lsn);
    rescued.dedup_by_key(|one| one.lsn);
    Ok(rescued)
}

fn receive(core: &Core, answers: &mpsc::Receiver<Answer>) -> io::Result<Vec<Rescued>> {
    let timeout = core.options.rescue_timeout;
    let mut deadline = Instant::now() + timeout;
    let (mut rescued, mut done) = (Vec::new(), 0);
    while done < core.options.answerers {
        if core.is_stopping() {
            return Err(io::Error::other("stopping"));
        }
        let wait = deadline.saturating_duration_since(Instant::now());
        match answers.recv_timeout(wait.min(STOP_POLL)) {
            Ok(Answer::Record(one)) => {
                rescued.push(one);
                deadline = Instant::now() + timeout;
            }
            Ok(Answer::Done) => done += 1,
            Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(_) => {
                return Err(io::Error::other(
                    "lost records of the journal did not arrive in time",
                ));
            }
        }
    }
    Ok(rescued)
}
