//! Writing: swap the buffer, write it, sync once, tell the submitters. Done by a thread of the journal's own, or by a
//! submitter that would only wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Event;
use crate::buffer::Buffer;
use crate::core::Core;
use crate::image::Image;
use crate::janitor::Job;
use crate::pages::Pages;
use crate::record::{Lsn, PAGE_BYTES, SEGMENT_HEAD_BYTES};
use crate::segment::Segment;

pub(crate) fn run(core: &Core) {
    // A panic must not leave submitters waiting for ever.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        while wait(core) && !core.writer().round(core).is_over() {}
    }));
    if outcome.is_err() {
        core.fail(
            "the journal's writer panicked",
            &std::io::Error::other("see the log"),
        );
    }
}

/// Sleeps until there is something to write, be it a mark; answers false when there will not be.
fn wait(core: &Core) -> bool {
    let mut shared = core.lock();
    loop {
        if shared.failed.is_some() {
            return false;
        }
        if shared.wants_writer {
            shared.wants_writer = false;
            return true;
        }
        let patience = match (core.options.mark_after, shared.unmarked_since) {
            (Some(after), Some(since)) => after.saturating_sub(since.elapsed()),
            _ => Duration::MAX,
        };
        if patience.is_zero() || shared.closing {
            return true;
        }
        shared.writer_waits = true;
        let waited = core.wake_writer.wait_timeout(shared, patience);
        shared = waited.expect("journal state").0;
        shared.writer_waits = false;
    }
}

/// Who has it writes: the journal's thread, or a submitter in its own ([`crate::Submitter::commit_here`]).
pub(crate) struct Writer {
    writing: Buffer,
    at: Position,
    durable_lsn: Lsn,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Written,
    /// There was nothing to write.
    Empty,
    /// Closed or failed: there will be nothing any more.
    Over,
}

impl Round {
    fn is_over(self) -> bool {
        self == Self::Over
    }
}

impl Writer {
    pub fn new(durable_lsn: Lsn) -> Self {
        Self {
            writing: Buffer::default(),
            at: Position {
                segment: None,
                image: Image::new(SEGMENT_HEAD_BYTES, &[]),
            },
            durable_lsn,
        }
    }

    /// Writes and syncs what was submitted up to now, and tells the submitters.
    pub fn round(&mut self, core: &Core) -> Round {
        let last_lsn = match self.take(core) {
            Ok(last_lsn) => last_lsn,
            Err(none) => return none,
        };
        let started = Instant::now();
        if let Err(error) = commit(core, &self.writing, &mut self.at, self.durable_lsn) {
            core.fail("cannot write the journal", &error);
            return Round::Over;
        }
        self.durable_lsn = last_lsn;
        let counters = &core.counters;
        let took_us = started.elapsed().as_micros() as u64;
        counters.busy_us.fetch_add(took_us, Ordering::Relaxed);
        counters.last_us.store(took_us, Ordering::Relaxed);
        let records = self.writing.submitted() as u64;
        counters.records.fetch_add(records, Ordering::Relaxed);
        counters
            .bytes
            .fetch_add(self.writing.bytes as u64, Ordering::Relaxed);
        counters.durable_lsn.store(last_lsn, Ordering::Release);
        acknowledge(core, &mut self.writing);
        Round::Written
    }

    /// Swaps submissions into `writing`; answers the last lsn. Where none came for a while, a mark does.
    fn take(&mut self, core: &Core) -> Result<Lsn, Round> {
        let mut shared = core.lock();
        if shared.failed.is_some() {
            return Err(Round::Over);
        }
        let is_late = |since: Instant| {
            core.options
                .mark_after
                .is_some_and(|after| since.elapsed() >= after)
        };
        if !shared.filling.is_empty() {
            // The thread sleeps without a limit while nothing waits for a mark.
            let begins = shared.unmarked_since.is_none();
            shared.unmarked_since = core.options.mark_after.map(|_| Instant::now());
            if begins && shared.writer_waits {
                core.wake_writer.notify_one();
            }
        } else if shared
            .unmarked_since
            .is_some_and(|since| shared.closing || is_late(since))
        {
            shared.unmarked_since = None;
            shared.mark(&core.options);
        }
        if shared.filling.is_empty() {
            return Err(if shared.closing { Round::Over } else { Round::Empty });
        }
        std::mem::swap(&mut shared.filling, &mut self.writing);
        shared.writing_bytes = self.writing.bytes;
        shared.writing_since = shared.filling_since.take();
        Ok(shared.next_lsn - 1)
    }
}

