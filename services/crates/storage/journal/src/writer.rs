//! The writer: swaps the buffer, writes it, syncs once, reports to the submitters.
//!
//! It runs in a thread of the journal's own, or in the thread of a submitter that would otherwise only wait.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::buffer::Buffer;
use crate::core::Core;
use crate::events::Event;
use crate::image::Image;
use crate::jobs::Job;
use crate::pages::Pages;
use crate::queue::{Errand, Nothing};
use crate::record::{Lsn, PAGE_BYTES, SEGMENT_HEAD_BYTES};
use crate::segment::Segment;

/// The journal's thread.
pub(crate) fn run(core: &Core, writer: &Mutex<Writer>) {
    // A panic must not leave submitters waiting for ever.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        while wait(core) && !writer.lock().expect("the journal's writer").flush(core).is_over() {}
    }));
    if outcome.is_err() {
        core.fail(
            "the journal's writer panicked",
            &std::io::Error::other("see the log"),
        );
    }
}

/// Sleeps until there is something to write, be it a mark; answers false when nothing will follow.
fn wait(core: &Core) -> bool {
    let mut queue = core.lock();
    loop {
        match queue.errand(core.options.mark_after) {
            Errand::End => return false,
            Errand::Flush => return true,
            Errand::Sleep(patience) => {
                let waited = core.wake_writer.wait_timeout(queue, patience);
                queue = waited.expect("journal state").0;
            }
        }
    }
}

/// State of the flushes. Its lock is taken before the queue's, and held across system calls.
///
/// The lock's owner writes: the journal's thread, or a submitter in its own ([`crate::Submitter::commit_here`]).
pub(crate) struct Writer {
    writing: Buffer,
    at: Position,
    durable_lsn: Lsn,
}

/// Outcome of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    Written,
    /// Nothing was submitted.
    Empty,
    /// Closed or failed: no flush follows.
    Over,
}

impl Flush {
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

    /// Writes and syncs all submissions up to now, and reports to the submitters.
    pub fn flush(&mut self, core: &Core) -> Flush {
        let taken = core.lock().take(&core.options, &mut self.writing);
        let taken = match taken {
            Ok(taken) => taken,
            Err(Nothing::Submitted) => return Flush::Empty,
            Err(Nothing::Ever) => return Flush::Over,
        };
        if taken.must_wake_writer {
            core.wake_writer.notify_one();
        }
        let started = Instant::now();
        if let Err(error) = commit(core, &self.writing, &mut self.at, self.durable_lsn) {
            core.fail("cannot write the journal", &error);
            return Flush::Over;
        }
        self.durable_lsn = taken.last_lsn;
        core.counters.count_flush(
            self.writing.submitted() as u64,
            self.writing.bytes as u64,
            started.elapsed().as_micros() as u64,
            taken.last_lsn,
        );
        acknowledge(core, &mut self.writing);
        Flush::Written
    }
}

/// The end of what was written.
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
        contents.note(core.options.owner_of, record.lsn, record.kind(), record.head());
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
    // To a scan, the next segment's existence proves that everything before it was durable.
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
        let _call = core.counters.begin_call();
        core.disk.write_pages(&next.file, &head, 0)?;
        core.table.begin(next.clone(), first_lsn);
        core.jobs.send(Job::Prepare);
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
    let segment = at.segment.as_ref().expect("the image is of a segment");
    let (begun, end) = (at.image.written(), at.image.end());
    let _call = core.counters.begin_call();
    let _alone = core.pages.lock().expect("pages");
    at.image
        .write(|pages, position| core.disk.write_pages(&segment.file, pages, position))?;
    let quarter = core.options.segment_bytes / 4;
    if begun < quarter && end >= quarter {
        core.jobs.send(Job::Fill);
    }
    Ok(())
}

fn sync(core: &Core, segment: &Segment) -> std::io::Result<()> {
    core.counters.syncs.fetch_add(1, Ordering::Relaxed);
    let _call = core.counters.begin_call();
    core.disk.sync(&segment.file)
}

/// The segment with this number, begun or only entered.
fn find(core: &Core, number: u32) -> Arc<Segment> {
    if let Some(segment) = core.table.get(number) {
        return segment;
    }
    core.lock().entered(number)
}

fn acknowledge(core: &Core, writing: &mut Buffer) {
    let (acknowledgements, of_room) = core.lock().written(&core.table, writing);
    for (completion, (tag, lsn)) in acknowledgements {
        completion.notify(Event::Durable { tag, lsn });
    }
    for completion in of_room {
        completion.notify(Event::Room);
    }
    writing.clear();
}
