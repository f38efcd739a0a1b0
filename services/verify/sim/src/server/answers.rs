//! A group's answers to its clients: checked, noted, sent.

use quorate_chain::ClientRef;
use quorate_types::{GroupId, Offset};
use quorate_wire::client::Message;

use crate::client::connection;
use crate::fleet::World;
use crate::invariants;

/// A group sends a message to a client.
pub(super) fn send(world: &mut World, s: usize, group_id: GroupId, client: ClientRef, message: &Message) {
    let g = World::index_of(group_id);
    world.trace.line(Some(g), || {
        let text = crate::trace::brief(message);
        format!(
            "s{} → client {} on {}: {text}",
            s + 1,
            client.channel,
            client.connection
        )
    });
    invariants::before_message(world, s, g, client, message);
    if let Some(hosted) = world.servers[s].groups.get_mut(&group_id) {
        hosted.transcript.answered(client, message);
    }
    match message {
        Message::StatusOk(_) | Message::TrimOk { .. } => world.counts.answers += 1,
        Message::Refused(refused) => world.counts.refused(refused.code),
        _ => {}
    }
    connection::respond(world, s, client, message);
}

pub(super) fn send_acks(
    world: &mut World,
    s: usize,
    group_id: GroupId,
    client: ClientRef,
    acks: &[(ClientRef, u64, Offset)],
) {
    let g = World::index_of(group_id);
    world.trace.line(Some(g), || {
        let acks: Vec<_> = acks.iter().map(|(_, seq, offset)| (seq, offset)).collect();
        format!("s{} acks client {}: {acks:?}", s + 1, client.channel)
    });
    let hosted = world.servers[s].groups.get_mut(&group_id).expect("it acks");
    if let Some(session) = hosted.group.session_of(client) {
        for (_, seq, _) in acks {
            hosted.transcript.end_append(client.connection, session, *seq);
        }
        world.in_generation_of(s, g, |world| {
            for (_, seq, base_offset) in acks {
                world.ledgers[g].check_ack(session, *seq, *base_offset);
            }
        });
    }
    world.counts.acks += acks.len() as u64;
    world.acked_at = world.now;
    let acks = acks.iter().map(|(_, seq, base_offset)| (*seq, *base_offset));
    connection::respond(world, s, client, &Message::Acked(acks.collect()));
}
