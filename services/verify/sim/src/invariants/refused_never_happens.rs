//! A batch that is refused outright did not happen, and will not unless it is sent again.

use quorate_chain::ClientRef;
use quorate_types::Code;
use quorate_wire::client::{Outcome, Refused};

use crate::fleet::World;

/// A server is about to refuse this client's append.
pub fn before_refusal(world: &mut World, g: usize, client: ClientRef, refused: &Refused) {
    if refused.outcome == Outcome::Refused as u8 {
        let speaks_for_all = refused.code != Code::SessionExpired as u16;
        world.ledgers[g].refused_outright(client.connection, refused.id, speaks_for_all);
    }
}
