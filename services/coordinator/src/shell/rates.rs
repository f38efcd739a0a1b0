//! The task that divides the rates of groups with partitions by what each partition wants (`docs/internals/partitions.md`, "Rates").
//! It moves replicas where servers lack room for that, or for what they have promised (`docs/internals/relocations.md`).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use quorate_coordinator_core::command::{Command, RateChange};
use quorate_coordinator_core::state::{CoordinatorState, DividedRates};
use quorate_types::control::PartitionWant;
use quorate_types::limits::{PARTITION_DIVISION_INTERVALS, PARTITION_INTERVAL_MS, SHARING_REPORTS_MAX};
use quorate_types::{GroupId, ServerId};
use quorate_weights::{Patience, Pressure, Room};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::balance::BalanceView;
use super::task::Handle;

/// Rates that partitions want whose heads are on a server.
pub struct Wants {
    pub server: ServerId,
    pub wants: Vec<PartitionWant>,
}

const INTERVAL: Duration = Duration::from_millis(PARTITION_INTERVAL_MS * PARTITION_DIVISION_INTERVALS);
/// Older reports say nothing: the head may be another one by now.
const KEPT: Duration = Duration::from_millis(PARTITION_INTERVAL_MS * 5);

/// A replica whose move was asked for stays so long before another move of it is.
const HELD: Duration = Duration::from_secs(60);

/// Divides until the coordinator stops. A full channel loses reports: the next ones come within a second.
pub fn start(handle: Handle) -> (mpsc::Sender<Wants>, watch::Receiver<BalanceView>) {
    let (sender, wants) = mpsc::channel(SHARING_REPORTS_MAX);
    let (view, shown) = watch::channel(BalanceView::default());
    let task = Rates {
        handle,
        wanted: HashMap::new(),
        patience: Patience::default(),
        asked_at: HashMap::new(),
        view,
    };
    tokio::spawn(task.run(wants));
    (sender, shown)
}

struct Rates {
    handle: Handle,
    wanted: HashMap<GroupId, Wanted>,
    patience: Patience,
    /// Moves that were asked for lately.
    asked_at: HashMap<(GroupId, ServerId), Instant>,
    view: watch::Sender<BalanceView>,
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
                _ = interval.tick() => self.balance().await,
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

    /// Proposes other rates and moves. A coordinator that does not lead reads no state.
    async fn balance(&mut self) {
        self.wanted.retain(|_, wanted| wanted.heard_at.elapsed() < KEPT);
        self.asked_at.retain(|_, asked_at| asked_at.elapsed() < HELD);
        let wanted = self.wanted.clone();
        let read = self.handle.read(move |state| {
            let divided = match wanted.is_empty() {
                true => DividedRates::default(),
                false => state.divided_rates(&of_heads(state, &wanted)),
            };
            (divided, state.overcharged())
        });
        let Ok((divided, mut pressures)) = read.await else {
            return;
        };
        let DividedRates {
            changes,
            swapped,
            room,
            pressures: of_partitions,
        } = divided;
        if !changes.is_empty() {
            self.change(changes, &swapped).await;
        }
        pressures.extend(of_partitions);
        let wanted = self.wanted.iter().map(|(id, wanted)| (*id, wanted.per_s));
        let wanted = wanted.collect();
        self.view.send_modify(|view| view.end_round(wanted, &pressures));
        let lasting = self.patience.lasting(pressures);
        if !lasting.is_empty() {
            self.relieve(lasting, room).await;
        }
    }

    async fn change(&mut self, changes: Vec<RateChange>, swapped: &BTreeSet<GroupId>) {
        tracing::debug!(groups = changes.len(), "divides rates among partitions");
        let asked = Command::DivideRates {
            changes: changes.clone(),
        };
        // Refused or lost, it is proposed again by later reports.
        if self.handle.command(asked).await.is_ok() {
            self.view.send_modify(|view| {
                for change in changes {
                    let is_swapped = swapped.contains(&change.group_id);
                    view.note(change, is_swapped);
                }
            });
        }
    }

    async fn relieve(&mut self, pressures: Vec<Pressure>, room: Room) {
        let held: BTreeSet<(GroupId, ServerId)> = self.asked_at.keys().copied().collect();
        let found = self
            .handle
            .read(move |state| state.migrations(&pressures, &room, &held));
        for asked in found.await.unwrap_or_default() {
            self.asked_at.insert((asked.group_id, asked.from), Instant::now());
            self.patience.begin_again(asked.from);
            let (group, from, to) = (asked.group_id, asked.from.0, asked.to.map(|to| to.0));
            tracing::info!(%group, from, to, cause = ?asked.cause, "moves a replica");
            // Refused or lost, another is asked for while the pressure lasts.
            let _answer = self.handle.command(Command::Relocate(asked)).await;
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
