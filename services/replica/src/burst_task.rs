//! Burst capacity (`docs/internals/allocation.md`): a task beside the shards runs the exchange with other servers,
//! sends shards the grants of their groups, and reclaims them.

use std::sync::Arc;
use std::time::Duration;

use quorate_burst::exchange::{self, Exchange, ExchangeCommand, GrantReason, Granted, GroupLoad};
use quorate_burst::{Policy, Vector};
use quorate_group::Grant;
use quorate_types::limits::{
    SHARE_LAPSE_INTERVALS, SHARE_STEPS_PER_INTERVAL, SHARE_UPDATES_AT_ONCE, TELEMETRY_GRANTS_PUBLISHED_S,
};
use quorate_types::{Micros, ServerId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use crate::clock::{now_us, wall_us};
use crate::flags::{self, Flags};
use crate::grant_report::GrantReport;
use crate::messages::{BurstMessage, ShardMessage};
use crate::shared::{BurstUpdate, Shared};

/// Call when the server has its number and its shards run.
pub fn start(flags: &Flags, shared: &Arc<Shared>) {
    let policy = match flags.share {
        flags::Share::Off => return,
        flags::Share::Unallocated => Policy::Unallocated,
        flags::Share::Idle => Policy::Idle,
    };
    let algorithm = match flags.share_algorithm {
        flags::ShareAlgorithm::Fleet => exchange::Algorithm::Fleet,
        flags::ShareAlgorithm::Level => exchange::Algorithm::Level,
        flags::ShareAlgorithm::Head => exchange::Algorithm::Head,
        flags::ShareAlgorithm::All => exchange::Algorithm::All,
    };
    let interval_us = flags.share_interval_ms * 1_000;
    let settings = exchange::ExchangeSettings {
        algorithm,
        policy,
        interval_us,
        iteration_us: interval_us / SHARE_STEPS_PER_INTERVAL,
        lapse_intervals: SHARE_LAPSE_INTERVALS,
    };
    shared.burst.set_interval_us(interval_us);
    let news = shared.burst.listen();
    let me = shared.server_id().0 as usize;
    let task = Task {
        shared: shared.clone(),
        exchange: Exchange::new(me, settings, [0; 3], now_us()),
        report: GrantReport::default(),
        report_at: 0,
    };
    spawn_local(task.run(news));
}

struct Task {
    shared: Arc<Shared>,
    exchange: Exchange,
    report: GrantReport,
    /// The time at which all grants are reported again.
    report_at: Micros,
}

impl Task {
    async fn run(mut self, mut news: mpsc::Receiver<BurstUpdate>) {
        let mut heard = Vec::new();
        loop {
            if self.exchange.is_due(now_us()) {
                let Some(loads) = collect(&self.shared).await else {
                    return; // a shard has stopped
                };
                self.exchange.set_capacity(self.lendable());
                self.report.begin(&loads, self.shared.server_id().0 as usize);
                self.report_states();
                self = self.aside(|exchange| exchange.begin(now_us(), loads)).await;
            } else if self.exchange.wake_at() <= now_us() {
                self = self.aside(|exchange| exchange.step(now_us())).await;
            }
            let wait_us = self.exchange.wake_at().saturating_sub(now_us());
            tokio::select! {
                () = tokio::time::sleep(Duration::from_micros(wait_us)) => {}
                count = news.recv_many(&mut heard, SHARE_UPDATES_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    self.hear(heard.drain(..));
                }
            }
        }
    }

    /// On another thread: where thousands of groups want more, an iteration takes tens of milliseconds, and this thread
    /// has the coordinator to talk to. Updates wait meanwhile. Shards have stopped burst requests by then if an owner
    /// is back.
    async fn aside(
        mut self,
        what: impl FnOnce(&mut Exchange) -> Vec<ExchangeCommand> + Send + 'static,
    ) -> Self {
        let mut exchange = self.exchange;
        let done = tokio::task::spawn_blocking(move || {
            let commands = what(&mut exchange);
            (exchange, commands)
        });
        let commands;
        (self.exchange, commands) = done.await.expect("an iteration does not panic");
        self.carry_out(commands);
        self
    }

    /// The part of this server that admission promises, or that it can really do, but for reads and shared guarantees. No
    /// reservation for those is lent. Readers use what others leave by the queue between tenants, and need no grants.
    fn lendable(&self) -> Vector {
        let promised = || {
            let share = self.shared.burst.promised_share();
            self.shared.settings.capacity_milli(share)
        };
        let lendable = self.shared.capacity.now().map(|now| now.lendable);
        let reads = self.shared.group_costs.reads_reserved_milli();
        let guarantees = self.shared.guarantees.reserved_milli();
        let lendable = lendable.unwrap_or_else(promised);
        std::array::from_fn(|i| lendable[i].saturating_sub(reads[i]).saturating_sub(guarantees[i]))
    }

    fn hear(&mut self, news: impl Iterator<Item = BurstUpdate>) {
        let mut owners: Vec<exchange::GroupEpoch> = Vec::new();
        for news in news {
            match news {
                BurstUpdate::Frame { from, share } => {
                    let commands = self.exchange.hear(now_us(), from.0 as usize, share);
                    self.carry_out(commands);
                }
                BurstUpdate::Shares {
                    round,
                    interval,
                    rates,
                } => self.exchange.tell(now_us(), round, interval, &rates),
                BurstUpdate::Returned { group_id, epoch } => owners.push((group_id, epoch)),
            }
        }
        if owners.is_empty() {
            return;
        }
        let reclaims = self.shared.burst.reclaims();
        let commands = self.exchange.returned(now_us(), &owners);
        let goes_on = commands.contains(&ExchangeCommand::Resume);
        self.carry_out(commands);
        self.shared.burst.heard_of(owners.len() as u64, goes_on);
        let reclaimed = self.shared.burst.reclaims() - reclaims;
        tracing::debug!(
            ?owners,
            reclaimed,
            "they use more of their reservations than was assumed"
        );
    }

    fn carry_out(&mut self, commands: Vec<ExchangeCommand>) {
        let shared = self.shared.clone();
        let to_group = |group_id, message| {
            shared
                .shards
                .send_to_group(group_id, ShardMessage::Burst(message))
        };
        for command in commands {
            match command {
                ExchangeCommand::Send { to, share } => {
                    let to = ServerId(to as u32);
                    let message = BurstMessage::Frame {
                        to,
                        bytes: share.to_bytes(),
                    };
                    shared.shards.send_to_peer(to, ShardMessage::Burst(message));
                }
                ExchangeCommand::Report(report) => shared.burst.report(report),
                ExchangeCommand::Grant(granted) => {
                    self.note(&granted);
                    let (group_id, epoch) = granted.key;
                    let grant = Grant {
                        epoch,
                        rate_per_s: granted.per_s,
                        until_us: granted.until,
                    };
                    to_group(group_id, BurstMessage::Grant { group_id, grant });
                }
                ExchangeCommand::Resume => {} // once all of these are carried out
                ExchangeCommand::Assume { key, per_s } => {
                    self.report.assume(key, per_s);
                    let (group_id, epoch) = key;
                    to_group(
                        group_id,
                        BurstMessage::Assume {
                            group_id,
                            epoch,
                            rate_per_s: per_s,
                        },
                    );
                }
            }
        }
    }

    /// Reports a change to people and metrics; a renewal is none.
    fn note(&mut self, granted: &Granted) {
        let Granted {
            key, per_s, reason, ..
        } = *granted;
        let (before, change) = self.report.note(granted, wall_us() / 1_000);
        let (group_id, epoch) = key;
        if per_s.abs_diff(before) > before / 5 {
            let bound = granted.bound;
            tracing::info!(%group_id, epoch, per_s, before, ?reason, ?bound, "what the group may use above its SLA has changed");
        }
        let burst = &self.shared.burst;
        if let Some(change) = change {
            burst.note_grant_change(change);
        }
        if reason == GrantReason::Recalled {
            burst.note_reclaim();
        }
        burst.set_granted_per_s(self.report.granted_per_s());
    }

    /// Now and then, for readers that did not hear of the changes.
    fn report_states(&mut self) {
        let now = now_us();
        if now < self.report_at {
            return;
        }
        self.report_at = now + TELEMETRY_GRANTS_PUBLISHED_S * 1_000_000;
        let states = self.report.states(wall_us() / 1_000);
        self.shared.burst.note_grant_states(states);
    }
}

/// The loads of all shards' groups since the last call; `None` when a shard has stopped.
async fn collect(shared: &Shared) -> Option<Vec<GroupLoad>> {
    let mut answers = Vec::new();
    for shard in 0..shared.shards.count() {
        let (sender, receiver) = oneshot::channel();
        shared
            .shards
            .send(shard, ShardMessage::Burst(BurstMessage::Loads(sender)));
        answers.push(receiver);
    }
    let mut loads = Vec::new();
    for answer in answers {
        loads.append(&mut answer.await.ok()?);
    }
    Some(loads)
}
