//! Keeps the shares of projects' guarantees (`docs/internals/allocation.md`, "Guarantees of projects"): passes on what coordinators
//! decide, and reports what groups want. While no coordinator answers, shares stay as they are.

use std::sync::Arc;
use std::time::Duration;

use quorate_types::control::{FlowReport, PartitionWant};
use quorate_types::limits::{
    GUARANTEE_IDLE_INTERVALS, GUARANTEE_INTERVAL_MS, GUARANTEE_KEPT_S, PARTITION_INTERVAL_MS,
    PARTITION_WANTS_MAX,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, MissedTickBehavior};

use crate::messages::{ShardMessage, ShareMessage};
use crate::shared::{Shared, ToldShares};

/// Intervals between two reports of what partitions want.
const PARTITION_INTERVALS: u64 = PARTITION_INTERVAL_MS / GUARANTEE_INTERVAL_MS;
const KEPT: Duration = Duration::from_secs(GUARANTEE_KEPT_S);

/// Call when the server's shards run.
pub fn start(shared: &Arc<Shared>) {
    let (told, streams) = shared.guarantees.listen();
    let task = Task {
        shared: shared.clone(),
        stream: 0,
        decision: 0,
        kept_until: None,
        quiet_intervals: 0,
        partition_intervals: 0,
        wants: Vec::new(),
    };
    spawn_local(task.run(told, streams));
}

struct Task {
    shared: Arc<Shared>,
    /// The present connection's number; 0: there was none yet.
    stream: u64,
    /// The last decision of it that was passed on.
    decision: u64,
    /// The end of all shares, unless a coordinator is heard before. `None`: there are none.
    kept_until: Option<Instant>,
    /// Intervals since a report, while there is nothing to report.
    quiet_intervals: u64,
    /// Intervals since partitions were asked what they want.
    partition_intervals: u64,
    /// Answers of partitions for the next reports: one has no room for more.
    wants: Vec<PartitionWant>,
}

impl Task {
    async fn run(mut self, mut told: mpsc::Receiver<ToldShares>, mut streams: watch::Receiver<u64>) {
        streams.mark_changed(); // a connection may have begun before
        let mut interval = tokio::time::interval(Duration::from_millis(GUARANTEE_INTERVAL_MS));
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = tokio::select! {
                biased;
                begun = streams.changed() => {
                    (self.stream, self.decision) = (*streams.borrow_and_update(), 0);
                    begun.is_ok() && self.report(true).await
                }
                one = told.recv() => match one {
                    Some(one) => self.hear(one).await,
                    None => false,
                },
                _ = interval.tick() => self.tick().await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// False: a shard has stopped.
    async fn hear(&mut self, told: ToldShares) -> bool {
        if told.stream != self.stream {
            return true; // its connection is gone
        }
        self.kept_until = Some(Instant::now() + KEPT);
        self.shared.guarantees.set_reserved_milli(told.reserved_milli);
        for share in &told.shares {
            let message = ShardMessage::Share(ShareMessage::Told(*share));
            self.shared.shards.send_to_group(share.group_id, message);
        }
        self.decision = told.decision;
        // Others may have what one gives back, once that is reported.
        told.shares.is_empty() || self.report(true).await
    }

    async fn tick(&mut self) -> bool {
        let is_over = self.kept_until.is_some_and(|until| Instant::now() >= until);
        if is_over {
            tracing::warn!(
                "no coordinator was heard for {GUARANTEE_KEPT_S} s: shares of guarantees have ended here"
            );
            self.shared.guarantees.set_reserved_milli([0; 3]);
            for shard in 0..self.shared.shards.count() {
                self.shared
                    .shards
                    .send(shard, ShardMessage::Share(ShareMessage::Lapsed));
            }
        }
        let goes_on = self.report(false).await;
        if is_over {
            self.kept_until = None;
        }
        goes_on
    }

    /// Questions reach shards behind the shares that were passed on, so the report has them. `is_news`: also where there is
    /// nothing to report.
    async fn report(&mut self, is_news: bool) -> bool {
        // Without any share there is nothing to report, and shards may have very many groups to look at.
        let flows = match self.kept_until {
            Some(_) => self.ask(ShareMessage::Flows).await,
            None => Some(Vec::new()),
        };
        let (Some(flows), Some(partitions)) = (flows, self.partitions(is_news).await) else {
            return false;
        };
        self.quiet_intervals += 1;
        let has_none = flows.is_empty() && partitions.is_empty();
        if has_none && !is_news && self.quiet_intervals < GUARANTEE_IDLE_INTERVALS {
            return true;
        }
        self.quiet_intervals = 0;
        self.shared.guarantees.report(FlowReport {
            stream: self.stream,
            decision: self.decision,
            flows,
            partitions,
        });
        true
    }

    /// Rates that partitions want, once a second; none in other reports. `None`: a shard has stopped.
    async fn partitions(&mut self, is_news: bool) -> Option<Vec<PartitionWant>> {
        self.partition_intervals += u64::from(!is_news);
        if self.partition_intervals < PARTITION_INTERVALS || !self.shared.guarantees.has_partitions() {
            return Some(Vec::new());
        }
        self.partition_intervals = 0;
        if self.wants.is_empty() {
            self.wants = self.ask(ShareMessage::Wants).await?;
        }
        let later = self.wants.len().saturating_sub(PARTITION_WANTS_MAX);
        Some(self.wants.split_off(later))
    }

    /// The answers of all shards. `None`: one has stopped.
    async fn ask<T>(&self, question: impl Fn(oneshot::Sender<Vec<T>>) -> ShareMessage) -> Option<Vec<T>> {
        let ask = |shard| {
            let (sender, receiver) = oneshot::channel();
            self.shared
                .shards
                .send(shard, ShardMessage::Share(question(sender)));
            receiver
        };
        let answers: Vec<_> = (0..self.shared.shards.count()).map(ask).collect();
        let mut all = Vec::new();
        for answer in answers {
            all.append(&mut answer.await.ok()?);
        }
        Some(all)
    }
}
