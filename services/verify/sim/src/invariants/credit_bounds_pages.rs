//! A subscription gets a page only while it has credit, so never more than its credit and one page.

use quorate_chain::ClientRef;
use quorate_wire::client::Entries;

use crate::fleet::{Requested, World};

pub fn before_page(world: &World, s: usize, g: usize, client: ClientRef, entries: &Entries) {
    let transcript = &world.servers[s].groups[&World::group_id(g)].transcript;
    if let Some(Requested::Subscription {
        granted_bytes,
        sent_bytes,
    }) = transcript.requests.get(&(client.connection, entries.request))
    {
        assert!(
            sent_bytes < granted_bytes,
            "s{} has sent {sent_bytes} bytes to a subscription with a credit of {granted_bytes}, and sends another page",
            s + 1
        );
    }
}
