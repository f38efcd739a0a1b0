//! Clients that append: many batches at a time, at an expected offset, with fencing tokens.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_client::{AppendError, AppendOptions, Appended, Client};
use rand::Rng;
use rand::rngs::StdRng;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use super::group::{HistoryGroup, pause};
use super::record::{Line, now_ns};
use crate::entry::EntryWriter;

/// Interval of conditional appends: far longer than of the others, so that some of them are first.
const CONDITIONAL_EVERY: Duration = Duration::from_millis(25);
/// One in so many uses an outdated condition on purpose, so that refusals are on record under any load.
const ONE_IN: u32 = 4;
/// The shortest deadline, as a part of the longest.
const DEADLINE_PART_MIN: f64 = 0.05;

struct Appender {
    group: Rc<HistoryGroup>,
    client: Client,
    number: u64,
    entries: EntryWriter,
}

/// A batch whose call is on record.
struct Called {
    first: u64,
    count: u64,
    entries: Vec<Bytes>,
    options: AppendOptions,
}

impl Appender {
    fn new(group: Rc<HistoryGroup>, number: u64) -> Self {
        let (client, entries) = (group.client(), EntryWriter::new(number, group.size));
        Self {
            group,
            client,
            number,
            entries,
        }
    }

    /// Calls an append. Deadlines differ, and some are shorter than a failover: then the outcome is unknown, and the
    /// client sends the batch again to learn it.
    fn call(&mut self, count: u32, expected_offset: Option<u64>, token: u64, random: &mut StdRng) -> Called {
        let first = self.entries.written();
        let entries = (0..count).map(|_| {
            let mut buffer = BytesMut::with_capacity(self.group.size as usize);
            self.entries.put(&mut buffer);
            buffer.freeze()
        });
        let entries = entries.collect();
        self.group.recorder.write(&Line::Append {
            group: &self.group.name,
            client: self.number,
            number: first,
            count: u64::from(count),
            at: now_ns(),
            expected: expected_offset,
            token,
        });
        let part = random.random_range(DEADLINE_PART_MIN..=1.0);
        let options = AppendOptions {
            timeout: Some(self.group.timeout.mul_f64(part)),
            expected_offset,
            fencing_token: token,
        };
        Called {
            first,
            count: u64::from(count),
            entries,
            options,
        }
    }

    /// Calls an append and waits for its end.
    async fn one(&mut self, expected_offset: Option<u64>, token: u64, random: &mut StdRng) {
        let called = self.call(random.random_range(1..=4), expected_offset, token, random);
        let outcome = self.client.append_many(called.entries, called.options).await;
        ended(&self.group, self.number, called.first, called.count, &outcome);
    }
}

fn ended(
    group: &HistoryGroup,
    client: u64,
    number: u64,
    count: u64,
    outcome: &Result<Appended, AppendError>,
) {
    let (word, offset, code) = match outcome {
        Ok(appended) => ("acked", Some(appended.base_offset), ""),
        Err(AppendError::Refused(failure)) => ("refused", None, failure.info().name),
        Err(AppendError::Unknown(failure)) => ("unknown", None, failure.info().name),
    };
    group.recorder.write(&Line::AppendEnd {
        group: &group.name,
        client,
        number,
        at: now_ns(),
        outcome: word,
        offset,
        code,
    });
    if let Some(offset) = offset {
        group.acked_end.set(group.acked_end.get().max(offset + count));
    }
}

/// Appends batches at a pace, up to `outstanding` at a time.
pub async fn pipelined(
    group: Rc<HistoryGroup>,
    number: u64,
    mut random: StdRng,
    pace: Duration,
    outstanding: usize,
) {
    let mut appender = Appender::new(group.clone(), number);
    let room = Arc::new(Semaphore::new(outstanding));
    while !group.is_over() {
        let permit = room.clone().acquire_owned().await.expect("it is never closed");
        let count = random.random_range(1..=group.batch_entries_max);
        let called = appender.call(count, None, 0, &mut random);
        // The append is queued here; only its end is waited for elsewhere.
        let outcome = appender.client.append_many(called.entries, called.options);
        let group = group.clone();
        spawn_local(async move {
            let outcome = outcome.await;
            ended(&group, number, called.first, called.count, &outcome);
            drop(permit);
        });
        pause(pace, &mut random).await;
    }
    let _all_ended = room.acquire_many(outstanding as u32).await;
    appender.client.close().await;
}

/// Compare-and-append: at the offset believed to be next, or at one before it.
pub async fn expecting(group: Rc<HistoryGroup>, number: u64, mut random: StdRng) {
    let mut appender = Appender::new(group.clone(), number);
    while !group.is_over() {
        let end = group.acked_end.get();
        let behind = if random.random_ratio(1, ONE_IN) { 1 } else { 0 };
        appender
            .one(Some(end.saturating_sub(behind)), 0, &mut random)
            .await;
        pause(CONDITIONAL_EVERY, &mut random).await;
    }
    appender.client.close().await;
}

/// Fencing: raises the token at times, and at times uses an outdated one.
pub async fn fencing(group: Rc<HistoryGroup>, number: u64, mut random: StdRng) {
    let mut appender = Appender::new(group.clone(), number);
    while !group.is_over() {
        let newest = group.token.get();
        let token = if random.random_ratio(1, ONE_IN) {
            newest + 1
        } else if random.random_ratio(1, ONE_IN) {
            newest.saturating_sub(1).max(1)
        } else {
            newest
        };
        group.token.set(newest.max(token));
        appender.one(None, token, &mut random).await;
        pause(CONDITIONAL_EVERY, &mut random).await;
    }
    appender.client.close().await;
}
