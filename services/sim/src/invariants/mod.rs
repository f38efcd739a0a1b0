//! One property per file. Each panics with what is wrong; `after_step` runs after every step of a replica.

mod acked_is_kept;
mod chain_has_all;
mod chain_prefix;
mod committed_agrees;
mod durable_means_durable;
mod epochs;
mod healed;
mod lost;
mod min_replicas;
mod one_head_commits;
mod reads;
mod refused_rightly;
mod tail_is_current;

pub use healed::{at_end, is_healed, why_not_healed};
pub use lost::check as look_for_lost;
pub use reads::read_somewhere;
pub use refused_rightly::check as after_refusal;
pub use tail_is_current::after_answer;

use quorate_types::GroupConfig;

use crate::world::World;

pub fn after_step(world: &mut World, s: usize, g: usize) {
    if let Some((from, to)) = committed_agrees::check(world, s, g) {
        one_head_commits::check(world, s, g, from, to);
        min_replicas::check(world, s, g);
        durable_means_durable::check(world, s, g, to);
        acked_is_kept::after_commit(world, g);
    }
    chain_prefix::check(world, s, g);
}

pub fn after_adoption(world: &mut World, s: usize, g: usize, config: &GroupConfig) {
    epochs::check(world, s, g, config);
    acked_is_kept::after_adoption(world, s, g);
    chain_has_all::after_adoption(world, s, g, config);
}
