//! Shares of projects' guarantees, between the coordinator's connection and the task that keeps them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quorate_types::control::{FlowReport, GroupShare};
use quorate_types::limits::GUARANTEE_MESSAGES_MAX;
use tokio::sync::{mpsc, watch};

#[derive(Default)]
pub struct Guarantees {
    inbox: OnceLock<mpsc::Sender<ToldShares>>,
    /// The number of the present connection; 0: there was none yet.
    stream: watch::Sender<u64>,
    report: watch::Sender<FlowReport>,
    /// A partition's head was here since the server's start.
    has_partitions: AtomicBool,
    /// Reserved on this server for shared guarantees, in thousandths of tokens each second.
    reserved_milli: [AtomicU64; 3],
}

/// A coordinator's decision.
pub struct ToldShares {
    pub stream: u64,
    pub decision: u64,
    pub reserved_milli: [u64; 3],
    pub shares: Vec<GroupShare>,
}

impl Guarantees {
    /// For the task, once.
    pub fn listen(&self) -> (mpsc::Receiver<ToldShares>, watch::Receiver<u64>) {
        let (sender, inbox) = mpsc::channel(GUARANTEE_MESSAGES_MAX);
        assert!(self.inbox.set(sender).is_ok(), "the task starts once");
        (inbox, self.stream.subscribe())
    }

    /// A connection begins: messages of earlier ones mean nothing any more.
    pub fn begin_stream(&self, stream: u64) {
        self.stream.send_replace(stream);
    }

    /// False: it is lost. The coordinator notices by the next report.
    pub fn send(&self, told: ToldShares) -> bool {
        self.inbox.get().is_some_and(|inbox| inbox.try_send(told).is_ok())
    }

    pub fn note_partition(&self) {
        self.has_partitions.store(true, Ordering::Relaxed);
    }

    pub fn has_partitions(&self) -> bool {
        self.has_partitions.load(Ordering::Relaxed)
    }

    pub fn report(&self, report: FlowReport) {
        self.report.send_replace(report);
    }

    pub fn reports(&self) -> watch::Receiver<FlowReport> {
        self.report.subscribe()
    }

    pub fn set_reserved_milli(&self, reserved_milli: [u64; 3]) {
        for (kept, reserved) in self.reserved_milli.iter().zip(reserved_milli) {
            kept.store(reserved, Ordering::Relaxed);
        }
    }

    /// Not lent to anybody.
    pub fn reserved_milli(&self) -> [u64; 3] {
        std::array::from_fn(|i| self.reserved_milli[i].load(Ordering::Relaxed))
    }
}
