//! A page answers a request, from the log that the group has now. No page comes from a log that was reset meanwhile, or
//! without a request.

use quorate_chain::ClientRef;
use quorate_wire::client::Entries;

use crate::fleet::{Requested, World};

pub fn before_page(world: &World, s: usize, g: usize, client: ClientRef, entries: &Entries) {
    let begin_offset = world.ledgers[g].begin_offset();
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    let asked = hosted
        .transcript
        .requests
        .get(&(client.connection, entries.request));
    let Some(first) = entries.batches.first() else {
        assert!(asked.is_some(), "s{} answers what nobody asked", s + 1);
        return;
    };
    let end = first.base_offset + u64::from(first.entry_count);
    assert!(
        first.base_offset >= begin_offset,
        "s{} sends entries at {} of a log that was reset: it begins at {begin_offset}",
        s + 1,
        first.base_offset
    );
    match asked {
        Some(Requested::Read { offset, .. }) => assert!(
            (first.base_offset..end).contains(offset),
            "s{} was asked for offset {offset} and sends {} to {}",
            s + 1,
            first.base_offset,
            entries.next_offset
        ),
        Some(Requested::Subscription { .. }) => {}
        other => panic!("s{} sends a page that nobody asked for: {other:?}", s + 1),
    }
}
