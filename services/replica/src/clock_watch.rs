//! This server's wall clock beside the coordinator's, for all shards and for the process's own log.

use quorate_group::{Doubt, ServerClock};

use crate::clock::{now_us, wall_us};
use crate::shared::Shared;

#[derive(Default)]
pub struct ClockWatch {
    clock: ServerClock,
    /// The doubt that was logged last.
    logged: Option<Doubt>,
}

impl ClockWatch {
    pub fn asked(&mut self, number: u64) {
        self.clock.asked(number, now_us());
    }

    pub fn answered(&mut self, number: u64, unix_ms: Option<u64>, shared: &Shared) {
        self.clock.answered(number, now_us(), unix_ms);
        let vouch = self.clock.vouch();
        shared.coordinator.set_vouch(vouch);
        let doubt = vouch.judge(now_us(), wall_us()).err();
        self.log(doubt);
    }

    /// Logs each begin and end of a doubt.
    fn log(&mut self, doubt: Option<Doubt>) {
        let kind = |doubt: Option<Doubt>| doubt.map(|doubt| std::mem::discriminant(&doubt));
        let before = std::mem::replace(&mut self.logged, doubt);
        if kind(before) == kind(doubt) {
            return;
        }
        match doubt {
            None => tracing::info!("this server's clock agrees with the coordinator's again"),
            Some(Doubt::Differs { ahead_us }) => tracing::error!(
                ahead_s = ahead_us as f64 / 1e6,
                "the clocks of this server and of the coordinator differ: one of them is wrong. Until they agree, \
                 batches are trimmed for their age late. Set the wrong clock right"
            ),
            Some(Doubt::NotCompared) => tracing::warn!(
                "the coordinator did not say its time: until it does, batches are trimmed for their age late"
            ),
        }
    }
}
