//! The task that divides the guarantees of projects among their groups, each interval (`docs/internals/allocation.md`, "Guarantees
//! of projects"). Nothing of it is agreed on: heads report the shares that they have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use quorate_coordinator_core::state::CoordinatorState;
use quorate_guarantees::project_shares::{FlowNow, Told};
use quorate_guarantees::{GuaranteedProject, ProjectShares};
use quorate_types::control::{FlowReport, Placed, ToServer};
use quorate_types::limits::{GUARANTEE_IDLE_INTERVALS, GUARANTEE_INTERVAL_MS, SHARING_REPORTS_MAX};
use quorate_types::{Micros, ProjectId, ServerId};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::rates::Wants;
use super::task::{Handle, Reported};

/// The groups of projects with guarantees.
type Flows = Arc<HashMap<ProjectId, Vec<FlowNow>>>;

/// The task, as calls see it.
#[derive(Clone)]
pub struct Division {
    flows: watch::Receiver<Flows>,
    change: Arc<Notify>,
}

impl Division {
    /// The project's groups as they are at the moment.
    pub fn flows(&self, project: ProjectId) -> Vec<FlowNow> {
        self.flows.borrow().get(&project).cloned().unwrap_or_default()
    }

    /// A guarantee was changed: groups have their shares at once, and not at the next interval.
    pub fn divide_now(&self) {
        self.change.notify_one();
    }
}

const INTERVAL: Duration = Duration::from_millis(GUARANTEE_INTERVAL_MS);
/// While this one does not lead, or no project has a guarantee.
const IDLE_INTERVAL: Duration = Duration::from_millis(GUARANTEE_INTERVAL_MS * GUARANTEE_IDLE_INTERVALS / 5);
/// Others get at once what one has given back, though not for each report alone.
const SOON: Duration = Duration::from_millis(10);
/// A head that was told nothing for so long is told that its share is as it was.
const RENEW_US: Micros = GUARANTEE_INTERVAL_MS * GUARANTEE_IDLE_INTERVALS * 1_000;

pub fn channel() -> (
    mpsc::Sender<Reported<FlowReport>>,
    mpsc::Receiver<Reported<FlowReport>>,
) {
    mpsc::channel(SHARING_REPORTS_MAX)
}

/// Divides until the coordinator stops.
pub fn start(
    handle: Handle,
    reports: mpsc::Receiver<Reported<FlowReport>>,
    partitions: mpsc::Sender<Wants>,
) -> Division {
    let (flows, shown) = watch::channel(Flows::default());
    let change = Arc::new(Notify::new());
    let began = Instant::now();
    let task = Guarantees {
        handle,
        began,
        shares: ProjectShares::default(),
        known: Known::default(),
        outboxes: HashMap::new(),
        flows,
        partitions,
    };
    tokio::spawn(task.run(reports, change.clone()));
    Division { flows: shown, change }
}

struct Guarantees {
    handle: Handle,
    began: Instant,
    shares: ProjectShares,
    known: Known,
    outboxes: HashMap<ServerId, mpsc::WeakSender<Placed>>,
    flows: watch::Sender<Flows>,
    /// Takes what partitions want.
    partitions: mpsc::Sender<Wants>,
}

/// The state that the shares were last computed for: it need not be read again while it is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    changes: u64,
    epoch_changes: u64,
    groups: usize,
    alive: BTreeSet<ServerId>,
}

impl Guarantees {
    async fn run(mut self, mut reports: mpsc::Receiver<Reported<FlowReport>>, change: Arc<Notify>) {
        let mut heard = Vec::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                count = reports.recv_many(&mut heard, SHARING_REPORTS_MAX) => {
                    if count == 0 {
                        return;
                    }
                    let mut is_freed = false;
                    for mut one in heard.drain(..) {
                        let wants = std::mem::take(&mut one.report.partitions);
                        if !wants.is_empty() {
                            let _is_full = self.partitions.try_send(Wants { server: one.server, wants }).is_err();
                        }
                        self.outboxes.insert(one.server, one.outbox);
                        is_freed |= self.shares.report(self.now_us(), one.server, &one.report);
                    }
                    if is_freed {
                        due = due.min(Instant::now() + SOON);
                    }
                }
                () = change.notified() => due = Instant::now(),
                () = sleep_until(due) => {
                    let is_busy = self.decide().await;
                    due = Instant::now() + if is_busy { INTERVAL } else { IDLE_INTERVAL };
                }
            }
        }
    }

    fn now_us(&self) -> Micros {
        self.began.elapsed().as_micros() as u64
    }

    /// False: it does not lead, or no project has a guarantee.
    async fn decide(&mut self) -> bool {
        let known = self.known.clone();
        match self.handle.read(move |state| news(state, known)).await {
            Ok(None) => {}
            Ok(Some((known, projects, reserved))) => {
                let alive = known.alive.clone();
                self.shares.know(self.now_us(), projects, reserved, alive);
                self.known = known;
            }
            Err(_) => {
                // The next leader asks the heads, and so does this one when it leads again.
                (self.shares, self.known) = (ProjectShares::default(), Known::default());
                self.outboxes.clear();
                self.flows.send_replace(Flows::default());
                return false;
            }
        }
        for told in self.shares.decide(self.now_us(), RENEW_US) {
            self.tell(told);
        }
        self.outboxes.retain(|_, outbox| outbox.strong_count() > 0);
        let flows = self.shares.views();
        let is_busy = !flows.is_empty();
        self.flows.send_replace(Arc::new(flows));
        is_busy
    }

    /// A server that does not read misses it, and reports so.
    fn tell(&self, told: Told) {
        let message = ToServer::ProjectShares {
            stream: told.stream,
            decision: told.decision,
            reserved_milli: told.reserved_milli,
            shares: told.shares,
        };
        let outbox = self
            .outboxes
            .get(&told.server)
            .and_then(mpsc::WeakSender::upgrade);
        if let Some(outbox) = outbox {
            let _is_full = outbox.try_send(Placed { place: None, message }).is_err();
        }
    }
}

type News = (Known, Vec<GuaranteedProject>, BTreeMap<ServerId, [u64; 3]>);

/// The projects with guarantees, if anything changed that they depend on.
fn news(state: &CoordinatorState, known: Known) -> Option<News> {
    let changes = state.guarantees.changes();
    if changes == 0 {
        return None;
    }
    let alive = state.servers.values().filter(|server| server.alive);
    let now = Known {
        changes,
        epoch_changes: state.epoch_changes,
        groups: state.guaranteed_groups(),
        alive: alive.map(|server| server.server_id).collect(),
    };
    (now != known).then(|| (now, state.guaranteed_projects(), state.shared_reservations()))
}
