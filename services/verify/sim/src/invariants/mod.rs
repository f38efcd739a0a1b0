//! One property per file. Each panics with the violation; `after_step` runs after every step and flush of a group.

mod acked_is_kept;
mod attached_is_final;
mod behind_refused;
mod beyond_repair;
mod chain_has_all;
mod chain_prefix;
mod committed_agrees;
mod coordinators_agree;
mod credit_bounds_pages;
mod drain_keeps_degree;
mod drained_is_empty;
mod durable_is_on_disk;
mod durable_means_durable;
mod epochs;
mod healed;
mod hung_is_out;
mod isolated_attaches_nobody;
mod lost;
mod memory_is_admitted;
mod min_replicas;
mod nobody_waits_elsewhere;
mod old_log_is_gone;
mod one_head_commits;
mod ordered_for_owner;
mod pages_of_this_log;
mod permission_needed;
mod readers_get_the_log;
mod reads;
mod refused_never_happens;
mod refused_rightly;
mod repaired_as_it_was;
mod reset_after_lost;
mod step;
mod tail_is_current;
mod truncated_stays_truncated;
mod young_is_kept;

pub use coordinators_agree::check as compare_coordinators;
pub use drained_is_empty::check as when_drained;
pub use healed::{at_end, is_healed, why_not_healed};
pub use hung_is_out::{check as look_for_hung, when_found_hung};
pub use lost::check as look_for_lost;
pub use memory_is_admitted::{after_flush, after_tick, before_flush};
pub use nobody_waits_elsewhere::after_leave;
pub use readers_get_the_log::after_page;
pub use reads::read_somewhere;
pub use repaired_as_it_was::check as when_repaired;
pub use step::Step;

use quorate_chain::ClientRef;
use quorate_types::GroupConfig;
use quorate_wire::client::{Message, Refused, kind};

use crate::fleet::World;

/// A group took a step, or was flushed.
pub fn after_step(world: &mut World, s: usize, g: usize) {
    let hosted = world.servers[s].groups.get(&World::group_id(g));
    if hosted.is_some_and(|hosted| hosted.is_useless) {
        return;
    }
    if let Some((from, to)) = committed_agrees::check(world, s, g) {
        one_head_commits::check(world, s, g, from, to);
        min_replicas::check(world, s, g);
        durable_means_durable::check(world, s, g, to);
        acked_is_kept::after_commit(world, s, g);
    }
    chain_prefix::check(world, s, g);
    durable_is_on_disk::check(world, s, g);
    truncated_stays_truncated::check(world, s, g);
    ordered_for_owner::check(world, s, g);
    young_is_kept::check(world, s, g);
}

pub fn after_request(world: &mut World, step: &Step<'_>) {
    permission_needed::after_request(world, step);
    behind_refused::after_request(world, step);
}

/// The group's outputs were carried out: its clients have their answers.
pub fn after_outputs(world: &World, s: usize, g: usize) {
    nobody_waits_elsewhere::after_step(world, s, g);
}

/// A server is about to send this to a client; the group may not be here.
pub fn before_message(world: &mut World, s: usize, g: usize, client: ClientRef, message: &Message) {
    if let Message::Refused(refused) = message {
        return before_refusal(world, s, g, client, refused);
    }
    world.in_generation_of(s, g, |world| match message {
        Message::Attached(_) => {
            attached_is_final::before_attached(world, s, g, client);
            isolated_attaches_nobody::before_attached(world, s, g, client);
        }
        Message::Entries(entries) => {
            pages_of_this_log::before_page(world, s, g, client, entries);
            readers_get_the_log::before_page(world, s, g, entries);
            credit_bounds_pages::before_page(world, s, g, client, entries);
        }
        Message::StatusOk(ok) => tail_is_current::before_answer(world, s, g, client, ok.request, message),
        Message::TrimOk { request, .. } => {
            tail_is_current::before_answer(world, s, g, client, *request, message);
        }
        _ => {}
    });
}

fn before_refusal(world: &mut World, s: usize, g: usize, client: ClientRef, refused: &Refused) {
    match refused.op {
        kind::APPEND => {
            refused_rightly::before_refusal(world, g, client, refused);
            refused_never_happens::before_refusal(world, g, client, refused);
            behind_refused::note_refused(world, s, g, client.connection, refused.id, refused.code);
        }
        kind::STATUS | kind::TRIM if world.servers[s].groups.contains_key(&World::group_id(g)) => {
            let (request, message) = (refused.id as u32, Message::Refused(refused.clone()));
            world.in_generation_of(s, g, |world| {
                tail_is_current::before_answer(world, s, g, client, request, &message);
            });
        }
        _ => {}
    }
}

pub fn after_adoption(world: &mut World, s: usize, g: usize, config: &GroupConfig) {
    epochs::check(world, s, g, config);
    acked_is_kept::after_adoption(world, s, g);
    chain_has_all::after_adoption(world, s, g, config);
    old_log_is_gone::after_adoption(world, s, g, config);
}

/// The coordinator's state before it took something in.
#[derive(Debug)]
pub struct Before {
    drains: Vec<drain_keeps_degree::Before>,
    resets: Vec<reset_after_lost::Before>,
    chains: hung_is_out::Before,
}

pub fn before_coordinator(world: &World) -> Before {
    let state = world.coordinators.state();
    Before {
        drains: drain_keeps_degree::before(state, world.plan.operators_move),
        resets: reset_after_lost::before(state),
        chains: hung_is_out::before(state),
    }
}

pub fn after_coordinator(world: &World, before: &Before) {
    drain_keeps_degree::check(world, &before.drains);
    hung_is_out::healthy_stays(world, &before.chains);
    reset_after_lost::check(world.coordinators.state(), &before.resets);
    memory_is_admitted::after_coordinator(world);
}
