//! A run: from the first event until the fleet has healed.

mod dispatch;
mod heal;

use quorate_types::{Micros, planted};
use rand::Rng;

use crate::coordinator::operator;
use crate::counts::Counts;
use crate::fleet::{ClientId, Scheduled, World};
use crate::invariants;
use crate::ledger::Ledger;
use crate::plan::Profile;
use crate::server::ticks::TICK_US;
use crate::server::{control, copier};
use crate::trace;
use dispatch::CHECK_US;

/// The time that the undisturbed fleet has to heal. Clients with much left to do have as long again after each
/// acknowledgement.
const HEALING_US: Micros = 90_000_000;

/// Far more than any run needs: beyond it, something loops.
const EVENTS_MAX: u64 = 3_000_000;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub trace_hash: u64,
    pub counts: Counts,
}

/// One seed, from its first event to its last.
pub fn run_seed(seed: u64, profile: Profile) -> Outcome {
    planted::poison(None);
    let mut world = World::new(seed, profile);
    begin(&mut world);
    while let Some((at, event)) = world.next_event() {
        world.now = world.now.max(at);
        world.trace.now = world.now;
        world.counts.events += 1;
        assert!(
            world.counts.events < EVENTS_MAX,
            "it never ends: {EVENTS_MAX} events by {} µs",
            world.now
        );
        if !world.is_healing && world.now >= world.plan.horizon_us {
            world.is_healing = true;
            world.trace.line(None, || "=== healing".to_string());
            heal::heal(&mut world);
        }
        let is_check = matches!(event, Scheduled::Check);
        dispatch::dispatch(&mut world, event);
        if is_check && world.is_healing {
            if invariants::is_healed(&world) {
                return end(world);
            }
            if world.now > world.plan.horizon_us + heal::FREED_AFTER_US {
                heal::free_disks(&mut world);
            }
        }
        if world.is_given_up {
            world.counts.restores_undecided += 1;
            return outcome(world);
        }
        if world.now > world.plan.horizon_us.max(world.acked_at) + HEALING_US {
            let (g, why) = invariants::why_not_healed(&world).unwrap_or_default();
            trace::focus(Some(g));
            let members = world.coordinators.members.iter();
            let members: Vec<String> = members.map(|member| format!("{member}")).collect();
            panic!(
                "not healed: group {}: {why}; coordinators: {}",
                g + 1,
                members.join("; ")
            );
        }
    }
    panic!("time stands still");
}

fn begin(world: &mut World) {
    for s in 0..world.servers.len() {
        control::invite(world, s);
        world.schedule(
            1_000 + s as u64,
            Scheduled::ControlDial {
                server: s,
                incarnation: 1,
            },
        );
        world.schedule(
            TICK_US,
            Scheduled::Tick {
                server: s,
                incarnation: 1,
            },
        );
        // The watch has a thread of its own, which looks at any time between ticks.
        let at = world.rng.random_range(1_000..TICK_US);
        world.schedule(
            at,
            Scheduled::Watch {
                server: s,
                incarnation: 1,
            },
        );
    }
    for s in 0..world.servers.len() {
        copier::schedule_pass(world, s, 1);
    }
    let slas = world.plan_slas();
    operator::admit(world, slas);
    for member in 0..world.coordinators.members.len() {
        let at = 500 + member as u64;
        world.schedule(
            at,
            Scheduled::CoordinatorTick {
                member,
                incarnation: 1,
            },
        );
    }
    let writers = (0..world.writers.len()).map(ClientId::Writer);
    for client in writers.chain((0..world.readers.len()).map(ClientId::Reader)) {
        let late_us = match world.plan.clients_come_us {
            0 => 0,
            most => world.rng.random_range(0..most),
        };
        world.schedule(100_000 + late_us, Scheduled::ClientTick { client });
    }
    // The fleet forms first.
    world.schedule(300_000, Scheduled::Fault);
    world.schedule(CHECK_US, Scheduled::Check);
}

fn end(world: World) -> Outcome {
    invariants::at_end(&world);
    invariants::compare_coordinators(&world);
    outcome(world)
}

fn outcome(mut world: World) -> Outcome {
    world.counts.seeds = 1;
    world.counts.simulated_us = world.now;
    world.counts.committed = world.ledgers.iter().map(Ledger::last_index).sum();
    world.counts.epochs = world.coordinators.state().epoch_changes;
    Outcome {
        trace_hash: world.trace.hash(),
        counts: world.counts,
    }
}
