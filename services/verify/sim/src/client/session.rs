//! Writers' sessions: attached, abandoned, left alone.

use quorate_types::Index;
use quorate_types::limits::SESSIONS_PER_GROUP_MAX;
use quorate_wire::client::Message;
use rand::Rng;

use super::connection;
use crate::fleet::{ClientId, ClientState, World};
use crate::plan::Fault;

/// Batches beyond those that fill the session table, for those of other clients.
const RETURN_MARGIN_BATCHES: Index = 50;

pub(super) fn attach(world: &mut World, c: usize) {
    let group_id = World::group_id(world.writers[c].group);
    let abandons = world.plan.groups[world.writers[c].group].abandons;
    if !world.writers[c].outstanding.is_empty() && !world.is_healing && world.rng.random_bool(abandons) {
        abandon(world, c);
    }
    let last = world.writers[c].connection.server;
    let named = world.writers[c].hint.take().or_else(|| world.head_of(group_id));
    // Its handle is old, now and then.
    let named = named.map(|named| if world.rng.random_bool(0.1) { last } else { named });
    let astray = named.is_none()
        || world.rng.random_bool(if world.is_fault_on(Fault::Astray) {
            0.3
        } else {
            0.02
        });
    let server = if astray {
        world.rng.random_range(0..world.servers.len())
    } else {
        named.expect("not astray")
    };
    connection::open(world, ClientId::Writer(c), server);
    send_attach(world, c);
}

/// Attaches on its connection, where it may be attached already.
pub(super) fn send_attach(world: &mut World, c: usize) {
    if world.writers[c].state != ClientState::Idle {
        connection::send(world, ClientId::Writer(c), Some(Message::Detach));
    }
    let (group_id, wall_s) = (World::group_id(world.writers[c].group), world.wall_s());
    let writer = &mut world.writers[c];
    writer.state = ClientState::Attaching;
    writer.since = world.now;
    writer.unanswered = 0;
    writer.was_refused = false;
    writer.asking = None;
    let message = Message::Attach {
        group_id,
        session: writer.session,
        token: writer.grant.token(wall_s),
    };
    connection::send(world, ClientId::Writer(c), Some(message));
}

/// Abandons its session. The outcome of unanswered batches stays unknown.
pub(super) fn abandon(world: &mut World, c: usize) {
    let writer = &mut world.writers[c];
    world.trace.line(Some(writer.group), || {
        format!("client {c} abandons session {:x}", writer.session)
    });
    for out in std::mem::take(&mut writer.outstanding) {
        world.ledgers[writer.group].unknown(out.number);
    }
    writer.session += 1;
    writer.floor_index = Index::MAX;
    writer.next_seq = 1;
    world.counts.sessions += 1;
}

/// Leaves with its batch unanswered.
pub(super) fn leave(world: &mut World, c: usize) {
    connection::close(world, ClientId::Writer(c));
    let now_at = world.ledgers[world.writers[c].group].last_index();
    world.writers[c].away_until = now_at + SESSIONS_PER_GROUP_MAX as Index + RETURN_MARGIN_BATCHES;
    world.trace.line(Some(world.writers[c].group), || {
        format!("client {c} goes away with a batch unanswered")
    });
}
