//! The task that divides the rates of groups with partitions by what each partition wants (`docs/internals/partitions.md`, "Rates").

use std::collections::HashMap;
use std::time::Duration;

use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_types::control::PartitionWant;
use quorate_types::limits::{PARTITION_DIVISION_INTERVALS, PARTITION_INTERVAL_MS, SHARING_REPORTS_MAX};
use quorate_types::{GroupId, ServerId};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::task::Handle;

/// Rates that partitions want whose heads are on a server.
pub struct Wants {
    pub server: ServerId,
    pub wants: Vec<PartitionWant>,
}

const INTERVAL: Duration = Duration::from_millis(PARTITION_INTERVAL_MS * PARTITION_DIVISION_INTERVALS);
/// Older reports say nothing: the head may be another one by now.
const KEPT: Duration = Duration::from_millis(PARTITION_INTERVAL_MS * 5);

/// Divides until the coordinator stops. A full channel loses reports: the next ones come within a second.
pub fn start(handle: Handle) -> mpsc::Sender<Wants> {
    let (sender, wants) = mpsc::channel(SHARING_REPORTS_MAX);
    let task = Rates {
        handle,
        wanted: HashMap::new(),
    };
    tokio::spawn(task.run(wants));
    sender
}

struct Rates {
    handle: Handle,
    wanted: HashMap<GroupId, Wanted>,
}

#[derive(Debug, Clone, Copy)]
struct Wanted {
    server: ServerId,
    per_s: u64,
    heard_at: Instant,
}

impl Rates {
    async fn run(mut self, mut reports: mpsc::Receiver<Wants>) {
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                report = reports.recv() => match report {
                    Some(report) => self.hear(&report),
                    None => return,
                },
                _ = interval.tick() => self.divide().await,
            }
        }
    }

    fn hear(&mut self, report: &Wants) {
        let heard_at = Instant::now();
        for want in &report.wants {
            let wanted = Wanted {
                server: report.server,
                per_s: want.wanted_per_s,
                heard_at,
            };
            self.wanted.insert(want.group_id, wanted);
        }
    }

    /// Proposes other rates. A coordinator that does not lead hears no reports.
    async fn divide(&mut self) {
        self.wanted.retain(|_, wanted| wanted.heard_at.elapsed() < KEPT);
        if self.wanted.is_empty() {
            return;
        }
        let wanted = self.wanted.clone();
        let changes = self
            .handle
            .read(move |state| state.divided_rates(&of_heads(state, &wanted)))
            .await;
        if let Ok(changes) = changes
            && !changes.is_empty()
        {
            tracing::debug!(groups = changes.len(), "divides rates among partitions");
            // Refused or lost, it is proposed again by later reports.
            let _answer = self.handle.command(Command::DivideRates { changes }).await;
        }
    }
}

/// The reports of present heads.
fn of_heads(state: &CoordinatorState, wanted: &HashMap<GroupId, Wanted>) -> HashMap<GroupId, u64> {
    let is_head = |group_id: &GroupId, server: ServerId| {
        let group = state.groups.get(group_id);
        group.is_some_and(|group| group.chain.first() == Some(&server))
    };
    let current = wanted
        .iter()
        .filter(|(group_id, one)| is_head(group_id, one.server));
    current.map(|(group_id, one)| (*group_id, one.per_s)).collect()
}
