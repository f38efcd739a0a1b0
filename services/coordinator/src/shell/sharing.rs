//! The task that computes the rates of all groups that want more than they reserved, from the reports of all servers
//! (`docs/internals/allocation.md`, "Who computes"). Nothing of it is agreed on: the next reports replace it.

use std::collections::HashMap;
use std::time::Duration;

use quorate_burst::exchange::GroupEpoch;
use quorate_burst::fleet::{FleetShares, Round, SharingGroup};
use quorate_burst::problem::ReplicaCost;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_policies::Policy;
use quorate_types::control::{Placed, SharedRate, SharingReport, ToServer};
use quorate_types::limits::{SHARING_ENTRIES_MAX, SHARING_REPORTS_MAX};
use quorate_types::{Micros, ProjectId, ServerId};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::debug;

use super::task::{Handle, Reported, Unavailable, unix_ms};

/// The last round, for operators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SharingView {
    pub policy: &'static str,
    /// Rounds since this process began.
    pub rounds: u64,
    /// Servers whose reports the last round had.
    pub servers: usize,
    /// Groups that wanted more than they reserved, and those that got all of it.
    pub groups_wanting: usize,
    pub groups_satisfied: usize,
    /// Time that the last round took, and its end.
    pub took_us: u64,
    pub ended_unix_ms: Option<u64>,
}

type Groups = Vec<(GroupEpoch, Option<SharingGroup>)>;

pub fn channel() -> (
    mpsc::Sender<Reported<SharingReport>>,
    mpsc::Receiver<Reported<SharingReport>>,
) {
    mpsc::channel(SHARING_REPORTS_MAX)
}

/// Computes until the coordinator stops; returns the last round, as it is at any time.
pub fn start(
    policy: Policy,
    handle: Handle,
    reports: mpsc::Receiver<Reported<SharingReport>>,
) -> watch::Receiver<SharingView> {
    let none_yet = SharingView {
        policy: policy.name(),
        ..SharingView::default()
    };
    let (view, shown) = watch::channel(none_yet);
    tokio::spawn(Sharing::new(policy, handle, view).run(reports));
    shown
}

struct Sharing {
    handle: Handle,
    began: Instant,
    shares: FleetShares,
    outboxes: HashMap<ServerId, mpsc::WeakSender<Placed>>,
    lookup: Option<JoinHandle<Result<Groups, Unavailable>>>,
    view: watch::Sender<SharingView>,
}

impl Sharing {
    fn new(policy: Policy, handle: Handle, view: watch::Sender<SharingView>) -> Self {
        Self {
            handle,
            began: Instant::now(),
            shares: FleetShares::new(policy),
            outboxes: HashMap::new(),
            lookup: None,
            view,
        }
    }

    async fn run(mut self, mut reports: mpsc::Receiver<Reported<SharingReport>>) {
        let mut heard = Vec::new();
        loop {
            let wait_us = (self.shares.wake_at(self.now_us())).map(|at| at.saturating_sub(self.now_us()));
            tokio::select! {
                count = reports.recv_many(&mut heard, SHARING_REPORTS_MAX) => {
                    if count == 0 {
                        return;
                    }
                    heard.drain(..).for_each(|one| self.hear(one));
                    self.look_up();
                }
                found = found(&mut self.lookup) => self.know(found),
                () = sleep(wait_us) => self = self.decide().await,
            }
        }
    }

    fn now_us(&self) -> Micros {
        self.began.elapsed().as_micros() as u64
    }

    fn hear(&mut self, one: Reported<SharingReport>) {
        self.outboxes.insert(one.server, one.outbox);
        let behind = self.shares.report(self.now_us(), one.server, one.report);
        let (round, interval) = self.shares.now_at();
        for server in behind {
            self.tell(server, round, interval, Vec::new());
        }
    }

    /// Groups that were not heard of before, in the state as all agree on it.
    fn look_up(&mut self) {
        if self.lookup.is_some() {
            return;
        }
        let unknown = self.shares.take_unknown();
        if unknown.is_empty() {
            return;
        }
        let handle = self.handle.clone();
        self.lookup = Some(tokio::spawn(async move {
            handle.read(move |state| groups(state, unknown)).await
        }));
    }

    fn know(&mut self, found: Option<Groups>) {
        self.lookup = None;
        let Some(found) = found else {
            // It does not lead: the next report, if one comes, asks again.
            return self.shares.forget_asked();
        };
        for (key, group) in found {
            self.shares.know(key, group);
        }
        self.look_up();
    }

    /// On another thread: with a hundred thousand groups it takes tens of milliseconds.
    async fn decide(mut self) -> Self {
        let (now, began) = (self.now_us(), Instant::now());
        let mut shares = std::mem::take(&mut self.shares);
        let done = tokio::task::spawn_blocking(move || {
            let round = shares.decide(now);
            (shares, round)
        });
        let round;
        (self.shares, round) = done.await.expect("a round does not panic");
        self.show(&round, began.elapsed());
        for (server, rates) in round.rates {
            let server = ServerId(server as u32);
            let mut parts = rates
                .chunks(SHARING_ENTRIES_MAX)
                .map(<[_]>::to_vec)
                .collect::<Vec<_>>();
            if parts.is_empty() {
                parts.push(Vec::new()); // so that it hears of the round
            }
            for rates in parts {
                self.tell(server, round.number, round.interval, rates);
            }
        }
        self.outboxes.retain(|_, outbox| outbox.strong_count() > 0);
        self
    }

    fn show(&self, round: &Round, took: Duration) {
        let view = SharingView {
            policy: self.view.borrow().policy,
            rounds: round.number,
            servers: round.rates.len(),
            groups_wanting: round.wanting,
            groups_satisfied: round.satisfied,
            took_us: took.as_micros() as u64,
            ended_unix_ms: Some(unix_ms()),
        };
        debug!(?view, "a round of sharing");
        self.view.send_replace(view);
    }

    /// A server that does not read misses it, and shares by itself after a while.
    fn tell(&self, server: ServerId, round: u64, interval: u64, rates: Vec<SharedRate>) {
        let message = ToServer::Shares {
            round,
            interval,
            rates,
        };
        let outbox = self.outboxes.get(&server).and_then(mpsc::WeakSender::upgrade);
        if let Some(outbox) = outbox {
            let _is_full = outbox.try_send(Placed { place: None, message }).is_err();
        }
    }
}

fn groups(state: &CoordinatorState, keys: Vec<GroupEpoch>) -> Groups {
    let group = |(group_id, epoch): GroupEpoch| {
        let group = state.groups.get(&group_id).filter(|group| group.epoch == epoch)?;
        Some(SharingGroup {
            project: ProjectId(group.project_id),
            replicas: ReplicaCost::of(&state.config_of(group))?,
        })
    };
    keys.into_iter().map(|key| (key, group(key))).collect()
}

/// Waits for ever while nothing is looked up.
async fn found(lookup: &mut Option<JoinHandle<Result<Groups, Unavailable>>>) -> Option<Groups> {
    match lookup {
        Some(lookup) => lookup.await.ok()?.ok(),
        None => std::future::pending().await,
    }
}

async fn sleep(wait_us: Option<Micros>) {
    match wait_us {
        Some(wait_us) => tokio::time::sleep(Duration::from_micros(wait_us)).await,
        None => std::future::pending().await,
    }
}
