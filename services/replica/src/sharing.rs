//! Sharing what is free (`docs/internals/allocation.md`): a task beside the shards runs the exchange with other
//! servers, tells shards what their groups may use above their SLA, and takes it back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use quorate_controller::exchange::{self, Command, Exchange, Granted, Load, Why};
use quorate_controller::{Policy, Vector};
use quorate_telemetry::lending::{Change, LendingBook, Standing};
use quorate_types::cost::{MILLI_PER_TOKEN, ResourceVector, TOKENS_PER_UNIT};
use quorate_types::limits::{
    SHARE_LAPSE_INTERVALS, SHARE_NEWS_AT_ONCE, SHARE_NEWS_MAX, SHARE_STEPS_PER_INTERVAL,
    TELEMETRY_LENDING_TOLD_S,
};
use quorate_types::{Epoch, GroupId, Micros, ServerId};
use quorate_wire::share::{SHARE_VERSION, Share};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use crate::clock::{now_us, wall_us};
use crate::flags::{self, Flags};
use crate::ledger::Ledger;
use crate::shard::ShardMessage;
use crate::shard::lending::{Lend, Request};
use crate::shared::Shared;

/// What shards and the task have in common.
#[derive(Default)]
pub struct Lending {
    /// On the clock of [`now_us`]: until then nothing passes on lent capacity.
    stopped_until: AtomicU64,
    /// Owners who are back and whom the task has not heard of yet.
    returning: AtomicU64,
    /// A share of the server's capacity, as the bits of a float; 0: not known.
    promised_share: AtomicU64,
    news: OnceLock<mpsc::Sender<News>>,
    interval_us: AtomicU64,
    /// Requests/s that groups whose heads are here may use above their SLAs.
    granted_per_s: AtomicU64,
    /// Since the start.
    recalls: AtomicU64,
    /// Until the telemetry thread takes them.
    changes: Mutex<LendingBook>,
}

/// What the task hears.
pub enum News {
    Frame {
        from: ServerId,
        share: Share,
    },
    /// A group whose head is here uses more of its reservation than was assumed.
    Returned {
        group_id: GroupId,
        epoch: Epoch,
    },
}

impl Lending {
    pub fn set_promised_share(&self, share: Option<f64>) {
        let share = share.filter(|share| share.is_finite() && *share > 0.0 && *share <= 1.0);
        self.promised_share
            .store(share.unwrap_or(0.0).to_bits(), Ordering::Relaxed);
    }

    pub fn set_interval_us(&self, interval_us: Micros) {
        self.interval_us.store(interval_us, Ordering::Relaxed);
    }

    /// From now on peers are told that something is shared here.
    pub fn listen(&self) -> mpsc::Receiver<News> {
        let (sender, news) = mpsc::channel(SHARE_NEWS_MAX);
        assert!(self.news.set(sender).is_ok(), "sharing starts once");
        news
    }

    pub(crate) fn promised_share(&self) -> f64 {
        f64::from_bits(self.promised_share.load(Ordering::Relaxed))
    }

    /// Told to peers; 0: nothing is shared here.
    pub fn share_version(&self) -> u8 {
        if self.news.get().is_some() {
            SHARE_VERSION
        } else {
            0
        }
    }

    /// Whether what is lent is wanted back.
    pub fn is_stopped(&self, now: Micros) -> bool {
        now < self.stopped_until.load(Ordering::Relaxed)
    }

