//! Collecting records that the journal has lost.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use quorate_journal::Lsn;
use quorate_types::GroupId;

use crate::core::Core;
use crate::events::{Answer, Event, Listener, Rescued};

/// Interval between looks at whether to stop.
const STOP_POLL: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Collected {
    /// In order, each once.
    pub records: Vec<Rescued>,
    /// Groups for which nobody could answer.
    pub stopped: BTreeSet<GroupId>,
}

/// Asks for the records with these lsns.
pub(crate) fn collect(core: &Core, events: &Listener, lsns: Range<Lsn>) -> io::Result<Collected> {
    let (answer, answers) = mpsc::channel();
    events(Event::Lost { lsns, answer });
    let mut collected = receive(core, &answers)?;
    collected.records.sort_by_key(|one| one.lsn);
    collected.records.dedup_by_key(|one| one.lsn);
    Ok(collected)
}

fn receive(core: &Core, answers: &mpsc::Receiver<Answer>) -> io::Result<Collected> {
    let timeout = core.options.rescue_timeout;
    let mut deadline = Instant::now() + timeout;
    let (mut collected, mut done) = (Collected::default(), 0);
    while done < core.options.answerers {
        if core.is_stopping() {
            return Err(io::Error::other("stopping"));
        }
        let wait = deadline.saturating_duration_since(Instant::now());
        match answers.recv_timeout(wait.min(STOP_POLL)) {
            Ok(Answer::Record(one)) => {
                collected.records.push(one);
                deadline = Instant::now() + timeout;
            }
            Ok(Answer::Stopped(group)) => {
                collected.stopped.insert(group);
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
    Ok(collected)
}
