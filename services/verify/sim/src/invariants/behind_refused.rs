//! A batch behind one that was refused for lack of budget or room cannot be ordered. It is refused at once, and takes
//! neither from other batches.

use quorate_types::Code;
use quorate_wire::client::Message;

use super::step::{Step, refusal_in};
use crate::fleet::World;

const FOR_LACK: [u16; 3] = [
    Code::Throttled as u16,
    Code::Overloaded as u16,
    Code::DeadlineExceeded as u16,
];

/// A head refuses this batch.
pub fn note_refused(world: &mut World, s: usize, g: usize, connection: u64, seq: u64, code: u16) {
    let Some(hosted) = world.servers[s].groups.get_mut(&World::group_id(g)) else {
        return;
    };
    if let Some(channel) = hosted.transcript.channels.get_mut(&connection)
        && FOR_LACK.contains(&code)
    {
        let least = channel.refused_seq.map_or(seq, |refused| refused.min(seq));
        channel.refused_seq = Some(least);
    }
}

pub fn after_request(world: &mut World, step: &Step<'_>) {
    let Message::Append(append) = &step.delivered.message else {
        return;
    };
    let hosted = world.servers[step.s].groups.get_mut(&World::group_id(step.g));
    let hosted = hosted.expect("it took the request");
    let sessions = hosted.group.replica().log().sessions();
    let Some(channel) = hosted
        .transcript
        .channels
        .get_mut(&step.delivered.client.connection)
    else {
        return;
    };
    // A batch that was ordered before waits for its place to be committed.
    let is_known = append.seq < sessions.next_seq(channel.session);
    match channel.refused_seq {
        Some(refused) if append.seq > refused && !is_known => {
            let code = refusal_in(step.out, step.delivered).map(|refused| refused.code);
            assert!(
                code.is_some_and(|code| !FOR_LACK.contains(&code)),
                "batch {} waits or takes budget behind batch {refused}, which was refused: it was answered {code:?}",
                append.seq
            );
        }
        _ => channel.refused_seq = None,
    }
}
