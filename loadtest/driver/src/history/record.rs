//! The record: one JSON object a line, written at each event. `loadtest/chaos/README.md` has the format.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use quorate_client::Entry;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::entry::identity;

/// Longest time of a line in memory. A crash of this process loses no more; crashes of servers lose nothing.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Consecutive entries of one client: offset of the first, client, its number, count.
pub type Run = (u64, u64, u64, u64);

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A batch was called. Its entries carry `number` and the next `count` − 1 numbers.
    Append {
        group: &'a str,
        client: u64,
        number: u64,
        count: u64,
        at: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<u64>,
        #[serde(skip_serializing_if = "is_zero")]
        token: u64,
    },
    AppendEnd {
        group: &'a str,
        client: u64,
        number: u64,
        at: u64,
        outcome: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        #[serde(skip_serializing_if = "str::is_empty")]
        code: &'a str,
    },
    /// A page of one replica; with `sequence` (from 0) a page of a tail, which must be complete.
    Read {
        group: &'a str,
        client: u64,
        from: &'a str,
        offset: u64,
        called: u64,
        at: u64,
        runs: &'a [Run],
        #[serde(skip_serializing_if = "Option::is_none")]
        sequence: Option<u64>,
    },
    /// `confirmed`: the head asked the whole ring, so `end` was the log's end at some time between call and return.
    End {
        group: &'a str,
        client: u64,
        from: &'a str,
        called: u64,
        at: u64,
        end: u64,
        confirmed: bool,
        role: &'a str,
        epoch: u64,
    },
    /// A replica's whole log at the end, from offset `trim`.
    Log {
        group: &'a str,
        from: &'a str,
        at: u64,
        trim: u64,
        end: u64,
        runs: &'a [Run],
    },
    /// A read, tail or status call without an answer: shows when service was missing.
    Failed {
        group: &'a str,
        client: u64,
        called: u64,
        at: u64,
        what: &'a str,
        code: &'a str,
    },
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Shared by the clients of one process, which run on one thread.
#[derive(Clone)]
pub struct Recorder {
    out: Rc<RefCell<BufWriter<File>>>,
}

impl Recorder {
    /// A new history. Call it on a `LocalSet`: it flushes by itself.
    pub fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let recorder = Self::over(file);
        let flushing = recorder.clone();
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(FLUSH_EVERY).await;
                flushing.flush().expect("the history can be written");
            }
        });
        Ok(recorder)
    }

    pub fn append(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Self::over)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn over(file: File) -> Self {
        Self {
            out: Rc::new(RefCell::new(BufWriter::with_capacity(1 << 20, file))),
        }
    }

    /// A history with a hole proves nothing: a failed write ends the process.
    pub fn write(&self, line: &Line) {
        let mut out = self.out.borrow_mut();
        serde_json::to_writer(&mut *out, line).expect("the history can be written");
        out.write_all(b"\n").expect("the history can be written");
    }

    pub fn flush(&self) -> Result<(), String> {
        let flushed = self.out.borrow_mut().flush();
        flushed.map_err(|error| format!("cannot write the history: {error}"))
    }
}

/// The entries of a page, as runs. An entry that no client of a history wrote counts as client 2^64 − 1.
pub fn runs_of(entries: &[Entry]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for entry in entries {
        let (client, number) = identity(&entry.data).unwrap_or((u64::MAX, 0));
        match runs.last_mut() {
            Some((offset, last_client, first, count))
                if *last_client == client
                    && first.checked_add(*count) == Some(number)
                    && *offset + *count == entry.offset =>
            {
                *count += 1;
            }
            _ => runs.push((entry.offset, client, number, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};

    use super::*;
    use crate::entry::EntryWriter;

    fn entry(offset: u64, writer: &mut EntryWriter) -> Entry {
        let mut data = BytesMut::new();
        writer.put(&mut data);
        Entry {
            offset,
            timestamp_us: 0,
            data: data.freeze(),
        }
    }

    #[test]
    fn consecutive_entries_of_a_client_are_one_run() {
        let (mut a, mut b) = (EntryWriter::new(1, 16), EntryWriter::new(2, 16));
        let mut page = vec![
            entry(5, &mut a),
            entry(6, &mut a),
            entry(7, &mut b),
            entry(8, &mut a),
        ];
        assert_eq!(runs_of(&page), [(5, 1, 0, 2), (7, 2, 0, 1), (8, 1, 2, 1)]);
        page[3].offset = 9;
        page[2].data = Bytes::from_static(b"short");
        assert_eq!(runs_of(&page[2..]), [(7, u64::MAX, 0, 1), (9, 1, 2, 1)]);
    }

    #[test]
    fn lines_are_what_the_checker_reads() {
        let line = Line::Append {
            group: "g",
            client: 3,
            number: 7,
            count: 2,
            at: 9,
            expected: None,
            token: 0,
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(
            text,
            r#"{"event":"append","group":"g","client":3,"number":7,"count":2,"at":9}"#
        );
    }
}
