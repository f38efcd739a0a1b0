//! Clients' requests to a group.

use quorate_chain::ClientRef;
use quorate_group::{Event, Outputs, Request, refuse_absent};
use quorate_wire::client::Message;

use super::{groups, outputs};
use crate::fleet::{ClientId, Delivered, FromClient, Server, World, permission_of};

pub fn receive(world: &mut World, s: usize, client: ClientId, from: FromClient) {
    let group_id = World::group_id(world.group_of_client(client));
    let client = ClientRef {
        connection: from.connection,
        channel: client.channel(),
    };
    if from.message.is_some() && world.aborted.contains(&from.connection) {
        return;
    }
    let message = from.message.filter(|message| *message != Message::Detach);
    let request = request_of(&mut world.servers[s], &message);
    let Some(hosted) = world.servers[s].groups.get_mut(&group_id) else {
        let mut out = Outputs::default();
        let is_lost = world.servers[s].lost.contains(&group_id);
        let absence = world.servers[s].quarantined.absence_of(group_id, is_lost);
        refuse_absent(client, &request, absence, &mut out);
        return outputs::carry_out_all(world, s, group_id, &mut out);
    };
    match message {
        None => hosted.transcript.forget(client.connection),
        Some(message) => {
            hosted.transcript.note(client, &message, from.end_offset);
            world.servers[s].delivered = Some(Delivered { client, message });
        }
    }
    groups::step(world, s, group_id, Event::Request { client, request });
}

fn request_of(server: &mut Server, message: &Option<Message>) -> Request {
    match message {
        None => Request::Gone,
        Some(Message::Attach { session, token, .. }) => {
            server.attachments += 1;
            Request::Attach {
                number: server.attachments,
                session: *session,
                permission: permission_of(token),
            }
        }
        Some(message) => Request::Message {
            message: message.clone(),
            trace: None,
        },
    }
}
