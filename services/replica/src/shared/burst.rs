//! The state of burst capacity that shards and the exchange have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use quorate_telemetry::burst_grants::{GrantChange, GrantState, UnsentGrants};
use quorate_types::control::{SharedRate, SharingReport};
use quorate_types::limits::SHARE_UPDATES_MAX;
use quorate_types::{Epoch, GroupId, Micros, ServerId};
use quorate_wire::share::{SHARE_VERSION, Share};
use tokio::sync::{mpsc, watch};

#[derive(Default)]
pub struct BurstShared {
    /// On the clock of [`crate::clock::now_us`]: until then nothing passes on burst capacity.
    stopped_until_us: AtomicU64,
    /// Owners that are back and that the task has not heard of yet.
    returning: AtomicU64,
    /// The share of the server's capacity that admission promises, as the bits of a float; 0: not known.
    promised_share: AtomicU64,
    updates: OnceLock<mpsc::Sender<BurstUpdate>>,
    interval_us: AtomicU64,
    /// Requests/s that groups whose heads are here may use above their reservations.
    granted_per_s: AtomicU64,
    /// Since the start.
    reclaims: AtomicU64,
    /// The last report to the coordinator.
    report: watch::Sender<Option<SharingReport>>,
    /// Until the telemetry thread takes them.
    grants: Mutex<UnsentGrants>,
}

/// Updates for the task.
pub enum BurstUpdate {
    Frame {
        from: ServerId,
        share: Share,
    },
    /// The coordinators' rates for groups with a replica here.
    Shares {
        round: u64,
        interval: u64,
        rates: Vec<SharedRate>,
    },
    /// A group whose head is here uses more of its reservation than was assumed.
    Returned {
        group_id: GroupId,
        epoch: Epoch,
    },
}

impl BurstShared {
    pub fn set_promised_share(&self, share: Option<f64>) {
        let share = share.filter(|share| share.is_finite() && *share > 0.0 && *share <= 1.0);
        self.promised_share
            .store(share.unwrap_or(0.0).to_bits(), Ordering::Relaxed);
    }

    pub fn promised_share(&self) -> f64 {
        f64::from_bits(self.promised_share.load(Ordering::Relaxed))
    }

    pub fn set_interval_us(&self, interval_us: Micros) {
        self.interval_us.store(interval_us, Ordering::Relaxed);
    }

    /// From now on peers hear that idle capacity is shared here.
    pub fn listen(&self) -> mpsc::Receiver<BurstUpdate> {
        let (sender, updates) = mpsc::channel(SHARE_UPDATES_MAX);
        assert!(self.updates.set(sender).is_ok(), "sharing starts once");
        updates
    }

    /// The version sent to peers; 0: nothing is shared here.
    pub fn share_version(&self) -> u8 {
        if self.updates.get().is_some() {
            SHARE_VERSION
        } else {
            0
        }
    }

    pub fn report(&self, report: SharingReport) {
        self.report.send_replace(Some(report));
    }

    /// Reports from now on, the last one of them at least.
    pub fn reports(&self) -> watch::Receiver<Option<SharingReport>> {
        self.report.subscribe()
    }

    /// Whether an owner wants its reservation back.
    pub fn is_stopped(&self, now: Micros) -> bool {
        now < self.stopped_until_us.load(Ordering::Relaxed)
    }

    /// An owner is back: on this server, no shard lets pass anything on burst capacity from now on, until the task has
    /// reclaimed what must be.
    pub fn owner_returned(&self, group_id: GroupId, epoch: Epoch, now: Micros) {
        let until = now + self.interval_us.load(Ordering::Relaxed);
        self.returning.fetch_add(1, Ordering::Relaxed);
        self.stopped_until_us.fetch_max(until, Ordering::Relaxed);
        if !self.send(BurstUpdate::Returned { group_id, epoch }) {
            self.returning.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The task has heard of so many owners; `goes_on`: the rest of the grants may be used again. A shard that stops
    /// burst requests at this very moment has an update under way. Requests that pass until then are the excess.
    pub fn heard_of(&self, owners: u64, goes_on: bool) {
        let before = self.returning.fetch_sub(owners, Ordering::Relaxed);
        if goes_on && before == owners {
            self.stopped_until_us.store(0, Ordering::Relaxed);
        }
    }

    /// An update that finds no room is lost, as on a link: false.
    pub fn send(&self, update: BurstUpdate) -> bool {
        self.updates
            .get()
            .is_some_and(|sender| sender.try_send(update).is_ok())
    }

    pub fn set_granted_per_s(&self, granted_per_s: u64) {
        self.granted_per_s.store(granted_per_s, Ordering::Relaxed);
    }

    pub fn granted_per_s(&self) -> u64 {
        self.granted_per_s.load(Ordering::Relaxed)
    }

    pub fn note_reclaim(&self) {
        self.reclaims.fetch_add(1, Ordering::Relaxed);
    }

    pub fn reclaims(&self) -> u64 {
        self.reclaims.load(Ordering::Relaxed)
    }

    pub fn note_grant_change(&self, change: GrantChange) {
        self.grants.lock().expect("grants").note(change);
    }

    pub fn note_grant_states(&self, states: Vec<GrantState>) {
        self.grants.lock().expect("grants").replace_states(states);
    }

    pub fn take_grant_changes(&self) -> Vec<GrantChange> {
        self.grants.lock().expect("grants").take()
    }

    pub fn take_grant_states(&self) -> Option<Vec<GrantState>> {
        self.grants.lock().expect("grants").take_states()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn burst_capacity_is_stopped_until_every_owner_was_heard_of() {
        let burst = BurstShared::default();
        burst.set_interval_us(1_000);
        let mut updates = burst.listen();
        for n in 1..=3 {
            burst.owner_returned(GroupId(Uuid::from_u128(n)), 1, 0);
        }
        assert!(burst.is_stopped(999));
        burst.heard_of(2, true);
        assert!(burst.is_stopped(999), "one more is under way");
        burst.heard_of(1, true);
        assert!(!burst.is_stopped(0));
        assert!((0..3).all(|_| updates.try_recv().is_ok()));
        burst.owner_returned(GroupId(Uuid::from_u128(1)), 2, 0);
        burst.heard_of(1, false);
        assert!(burst.is_stopped(999), "nobody knows the group yet");
        assert!(!burst.is_stopped(1_000));
    }
}
