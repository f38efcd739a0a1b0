//! Only a client with permission appends, trims or reads, and only until its token expires.

use quorate_types::Code;
use quorate_wire::client::Message;

use super::step::{Step, refusal_in};
use crate::fleet::World;

pub fn after_request(world: &World, step: &Step<'_>) {
    let (s, g) = (step.s, step.g);
    let server = &world.servers[s];
    let channels = &server.groups[&World::group_id(g)].transcript.channels;
    let Some(channel) = channels.get(&step.delivered.client.connection) else {
        return;
    };
    let permission = &channel.permission;
    let is_allowed = match &step.delivered.message {
        Message::Append(_) | Message::Trim { .. } => permission.may_append,
        Message::Read { .. } | Message::Subscribe { .. } | Message::Credit { .. } => permission.may_read,
        _ => return,
    };
    let is_in_time = permission.expires_at_s >= server.wall_us(world.now) / 1_000_000;
    if is_allowed && is_in_time {
        return;
    }
    let code = refusal_in(step.out, step.delivered).map(|refused| refused.code);
    let expected = [Code::PermissionDenied as u16, Code::TokenExpired as u16];
    assert!(
        code.is_some_and(|code| expected.contains(&code)),
        "s{} takes {} of a client that may not (any more): {permission:?}; it was answered {code:?}",
        s + 1,
        crate::trace::brief(&step.delivered.message)
    );
}
