//! Jobs for the janitor.

use std::sync::{Mutex, mpsc};

use crate::record::Lsn;

pub(crate) enum Job {
    /// A segment was begun: prepare the next one.
    Prepare,
    /// A quarter of the segment is written: fill the next one with zeros.
    Fill,
    Release(Lsn),
    Close,
}

/// The way to the janitor.
pub(crate) struct Jobs(Mutex<mpsc::Sender<Job>>);

impl Jobs {
    pub fn new() -> (Self, mpsc::Receiver<Job>) {
        let (jobs, inbox) = mpsc::channel();
        (Self(Mutex::new(jobs)), inbox)
    }

    pub fn send(&self, job: Job) {
        // The janitor is gone only while the journal is being dropped.
        let _gone = self.0.lock().expect("jobs").send(job).is_err();
    }
}
