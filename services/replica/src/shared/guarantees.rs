//! Shares of projects' guarantees, between the coordinator's connection and the task that keeps them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_types::control::{FlowReport, GroupShare};
use quorate_types::limits::GUARANTEE_MESSAGES_MAX;
use tokio::sync::{mpsc, watch};

#[derive(Default)]
pub struct Guarantees {
    inbox: OnceLock<mpsc::Sender<GuaranteeNews>>,
    report: watch::Sender<FlowReport>,
    /// Reserved on this server for shared guarantees, in thousandths of tokens each second.
    reserved_milli: [AtomicU64; 3],
}

/// From the coordinator's connection.
pub enum GuaranteeNews {
    /// A connection begins. Messages of earlier ones mean nothing any more.
    Connected { stream: u64 },
    Shares {
        stream: u64,
        decision: u64,
        reserved_milli: [u64; 3],
        shares: Vec<GroupShare>,
    },
}

impl Guarantees {
    /// For the task, once.
    pub fn listen(&self) -> mpsc::Receiver<GuaranteeNews> {
        let (sender, inbox) = mpsc::channel(GUARANTEE_MESSAGES_MAX);
        assert!(self.inbox.set(sender).is_ok(), "the task starts once");
        inbox
    }

    /// False: it is lost. The coordinator notices by the next report.
    pub fn send(&self, news: GuaranteeNews) -> bool {
        self.inbox.get().is_some_and(|inbox| inbox.try_send(news).is_ok())
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