    /// An owner is back: on this server, no shard lets pass anything on lent capacity from now on, until the task has
    /// called back what must be.
    pub fn owner_returned(&self, group_id: GroupId, epoch: Epoch, now: Micros) {
        let until = now + self.interval_us.load(Ordering::Relaxed);
        self.returning.fetch_add(1, Ordering::Relaxed);
        self.stopped_until.fetch_max(until, Ordering::Relaxed);
        if !self.tell(News::Returned { group_id, epoch }) {
            self.returning.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The task has heard of so many owners; whether what is left of what was lent `goes_on`. A shard that stops it at
    /// this very moment has news under way, and at most what passes until then is too much.
    fn heard_of(&self, owners: u64, goes_on: bool) {
        let before = self.returning.fetch_sub(owners, Ordering::Relaxed);
        if goes_on && before == owners {
            self.stopped_until.store(0, Ordering::Relaxed);
        }
    }

    /// What finds no room is lost, as on a link: false.
    pub fn tell(&self, news: News) -> bool {
        self.news
            .get()
            .is_some_and(|sender| sender.try_send(news).is_ok())
    }

    pub fn granted_per_s(&self) -> u64 {
        self.granted_per_s.load(Ordering::Relaxed)
    }

    pub fn take_changes(&self) -> Vec<Change> {
        self.changes.lock().expect("changes").take()
    }

    pub fn take_standing(&self) -> Option<Vec<Standing>> {
        self.changes.lock().expect("changes").take_standing()
    }

    pub fn recalls(&self) -> u64 {
        self.recalls.load(Ordering::Relaxed)
    }
}

/// Call when the server has its number and its shards run.
pub fn start(flags: &Flags, shared: &Arc<Shared>) {
    let policy = match flags.share {
        flags::Share::Off => return,
        flags::Share::Unallocated => Policy::Unallocated,
        flags::Share::Idle => Policy::Idle,
    };
    let algorithm = match flags.share_algorithm {
        flags::ShareAlgorithm::Level => exchange::Algorithm::Level,
        flags::ShareAlgorithm::Head => exchange::Algorithm::Head,
        flags::ShareAlgorithm::All => exchange::Algorithm::All,
    };
    let interval_us = flags.share_interval_ms * 1_000;
    let settings = exchange::Settings {
        algorithm,
        policy,
        interval_us,
        round_us: interval_us / SHARE_STEPS_PER_INTERVAL,
        lapse_intervals: SHARE_LAPSE_INTERVALS,
    };
    shared.lending.set_interval_us(interval_us);
    let news = shared.lending.listen();
    let me = shared.server_id().0 as usize;
    let task = Task {
        shared: shared.clone(),
        capacity: flags.capacity(),
        exchange: Exchange::new(me, settings, [0; 3], now_us()),
        ledger: Ledger::default(),
        tell_at: 0,
    };
    spawn_local(task.run(news));
}

struct Task {
    shared: Arc<Shared>,
    capacity: ResourceVector,
    exchange: Exchange,
    ledger: Ledger,
    /// When all that is lent and borrowed is told again.
    tell_at: Micros,
}

impl Task {
    async fn run(mut self, mut news: mpsc::Receiver<News>) {
        let mut heard = Vec::new();
        loop {
            if self.exchange.is_due(now_us()) {
                let Some(loads) = collect(&self.shared).await else {
                    return; // a shard has stopped
                };
                self.exchange.set_capacity(self.promised());
                self.ledger.begin(&loads, self.shared.server_id().0 as usize);
                self.tell_standing();
                self = self.aside(|exchange| exchange.begin(now_us(), loads)).await;
            } else if self.exchange.wake_at() <= now_us() {
                self = self.aside(|exchange| exchange.step(now_us())).await;
            }
            let wait_us = self.exchange.wake_at().saturating_sub(now_us());
            tokio::select! {
                () = tokio::time::sleep(Duration::from_micros(wait_us)) => {}
                count = news.recv_many(&mut heard, SHARE_NEWS_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    self.hear(heard.drain(..));
                }
            }
        }
    }

    /// On another thread: where thousands of groups want more, a round takes tens of milliseconds, and this thread has
    /// the coordinator to talk to. What comes meanwhile waits; shards have stopped by then what owners want back.
    async fn aside(mut self, what: impl FnOnce(&mut Exchange) -> Vec<Command> + Send + 'static) -> Self {
        let mut exchange = self.exchange;
        let done = tokio::task::spawn_blocking(move || {
            let commands = what(&mut exchange);
            (exchange, commands)
        });
        let commands;
        (self.exchange, commands) = done.await.expect("a round does not panic");
        self.carry_out(commands);
        self
    }

    /// What admission promises of this server.
    fn promised(&self) -> Vector {
        let (all, share) = (self.capacity.to_array(), self.shared.lending.promised_share());
        std::array::from_fn(|i| (all[i] * share * TOKENS_PER_UNIT[i] * MILLI_PER_TOKEN) as u64)
    }

    fn hear(&mut self, news: impl Iterator<Item = News>) {
        let mut owners: Vec<exchange::Key> = Vec::new();
        for news in news {
            match news {
                News::Frame { from, share } => {
                    let commands = self.exchange.hear(now_us(), from.0 as usize, share);
                    self.carry_out(commands);
                }
                News::Returned { group_id, epoch } => owners.push((group_id, epoch)),
            }
        }
        if owners.is_empty() {
            return;
        }
        let recalls = self.shared.lending.recalls();
        let commands = self.exchange.returned(now_us(), &owners);
        let goes_on = commands.contains(&Command::Resume);
        self.carry_out(commands);
        self.shared.lending.heard_of(owners.len() as u64, goes_on);
        let recalled = self.shared.lending.recalls() - recalls;
        tracing::debug!(
            ?owners,
            recalled,
            "they use more of their reservations than was assumed"
        );
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        let shared = self.shared.clone();
        let to_group = |group_id, request| {
            let shard = shared.shard_of_group(group_id);
            shared.send(shard, ShardMessage::Lending(request));
        };
        for command in commands {
            match command {
                Command::Send { to, share } => {
                    let to = ServerId(to as u32);
                    let bytes = share.to_bytes();
                    let request = Request::Frame { to, bytes };
                    self.shared
                        .send(self.shared.shard_of_peer(to), ShardMessage::Lending(request));
                }
                Command::Grant(granted) => {
                    self.note(&granted);
                    let (group_id, epoch) = granted.key;
                    let lend = Lend {
                        group_id,
                        epoch,
                        per_s: granted.per_s,
                        until: granted.until,
                    };
                    to_group(group_id, Request::Lend(lend));
                }
                Command::Resume => {} // once all of these are carried out
                Command::Assume { key, per_s } => {
                    self.ledger.assume(key, per_s);
                    let (group_id, epoch) = key;
                    to_group(
                        group_id,
                        Request::Assume {
                            group_id,
                            epoch,
                            per_s,
                        },
                    );
                }
            }
        }
    }

    /// Tells people and metrics; what is only renewed is no news.
    fn note(&mut self, granted: &Granted) {
        let Granted { key, per_s, why, .. } = *granted;
        let (before, change) = self.ledger.note(granted, wall_us() / 1_000);
        let (group_id, epoch) = key;
        if per_s.abs_diff(before) > before / 5 {
            let bound = granted.bound;
            tracing::info!(%group_id, epoch, per_s, before, ?why, ?bound, "what the group may use above its SLA has changed");
        }
        let lending = &self.shared.lending;
        if let Some(change) = change {
            lending.changes.lock().expect("changes").note(change);
        }
        if why == Why::Recalled {
            lending.recalls.fetch_add(1, Ordering::Relaxed);
        }
        lending
            .granted_per_s
            .store(self.ledger.granted_per_s(), Ordering::Relaxed);
    }

    /// Now and then, for whoever did not hear of the changes.
    fn tell_standing(&mut self) {
        let now = now_us();
        if now < self.tell_at {
            return;
        }
        self.tell_at = now + TELEMETRY_LENDING_TOLD_S * 1_000_000;
        let standing = self.ledger.standing(wall_us() / 1_000);
        self.shared
            .lending
            .changes
            .lock()
            .expect("changes")
            .tell(standing);
    }
}

/// What the groups of all shards did since this was last asked; `None` when a shard has stopped.
async fn collect(shared: &Shared) -> Option<Vec<Load>> {
    let mut answers = Vec::new();
    for shard in 0..shared.shard_count() {
        let (sender, receiver) = oneshot::channel();
        shared.send(shard, ShardMessage::Lending(Request::Loads(sender)));
        answers.push(receiver);
    }
    let mut loads = Vec::new();
    for answer in answers {
        loads.append(&mut answer.await.ok()?);
    }
    Some(loads)
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_is_lent_is_stopped_until_every_owner_was_heard_of() {
        let lending = Lending::default();
        lending.set_interval_us(1_000);
        let mut news = lending.listen();
        for n in 1..=3 {
            lending.owner_returned(GroupId(Uuid::from_u128(n)), 1, 0);
        }
        assert!(lending.is_stopped(999));
        lending.heard_of(2, true);
        assert!(lending.is_stopped(999), "one more is under way");
        lending.heard_of(1, true);
        assert!(!lending.is_stopped(0));
        assert!((0..3).all(|_| news.try_recv().is_ok()));
        lending.owner_returned(GroupId(Uuid::from_u128(1)), 2, 0);
        lending.heard_of(1, false);
        assert!(lending.is_stopped(999), "nobody knows the group yet");
        assert!(!lending.is_stopped(1_000));
    }
}
