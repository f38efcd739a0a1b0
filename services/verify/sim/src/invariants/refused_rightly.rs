//! A condition is refused on what is committed only: at some time since the batch was sent, it did not hold.

use quorate_chain::ClientRef;
use quorate_types::Code;
use quorate_wire::client::Refused;

use crate::fleet::World;

pub fn before_refusal(world: &World, g: usize, client: ClientRef, refused: &Refused) {
    let (c, seq) = (client.channel as usize, refused.id);
    let Some(out) = world.outstanding(client.connection, c, seq) else {
        return;
    };
    let ledger = &world.ledgers[g];
    let end = ledger.end_offset();
    match Code::from_u16(refused.code).expect("a code of this version") {
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
