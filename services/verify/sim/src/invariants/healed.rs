//! A fleet that is left undisturbed heals. Every client has its answers, each group has its full degree, and servers
//! that drain are empty. Every replica reads back all that was committed and not trimmed.

use quorate_coordinator_core::state::Server;
use quorate_types::{Micros, ServerId};

use crate::fleet::{Reader, World};
use crate::invariants::beyond_repair::is_beyond_repair;
use crate::invariants::coordinators_agree;
use crate::invariants::reads::read;
use crate::ledger::Ledger;

/// Undisturbed, a repair that is possible takes no longer.
const REPAIR_US_MAX: Micros = 40_000_000;

pub fn is_healed(world: &World) -> bool {
    why_not_healed(world).is_none()
}

/// The reason why a run has not healed, and its group.
pub fn why_not_healed(world: &World) -> Option<(usize, String)> {
    let may_be_beyond = world.now > world.plan.horizon_us + REPAIR_US_MAX;
    let mut groups = 0..world.ledgers.len();
    let groups = groups.find_map(|g| {
        let why = why_not(world, g)?;
        let is_excused = may_be_beyond && is_beyond_repair(world, g);
        (!is_excused).then_some((g, why))
    });
    let groups = groups.or_else(|| not_drained(world).map(|why| (0, why)));
    let groups = groups.or_else(|| copier_waits(world).map(|why| (0, why)));
    groups.or_else(|| coordinators_differ(world).map(|why| (0, why)))
}

/// A copier gets what is damaged, or learns that nobody has it.
fn copier_waits(world: &World) -> Option<String> {
    let mut servers = world.servers.iter().filter(|server| server.alive);
    let waits = servers.find(|server| !server.copiers.is_empty())?;
    Some(format!("copiers wait: {:?}", waits.copiers))
}

/// All coordinators get all of the log.
fn coordinators_differ(world: &World) -> Option<String> {
    let members = world.coordinators.members.iter();
    let ends = members.map(|member| {
        (
            member.up,
            member.decisions.term(),
            member.decisions.agreed_position(),
        )
    });
    let is_settled = world.coordinators.replacement.is_none();
    (!is_settled || !coordinators_agree::is_complete(world))
        .then(|| format!("coordinators: {:?}", ends.collect::<Vec<_>>()))
}

/// A server that is to be drained is, by then. Replicas of a group that is lost, or beyond repair, stay on it.
fn not_drained(world: &World) -> Option<String> {
    let stays = |g: usize| world.ledgers[g].is_lost || is_beyond_repair(world, g);
    if (0..world.ledgers.len()).any(stays) {
        return None;
    }
    let mut servers = world.coordinators.state().servers.values();
    let waits = servers.find(|server| server.alive && server.drain.is_some() && !server.is_drained())?;
    Some(format!(
        "{} still drains: {:?}",
        place(world, waits.server_id),
        waits
    ))
}

fn why_not(world: &World, g: usize) -> Option<String> {
    let (ledger, plan) = (&world.ledgers[g], &world.plan.groups[g]);
    if ledger.is_lost {
        return None;
    }
    let Some(group) = world.coordinators.state().groups.get(&World::group_id(g)) else {
        return Some("it is not admitted".into());
    };
    if group.chain.len() < usize::from(plan.degree) {
        let ids = |ids: &[ServerId]| {
            ids.iter()
                .map(|id| place(world, *id))
                .collect::<Vec<_>>()
                .join(" → ")
        };
        let learner = group.learner.map(|id| place(world, id));
        return Some(format!(
            "the chain of epoch {} is short: {}, learner {learner:?}; no replicas go to {}",
            group.epoch,
            ids(&group.chain),
            closed(world)
        ));
    }
    if let Some(relocation) = &group.relocation {
        return Some(format!("a replica still moves: {relocation:?}"));
    }
    if let Some(client) = world.writers.iter().find(|c| c.group == g && !c.is_done()) {
        return Some(format!("a client waits: {}", crate::trace::brief(client)));
    }
    let end = ledger.end_offset();
    let is_behind = |r: &&Reader| r.group == g && r.may_read() && r.next_offset < end;
    if let Some(reader) = world.readers.iter().find(is_behind) {
        let reader = crate::trace::brief(reader);
        return Some(format!("the log ends at {end}, and a reader waits: {reader}"));
    }
    let last = ledger.last_index();
    for id in &group.chain {
        let hosted = world
            .server_of(*id)
            .and_then(|s| world.servers[s].groups.get(&group.group_id));
        let Some(hosted) = hosted else {
            return Some(format!("server {id} of the chain has no replica"));
        };
        let replica = hosted.replica();
        let held = (
            replica.epoch(),
            replica.commit_index(),
            replica.log().last_index(),
        );
        if held != (group.epoch, last, last) {
            let expected = (group.epoch, last, last);
            return Some(format!(
                "server {id} has epoch, commit, last {held:?} where {expected:?} should be"
            ));
        }
    }
    None
}

/// Servers that take no replicas, and why.
fn closed(world: &World) -> String {
    let servers = world.coordinators.state().servers.values();
    let closed = servers.filter(|server| !server.takes_replicas());
    let why = |server: &Server| {
        let place = place(world, server.server_id);
        let (slow, fault) = (&server.slow, &server.storage_fault);
        format!(
            "{place} (drains: {}, {slow:?}, {fault:?})",
            server.drain.is_some()
        )
    };
    closed.map(why).collect::<Vec<_>>().join(", ")
}

/// A server as the coordinator sees it, and where it runs.
fn place(world: &World, id: ServerId) -> String {
    let known = if world.coordinators.state().is_alive(id) {
        "alive"
    } else {
        "failed"
    };
    match world.server_of(id) {
        Some(s) => format!("s{} ({known})", s + 1),
        None => format!("server {id} ({known}, gone for ever)"),
    }
}

pub fn at_end(world: &World) {
    for g in 0..world.ledgers.len() {
        if world.ledgers[g].is_lost || is_beyond_repair(world, g) {
            continue;
        }
        crate::trace::focus(Some(g));
        world.ledgers[g].check_oracle();
        world.former_logs[g].ledgers.iter().for_each(Ledger::check_oracle);
        let group_id = World::group_id(g);
        for id in &world.coordinators.state().groups[&group_id].chain {
            let s = world.server_of(*id).expect("healed");
            let mut offset = world.servers[s].groups[&group_id].replica().trim_offset();
            while let Some(next) = read(world, s, g, offset) {
                offset = next;
            }
            let end = world.ledgers[g].end_offset();
            assert_eq!(offset, end, "s{} does not read back to the end", s + 1);
        }
    }
}
