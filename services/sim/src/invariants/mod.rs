//! One property per file. Each panics with what is wrong; `after_step` runs after every step of a replica.

mod acked_is_kept;
mod attached_is_final;
mod chain_has_all;
mod chain_prefix;
mod committed_agrees;
mod cut_stays_cut;
mod drain_keeps_degree;
mod drained_is_empty;
mod durable_is_on_disk;
mod durable_means_durable;
mod epochs;
mod healed;
mod lost;
mod min_replicas;
mod nothing_of_the_old;
mod one_head_commits;
mod reads;
mod refused_rightly;
mod reset_after_lost;
mod tail_is_current;

pub use attached_is_final::before_attached;
pub use drained_is_empty::check as when_drained;
pub use healed::{at_end, is_healed, why_not_healed};
pub use lost::check as look_for_lost;
pub use reads::read_somewhere;
pub use refused_rightly::check as after_refusal;
pub use tail_is_current::after_answer;

use quorate_coordinator::state::State;
use quorate_types::GroupConfig;

use crate::world::World;

pub fn after_step(world: &mut World, s: usize, g: usize) {
    if let Some((from, to)) = committed_agrees::check(world, s, g) {
        one_head_commits::check(world, s, g, from, to);
        min_replicas::check(world, s, g);
        durable_means_durable::check(world, s, g, to);
        acked_is_kept::after_commit(world, s, g);
    }
    chain_prefix::check(world, s, g);
    durable_is_on_disk::check(world, s, g);
    cut_stays_cut::check(world, s, g);
}

pub fn after_adoption(world: &mut World, s: usize, g: usize, config: &GroupConfig) {
    epochs::check(world, s, g, config);
    acked_is_kept::after_adoption(world, s, g);
    chain_has_all::after_adoption(world, s, g, config);
    nothing_of_the_old::after_adoption(world, s, g, config);
}

/// What the coordinator's state was, before it took something in.
#[derive(Debug)]
pub struct Before {
    drains: Vec<drain_keeps_degree::Before>,
    lives: Vec<reset_after_lost::Before>,
}

pub fn before_coordinator(state: &State) -> Before {
    Before {
        drains: drain_keeps_degree::before(state),
        lives: reset_after_lost::before(state),
    }
}

pub fn after_coordinator(world: &World, before: &Before) {
    drain_keeps_degree::check(world, &before.drains);
    reset_after_lost::check(world.coordinator.state(), &before.lives);
}
