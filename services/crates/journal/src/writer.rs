//! The thread that writes: swap the buffer, write it, sync once, tell the submitters.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::Event;
use crate::buffer::{Buffer, Run};
use crate::core::Core;
use crate::janitor::Job;
use crate::record::{Lsn, SEGMENT_HEAD_BYTES};
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
    let mut segment = None;
    let mut durable_lsn = core.counters.durable_lsn.load(Ordering::Relaxed);
    while let Some(last_lsn) = take(core, &mut writing) {
        let started = Instant::now();
        if let Err(error) = commit(core, &mut writing, &mut segment, durable_lsn) {
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
            .fetch_add(writing.len() as u64, Ordering::Relaxed);
        counters.bytes.fetch_add(writing.bytes as u64, Ordering::Relaxed);
        counters.durable_lsn.store(durable_lsn, Ordering::Release);
        acknowledge(core, &mut writing);
    }
}

/// Waits for submissions and swaps them into `writing`; answers the last lsn, or `None` to stop.
fn take(core: &Core, writing: &mut Buffer) -> Option<Lsn> {
    let mut shared = core.lock();
    while shared.filling.is_empty() {
        if shared.closing {
            return None;
        }
        shared.writer_waits = true;
        shared = core.wake_writer.wait(shared).expect("journal state");
    }
    shared.writer_waits = false;
    std::mem::swap(&mut shared.filling, writing);
    shared.writing_bytes = writing.bytes;
    shared.writing_since = shared.filling_since.take();
    Some(shared.next_lsn - 1)
}

fn commit(
    core: &Core,
    writing: &mut Buffer,
    segment: &mut Option<Arc<Segment>>,
    durable_lsn: Lsn,
) -> std::io::Result<()> {
    writing.seal(durable_lsn, |number| find(core, number).salt);
    for run in writing.runs() {
        write_run(core, run, segment)?;
    }
    sync(core, segment.as_ref().expect("a run was written"))
}

fn write_run(core: &Core, mut run: Run<'_>, segment: &mut Option<Arc<Segment>>) -> std::io::Result<()> {
    assert!(
        run.end <= core.options.segment_bytes,
        "a run ends inside its segment: {}",
        run.end
    );
    let changes = segment
        .as_ref()
        .is_none_or(|current| current.number != run.segment);
    if changes {
        // The next segment's existence tells a scan that everything before it was durable.
        if let Some(before) = segment.take() {
            sync(core, &before)?;
        }
        let next = find(core, run.segment);
        if core.table.get(run.segment).is_none() {
            assert_eq!(
                run.position, SEGMENT_HEAD_BYTES,
                "a segment is begun at its start"
            );
            let head = next.head(run.first_lsn).encode();
            core.disk
                .write_at(&next.file, &mut [std::io::IoSlice::new(&head)], 0)?;
            core.table.begin(next.clone(), run.first_lsn);
            core.ask(Job::Prepare);
        }
        *segment = Some(next);
    }
    let file = &segment.as_ref().expect("set above").file;
    core.disk.write_at(file, &mut run.slices, run.position)?;
    let quarter = core.options.segment_bytes / 4;
    if run.position < quarter && run.end >= quarter {
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
