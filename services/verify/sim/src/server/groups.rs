//! Events into groups: in steps, with a flush behind each or behind some of them. Each step and flush is checked, and
//! its outputs are carried out.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Group, Outputs};
use quorate_types::GroupId;
use quorate_wire::client::Message;
use rand::Rng;

use super::outputs;
use super::quarantine::{self, guard};
use crate::fleet::{Delivered, Hosted, Scheduled, World};
use crate::invariants::{self, Step};
use crate::trace::{self, brief};

/// The group takes in one event, if it is here.
pub fn step(world: &mut World, s: usize, group_id: GroupId, event: Event) {
    if !step_only(world, s, group_id, event) {
        return;
    }
    if world.plan.flush_at_once >= 1.0 || world.rng.random_bool(world.plan.flush_at_once) {
        return flush_group(world, s, group_id);
    }
    let Some(hosted) = world.servers[s].groups.get_mut(&group_id) else {
        return;
    };
    if !std::mem::replace(&mut hosted.is_dirty, true) {
        let incarnation = world.servers[s].incarnation;
        let at = world.now + world.rng.random_range(1..200);
        world.schedule(
            at,
            Scheduled::Flush {
                server: s,
                incarnation,
            },
        );
    }
}

pub(super) fn step_replica(world: &mut World, s: usize, group_id: GroupId, event: ReplicaEvent) {
    step(world, s, group_id, Event::Replica(event));
}

/// True: the group is here and took it.
pub(super) fn step_only(world: &mut World, s: usize, group_id: GroupId, event: Event) -> bool {
    let g = World::index_of(group_id);
    let now = world.now;
    let server = &mut world.servers[s];
    server.set_turn(now);
    let Some(hosted) = server.groups.get_mut(&group_id) else {
        return false;
    };
    trace::focus(Some(g));
    world
        .trace
        .line(Some(g), || format!("s{} ← {}", s + 1, brief(&event)));
    let epoch = hosted.replica().epoch();
    let mut out = std::mem::take(&mut server.outputs);
    let may_be_poisoned = world.poisoned == Some(g);
    let turn = &mut server.turn;
    if guard(may_be_poisoned, || hosted.group.step(turn, event, &mut out)).is_none() {
        quarantine::begin(world, s, group_id);
        return false;
    }
    let has_adopted = hosted.replica().epoch() != epoch;
    note_generation(world, s, g);
    if has_adopted {
        note_adopted(world, s, g);
    }
    check_and_carry_out(world, s, group_id, out);
    true
}

pub fn flush(world: &mut World, s: usize) {
    let groups = world.servers[s].groups.iter();
    let dirty = groups.filter(|(_, hosted)| hosted.is_dirty).map(|(id, _)| *id);
    for group_id in dirty.collect::<Vec<_>>() {
        flush_group(world, s, group_id);
    }
}

pub(super) fn flush_group(world: &mut World, s: usize, group_id: GroupId) {
    let now = world.now;
    let server = &mut world.servers[s];
    server.set_turn(now);
    let Some(hosted) = server.groups.get_mut(&group_id) else {
        return;
    };
    trace::focus(Some(World::index_of(group_id)));
    hosted.is_dirty = false;
    let mut out = std::mem::take(&mut server.outputs);
    let before = invariants::before_flush(&hosted.group, &server.turn.pool);
    let may_be_poisoned = world.poisoned == Some(World::index_of(group_id));
    let turn = &mut server.turn;
    if guard(may_be_poisoned, || hosted.group.flush(turn, &mut out)).is_none() {
        return quarantine::begin(world, s, group_id);
    }
    invariants::after_flush(world, s, World::index_of(group_id), &before);
    check_and_carry_out(world, s, group_id, out);
}

/// A group took a step or was flushed: checks it, and carries its outputs out.
fn check_and_carry_out(world: &mut World, s: usize, group_id: GroupId, mut out: Outputs) {
    let g = World::index_of(group_id);
    let hosted = &world.servers[s].groups[&group_id];
    let replica = hosted.replica();
    let log = replica.log();
    let (commit, last, epoch) = (replica.commit_index(), log.last_index(), replica.epoch());
    world.trace.numbers(&[
        world.now,
        s as u64,
        g as u64,
        epoch,
        commit,
        last,
        out.list.len() as u64,
    ]);
    if !out.is_empty() {
        world.trace.line(Some(g), || {
            format!(
                "s{} epoch {epoch} {:?} {:?} base {} commit {commit} last {last} durable offset {}",
                s + 1,
                replica.role(),
                replica.state(),
                log.base().index,
                replica.durable_offset()
            )
        });
    }
    if let Some(delivered) = world.servers[s].delivered.take() {
        note_attached(world, s, group_id, &delivered);
        let (delivered, out) = (&delivered, &out);
        invariants::after_request(world, &Step { s, g, delivered, out });
    }
    world.in_generation_of(s, g, |world| invariants::after_step(world, s, g));
    outputs::carry_out_all(world, s, group_id, &mut out);
    invariants::after_outputs(world, s, g);
    world.servers[s].outputs = out;
}

/// The group may have taken a session over, for the connection on which it came last.
fn note_attached(world: &mut World, s: usize, group_id: GroupId, delivered: &Delivered) {
    let hosted = world.servers[s]
        .groups
        .get_mut(&group_id)
        .expect("it took a step");
    let client = delivered.client;
    if let Message::Attach { session, .. } = &delivered.message
        && *session != 0
        && hosted.group.session_of(client) == Some(*session)
    {
        hosted.transcript.owners.insert(*session, client.connection);
    }
}

/// A replica is in a new epoch.
fn note_adopted(world: &mut World, s: usize, g: usize) {
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    let config = hosted.replica().config().expect("adopted").clone();
    world.trace.line(Some(g), || {
        let chain: Vec<String> = config.line().map(|m| m.server_id.to_string()).collect();
        format!(
            "s{} adopts epoch {}: servers {} ({} replicas)",
            s + 1,
            config.epoch,
            chain.join(" "),
            config.replicas.len()
        )
    });
    world.in_generation_of(s, g, |world| invariants::after_adoption(world, s, g, &config));
}

/// A group comes to a server.
pub(super) fn host(world: &mut World, s: usize, group_id: GroupId, mut group: Group) {
    if let Some(bytes) = world.plan.recent_bytes {
        group.keep_recent(bytes);
    }
    world.servers[s].groups.insert(group_id, Hosted::new(group));
    let generation = world.generation_of(s, World::index_of(group_id));
    let hosted = world.servers[s].groups.get_mut(&group_id);
    hosted.expect("it has just come").log_generation = generation;
}

/// The replica may have discarded its log for one of a later generation. Its old copy is lost on purpose.
fn note_generation(world: &mut World, s: usize, g: usize) {
    let generation = world.generation_of(s, g);
    let group_id = World::group_id(g);
    let hosted = world.servers[s]
        .groups
        .get_mut(&group_id)
        .expect("it took a step");
    if std::mem::replace(&mut hosted.log_generation, generation) != generation {
        hosted.commit_seen = 0;
        world.servers[s].forget(group_id);
    }
}
