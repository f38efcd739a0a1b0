//! The coordinator is stopped, killed, and started again from its log.

use quorate_coordinator::engine::Engine;
use quorate_types::Micros;
use rand::Rng;

use super::settings;
use crate::schedule::What;
use crate::world::World;

impl World {
    pub fn pause_coordinator(&mut self, until: Micros) {
        self.coordinator.paused_until = until;
        self.at(until, What::CoordinatorResume);
    }

    pub fn coordinator_resumes(&mut self) {
        if self.coordinator.up && self.coordinator.paused_until <= self.now {
            self.take_waiting();
        }
    }

    pub fn crash_coordinator(&mut self) -> bool {
        if !self.coordinator.up {
            return false;
        }
        self.coordinator.up = false;
        self.coordinator.life += 1;
        self.coordinator.log.crash(&mut self.rng);
        for s in 0..self.servers.len() {
            self.break_control(s);
        }
        let long = self.rng.random_bool(0.2);
        let length = if long { 4_000_000 } else { 400_000 };
        let at = self.now + self.rng.random_range(1_000..length);
        self.at(at, What::CoordinatorRestart);
        true
    }

    pub fn restart_coordinator(&mut self) {
        if self.coordinator.up {
            return;
        }
        let state = self.coordinator.log.recover();
        state.validate().expect("the coordinator's state is sound");
        self.trace.line(None, || {
            format!("the coordinator starts: {} groups", state.groups.len())
        });
        let settings = settings(&self.plan);
        let now = self.now;
        let coordinator = &mut self.coordinator;
        coordinator.started_at = now;
        coordinator.engine = Engine::new(state, settings, 0);
        coordinator.up = true;
        coordinator.paused_until = 0;
        coordinator.is_syncing = false;
        coordinator.waiting.clear();
        coordinator.outgoing.clear();
        coordinator.places.clear();
        // The operators who issued the tokens and asked for the groups ask again.
        let life = coordinator.life;
        self.ask_again();
        self.notice_beginnings();
        self.at(now + 1_000, What::CoordinatorTick { life });
    }
}