/// Where the writer stands.
struct Position {
    segment: Option<Arc<Segment>>,
    image: Image,
}

fn commit(core: &Core, writing: &Buffer, at: &mut Position, durable_lsn: Lsn) -> std::io::Result<()> {
    for record in writing.records() {
        let (number, position) = (record.location.segment, u64::from(record.location.position));
        if at.segment.as_ref().is_none_or(|current| current.number != number) {
            change_segment(core, at, number, position, record.lsn)?;
        }
        assert_eq!(at.image.end(), position, "records follow one another");
        let segment = at.segment.as_ref().expect("changed above");
        record.seal(durable_lsn, segment.salt, &mut at.image);
        let mut contents = segment.contents.lock().expect("contents");
        contents.note(core.options.tell, record.lsn, record.kind(), record.head());
        drop(contents);
        if at.image.is_full() {
            write(core, at)?;
        }
    }
    write(core, at)?;
    sync(core, at.segment.as_ref().expect("records were written"))
}

fn change_segment(
    core: &Core,
    at: &mut Position,
    number: u32,
    position: u64,
    first_lsn: Lsn,
) -> std::io::Result<()> {
    // The next segment's existence tells a scan that everything before it was durable.
    if at.segment.is_some() {
        write(core, at)?;
        sync(core, &at.segment.take().expect("there is one"))?;
    }
    let next = find(core, number);
    let mut before = vec![0; (position % PAGE_BYTES) as usize];
    if core.table.get(number).is_none() {
        assert_eq!(position, SEGMENT_HEAD_BYTES, "a segment is begun at its start");
        let mut head = Pages::new();
        head.extend_from_slice(&next.head(first_lsn).encode());
        core.disk.write_pages(&next.file, &head, 0)?;
        core.table.begin(next.clone(), first_lsn);
        core.ask(Job::Prepare);
    } else {
        // Found at the start, with a part of a page written.
        let page_at = position - before.len() as u64;
        core.disk.read_at(&next.file, &mut before, page_at)?;
    }
    at.image.go_to(position, &before);
    at.segment = Some(next);
    Ok(())
}

fn write(core: &Core, at: &mut Position) -> std::io::Result<()> {
    if at.image.is_written() {
        return Ok(());
    }
    let segment = at.segment.as_ref().expect("what waits is of a segment");
    let (begun, end) = (at.image.written(), at.image.end());
    let _alone = core.pages.lock().expect("pages");
    at.image
        .write(|pages, position| core.disk.write_pages(&segment.file, pages, position))?;
    let quarter = core.options.segment_bytes / 4;
    if begun < quarter && end >= quarter {
        core.ask(Job::Fill);
    }
    Ok(())
}

fn sync(core: &Core, segment: &Segment) -> std::io::Result<()> {
    core.counters.syncs.fetch_add(1, Ordering::Relaxed);
    core.disk.sync(&segment.file)
}

/// The segment with this number: in use, current, or among the ready ones that submissions have reached.
fn find(core: &Core, number: u32) -> Arc<Segment> {
    if let Some(segment) = core.table.get(number) {
        return segment;
    }
    let shared = core.lock();
    let entered = shared.entered.iter().find(|s| s.number == number);
    entered
        .cloned()
        .expect("records lie in segments that were prepared")
}

fn acknowledge(core: &Core, writing: &mut Buffer) {
    let mut shared = core.lock();
    shared.writing_bytes = 0;
    shared.writing_since = None;
    shared
        .entered
        .retain(|segment| core.table.get(segment.number).is_none());
    let completions: Vec<_> = writing
        .tags
        .iter()
        .enumerate()
        .filter_map(|(index, tag)| tag.map(|tag| (shared.submitters[index].completion.clone(), tag)))
        .collect();
    let room = shared.take_wanting_room();
    drop(shared);
    for (completion, (tag, lsn)) in completions {
        completion.notify(Event::Durable { tag, lsn });
    }
    for completion in room {
        completion.notify(Event::Room);
    }
    writing.clear();
}
