//! The thread that writes: swap the buffer, write it, sync once, tell the submitters.

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
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write_all(core)));
    if outcome.is_err() {
        core.fail(
            "the journal's writer panicked",
            &std::io::Error::other("see the log"),
        );
    }
}

fn write_all(core: &Core) {
    let mut writing = Buffer::default();
    let mut at = Position {
        segment: None,
        image: Image::new(SEGMENT_HEAD_BYTES, &[]),
    };
    // Of what was found the end may not be known to be durable.
    let mut is_marked = core.table.len() == 0 || core.options.mark_after.is_none();
    let mut durable_lsn = core.counters.durable_lsn.load(Ordering::Relaxed);
    while let Some(last_lsn) = take(core, &mut writing, &mut is_marked) {
        let started = Instant::now();
        if let Err(error) = commit(core, &writing, &mut at, durable_lsn) {
            core.fail("cannot write the journal", &error);
            return;
        }
        durable_lsn = last_lsn;
        let counters = &core.counters;
        counters
            .busy_us
            .fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
        counters
            .records
            .fetch_add(writing.submitted() as u64, Ordering::Relaxed);
        counters.bytes.fetch_add(writing.bytes as u64, Ordering::Relaxed);
        counters.durable_lsn.store(durable_lsn, Ordering::Release);
        acknowledge(core, &mut writing);
    }
}

/// Waits for submissions and swaps them into `writing`; answers the last lsn, or `None` to stop. Where none come, a
/// mark does, unless `is_marked` says that nothing was written since the last one.
fn take(core: &Core, writing: &mut Buffer, is_marked: &mut bool) -> Option<Lsn> {
    let mut shared = core.lock();
    let (mut is_late, mut is_mark) = (false, false);
    while shared.filling.is_empty() {
        if (is_late || shared.closing) && !*is_marked {
            is_mark = shared.mark(&core.options);
            *is_marked = true;
        } else if shared.closing {
            return None;
        } else {
            shared.writer_waits = true;
            let patience = core.options.mark_after.filter(|_| !*is_marked);
            let waited = core
                .wake_writer
                .wait_timeout(shared, patience.unwrap_or(Duration::MAX));
            let timeout;
            (shared, timeout) = waited.expect("journal state");
            is_late = timeout.timed_out();
        }
    }
    *is_marked = is_mark || core.options.mark_after.is_none();
    shared.writer_waits = false;
    std::mem::swap(&mut shared.filling, writing);
    shared.writing_bytes = writing.bytes;
    shared.writing_since = shared.filling_since.take();
    Some(shared.next_lsn - 1)
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
