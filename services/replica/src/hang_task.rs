//! Watches shards and disk from the main thread, which has its heartbeats to send however they fare.

use std::sync::Arc;
use std::time::Duration;

use quorate_group::HangWatch;
use quorate_journal::Journal;
use quorate_types::limits::{HANG_SAMPLE_MS, HANGING_MS};
use tokio::time::MissedTickBehavior;

use crate::clock::now_us;
use crate::place_keeper::PlaceWatch;
use crate::shared::Shared;

pub async fn run(shared: Arc<Shared>, journal: Arc<Journal>, places: PlaceWatch) {
    let mut interval = tokio::time::interval(Duration::from_millis(HANG_SAMPLE_MS));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = HangWatch::default();
    let mut is_logged = false;
    loop {
        interval.tick().await;
        let shards = shared.vitals.marks().into_iter();
        watch.sample(now_us(), shards.chain([journal.call_under_way(), places.mark()]));
        let hung_ms = watch.hung_ms();
        shared.vitals.set_hung_ms(hung_ms);
        if hung_ms < HANGING_MS {
            is_logged = false;
        } else if !std::mem::replace(&mut is_logged, true) {
            tracing::warn!(
                hung_ms,
                "a shard's thread, or a write or sync of the journal or of the place, hangs"
            );
        }
    }
}
