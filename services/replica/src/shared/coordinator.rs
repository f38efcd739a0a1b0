//! Reports to the coordinator about this server, and the time of its last answer.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use quorate_group::Vouch;
use quorate_types::control::{GroupReport, QuarantinedReplica, ReportChanges, SlowReport, ToCoordinator};
use quorate_types::limits::QUARANTINED_GROUPS_MAX;
use quorate_types::reports::ReportBook;
use quorate_types::{GroupId, Micros, ServerId};
use tokio::sync::mpsc;

const NOT_COMPARED: i64 = i64::MIN;

pub struct Coordinator {
    /// Unbounded, but bounded by its use: a message for each epoch and learner, drained while connected.
    updates: mpsc::UnboundedSender<ToCoordinator>,
    /// The time of its last answer, on the clock of [`crate::clock::now_us`], and the length of a lease; 0 before the
    /// first registration.
    heard_us: AtomicU64,
    lease_us: AtomicU64,
    /// The difference of its clock from this server's, as in a [`Vouch`]; [`NOT_COMPARED`]: unknown.
    clock_offset_us: AtomicI64,
    /// Each group as its shard last saw it, and what of that the coordinator has.
    reports: Mutex<ReportBook>,
    /// By shard: which servers its groups wait for, for heartbeats.
    slow: Mutex<BTreeMap<usize, Vec<SlowReport>>>,
    storage_fault: Mutex<Option<String>>,
    knows_quarantine: AtomicBool,
    /// Replicas that an assertion stopped here.
    quarantined: Mutex<Vec<QuarantinedReplica>>,
}

impl Coordinator {
    pub fn new(updates: mpsc::UnboundedSender<ToCoordinator>) -> Self {
        Self {
            updates,
            heard_us: AtomicU64::new(0),
            lease_us: AtomicU64::new(0),
            clock_offset_us: AtomicI64::new(NOT_COMPARED),
            reports: Mutex::default(),
            slow: Mutex::default(),
            storage_fault: Mutex::default(),
            knows_quarantine: AtomicBool::new(true),
            quarantined: Mutex::default(),
        }
    }

    pub fn send(&self, message: ToCoordinator) {
        let _stopped = self.updates.send(message).is_err();
    }

    pub fn welcomed(&self, now: Micros, lease_ms: u64) {
        self.lease_us.store(lease_ms * 1_000, Ordering::Relaxed);
        self.answered(now);
    }

    pub fn answered(&self, now: Micros) {
        self.heard_us.store(now, Ordering::Relaxed);
    }

    /// For a lease nothing came back, so it may have replaced this server.
    pub fn is_silent(&self, now: Micros) -> bool {
        let heard_us = self.heard_us.load(Ordering::Relaxed);
        now.saturating_sub(heard_us) >= self.lease_us.load(Ordering::Relaxed)
    }

    pub fn set_vouch(&self, vouch: Vouch) {
        let offset_us = vouch.offset_us.unwrap_or(NOT_COMPARED);
        self.clock_offset_us.store(offset_us, Ordering::Relaxed);
    }

    pub fn vouch(&self) -> Vouch {
        let offset_us = self.clock_offset_us.load(Ordering::Relaxed);
        Vouch {
            offset_us: (offset_us != NOT_COMPARED).then_some(offset_us),
        }
    }

    pub fn note_groups(&self, reports: impl Iterator<Item = GroupReport>) {
        let mut known = self.reports.lock().expect("reports");
        reports.for_each(|report| known.note(report));
    }

    pub fn forget_group(&self, group_id: GroupId) {
        self.reports.lock().expect("reports").forget(group_id);
    }

    /// A new connection: it is to be told of all groups. `knows_quarantine`: it takes a replica in quarantine out of its
    /// chain.
    pub fn connected(&self, knows_quarantine: bool) {
        self.reports.lock().expect("reports").connected();
        self.knows_quarantine.store(knows_quarantine, Ordering::Relaxed);
    }

    /// It answered a heartbeat, of which `sent` were sent; `repeat`: it lacks reports.
    pub fn reports_answered(&self, seq: u64, repeat: bool, sent: u64) {
        self.reports.lock().expect("reports").answered(seq, repeat, sent);
    }

    /// The groups of the next heartbeat: those that changed, where the coordinator takes changes.
    pub fn groups(&self, takes_changes: bool) -> (Vec<GroupReport>, Option<ReportChanges>) {
        let mut reports = self.reports.lock().expect("reports");
        if !takes_changes {
            return (reports.all(), None);
        }
        let (groups, changes) = reports.take();
        (groups, Some(changes))
    }

    /// An assertion stopped a replica. Ends the process when there are too many: then it is at fault, and no group. It ends
    /// as well where the coordinator would leave the replica in its chain.
    pub fn begin_quarantine(&self, replica: QuarantinedReplica) {
        let mut quarantined = self.quarantined.lock().expect("quarantined");
        quarantined.push(replica);
        if !self.knows_quarantine.load(Ordering::Relaxed) {
            tracing::error!("the coordinator is of a release without quarantine: this process ends");
            std::process::abort();
        }
        if quarantined.len() > QUARANTINED_GROUPS_MAX {
            tracing::error!(
                groups = quarantined.len(),
                "assertions stopped too many groups: this process is at fault, and ends"
            );
            std::process::abort();
        }
    }

    pub fn end_quarantine(&self, group_id: GroupId) {
        let mut quarantined = self.quarantined.lock().expect("quarantined");
        quarantined.retain(|replica| replica.group_id != group_id);
    }

    pub fn quarantined(&self) -> Vec<QuarantinedReplica> {
        self.quarantined.lock().expect("quarantined").clone()
    }

    pub fn note_slow(&self, shard: usize, reports: Vec<SlowReport>) {
        self.slow.lock().expect("slow").insert(shard, reports);
    }

    /// The worst that any shard saw of each server.
    pub fn slow(&self) -> Vec<SlowReport> {
        let mut worst: BTreeMap<ServerId, SlowReport> = BTreeMap::new();
        for report in self.slow.lock().expect("slow").values().flatten() {
            let known = worst.entry(report.server).or_insert_with(|| report.clone());
            if report.behind_ms > known.behind_ms {
                *known = report.clone();
            }
        }
        worst.into_values().collect()
    }

    /// Why the disk takes no records; `None`: it takes them.
    pub fn storage_fault(&self) -> Option<String> {
        self.storage_fault.lock().expect("storage fault").clone()
    }

    pub fn has_storage_fault(&self) -> bool {
        self.storage_fault.lock().expect("storage fault").is_some()
    }

    pub fn set_storage_fault(&self, reason: String) {
        *self.storage_fault.lock().expect("storage fault") = Some(reason);
    }

    /// Sets it unless one is known; true: it is the first.
    pub fn begin_storage_fault(&self, reason: &str) -> bool {
        let mut fault = self.storage_fault.lock().expect("storage fault");
        let is_first = fault.is_none();
        if is_first {
            *fault = Some(reason.to_string());
        }
        is_first
    }

    /// True: there was one.
    pub fn end_storage_fault(&self) -> bool {
        self.storage_fault.lock().expect("storage fault").take().is_some()
    }
}
