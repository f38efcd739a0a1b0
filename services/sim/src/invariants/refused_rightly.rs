//! A condition is refused on what is committed only: at some time since the batch was sent, it did not hold.

use quorate_chain::ClientRef;
use quorate_types::Code;

use crate::world::World;

pub fn check(world: &World, g: usize, client: ClientRef, seq: u64, code: Code) {
    let c = client.channel as usize;
    let Some(out) = world
        .outstanding(c, seq)
        .filter(|_| world.connection(c) == client.connection)
    else {
        return;
    };
    let ledger = &world.ledgers[g];
    let end = ledger.end_offset();
    match code {
        Code::ConditionFailed => assert!(
            out.sent_at != out.expected_offset || end != out.expected_offset,
            "client {c} seq {seq} is refused for its condition, which held: the log ended at {end} all the time"
        ),
        Code::Fenced => assert!(
            out.fencing_token < ledger.fence,
            "client {c} seq {seq} is fenced by a token that was never committed"
        ),
        _ => {}
    }
}
