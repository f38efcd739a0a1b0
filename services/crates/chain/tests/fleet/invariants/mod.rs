//! One property per file. Each panics with what is wrong; `after_step` runs after every event of a server.

mod acked_is_kept;
mod chain_prefix;
mod committed_agrees;
mod durable_means_durable;
mod healed;
mod one_head_commits;
mod reads;
mod trim_is_kept;

pub use acked_is_kept::{after_issue, member as durable_member};
pub use healed::{at_end, is_healed, why_not_healed};
pub use reads::reads_committed;
pub use trim_is_kept::check as trim_is_kept;

use crate::world::World;

pub fn after_step(world: &mut World, s: usize) {
    let Some((from, to)) = committed_agrees::check(world, s) else {
        return chain_prefix::check(world, s);
    };
    one_head_commits::check(world, s, from, to);
    durable_means_durable::check(world, s, to);
    acked_is_kept::after_commit(world);
    chain_prefix::check(world, s);
}
