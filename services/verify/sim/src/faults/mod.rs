//! Fault injection: a fault is drawn and applied, if the fleet can take it.

mod coordinators;
mod lies;
pub mod network;
mod servers;

use rand::Rng;

use crate::client::connection;
use crate::coordinator::drains;
use crate::fleet::{ClientId, Node, World};
use crate::links;
use crate::plan::Fault;
use crate::server::{control, process};

/// Draws a fault, and applies it if that is possible.
pub fn inject(world: &mut World) {
    lies::end(world);
    if lies::is_believed(world) {
        return;
    }
    let total: u32 = world.plan.faults.iter().map(|(_, weight)| weight).sum();
    let mut at = world.rng.random_range(0..total);
    let mut fault = world.plan.faults[0].0;
    for (candidate, weight) in &world.plan.faults {
        fault = *candidate;
        if at < *weight {
            break;
        }
        at -= weight;
    }
    if apply(world, fault) {
        world.counts.fault(fault);
        world.trace.numbers(&[fault as u64]);
    }
}

/// Applies the fault. False: it was not possible.
fn apply(world: &mut World, fault: Fault) -> bool {
    let s = world.rng.random_range(0..world.servers.len());
    let other = (s + world.rng.random_range(1..world.servers.len())) % world.servers.len();
    world
        .trace
        .line(None, || format!("*** {fault:?} s{} (s{})", s + 1, other + 1));
    match fault {
        Fault::LinkBreak => links::break_link(world, s, other),
        Fault::Isolate => network::isolate(world, s),
        Fault::AllLinksBreak => {
            for peer in (0..world.servers.len()).filter(|peer| *peer != s) {
                links::break_link(world, s, peer);
            }
        }
        Fault::OneWay => network::block(world, Node::Server(s), Node::Server(other)),
        Fault::Partition => {
            network::block(world, Node::Server(s), Node::Server(other));
            network::block(world, Node::Server(other), Node::Server(s));
        }
        Fault::ControlOneWay => network::block_control(world, s),
        Fault::ControlBreak => control::disconnect(world, s),
        Fault::Crash => return servers::crash_if(world, s),
        Fault::CrashMany => return servers::crash_many(world),
        Fault::CrashAll => return servers::crash_all(world),
        Fault::Wipe => return servers::lose(world, s, process::wipe),
        Fault::Replace => return servers::lose(world, s, process::replace),
        Fault::BitFlip => return servers::lose(world, s, process::damage),
        Fault::DiskLies => return lies::tell(world),
        Fault::Rot => return servers::rot_if(world, s),
        Fault::DiskFull | Fault::DiskFails => return servers::disk_fault(world, s, fault),
        Fault::DiskStaysFull => return servers::fill_disk_for_good(world, s),
        Fault::DiskSlow => servers::slow_disk(world, s),
        Fault::Pause => servers::pause(world, s),
        Fault::HungSync | Fault::HungThread => return servers::hang(world, s, fault),
        Fault::HungStorage => return servers::hang_storage(world),
        Fault::CoordinatorCrash
        | Fault::CoordinatorRestore
        | Fault::CoordinatorPause
        | Fault::CoordinatorsApart
        | Fault::CoordinatorDiskSlow
        | Fault::CoordinatorLost
        | Fault::CoordinatorDamaged
        | Fault::CoordinatorReplaced => return coordinators::apply(world, fault),
        Fault::ClockJump => servers::jump_clock(world, s),
        Fault::ClockAtStart => return servers::start_with_another_clock(world, s),
        Fault::ClientBreak => {
            let c = world.rng.random_range(0..world.writers.len());
            connection::close(world, ClientId::Writer(c));
        }
        Fault::Drain => return drains::want(world, s),
        Fault::CallOffDrain => return drains::call_off(world, s),
        Fault::Poison => return servers::poison(world),
        Fault::StopDrained => return drains::stop_drained(world, s),
        // These happen where frames and attaches are sent.
        Fault::FrameFlip | Fault::Astray => return false,
    }
    true
}
