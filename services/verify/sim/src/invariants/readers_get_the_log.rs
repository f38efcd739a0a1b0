//! Readers get the committed batches at the offsets that they asked for, in order and with the bytes of their writers.
//! There is no gap, and nothing comes twice.

use quorate_wire::client::Entries;
use quorate_wire::cursor;

use crate::fleet::World;

/// A server is about to send the page.
pub fn before_page(world: &World, s: usize, g: usize, entries: &Entries) {
    let ledger = &world.ledgers[g];
    let mut next = None;
    for batch in &entries.batches {
        let base_offset = batch.base_offset;
        let header = ledger.at_offset(base_offset);
        let header =
            header.unwrap_or_else(|| panic!("s{} sends an uncommitted batch at {base_offset}", s + 1));
        assert_eq!(
            (
                batch.base_offset,
                batch.entry_count,
                batch.payload_crc,
                batch.timestamp_us
            ),
            (
                header.base_offset,
                header.entry_count,
                header.payload_crc,
                header.timestamp_us
            ),
            "what is read is what was committed"
        );
        assert_eq!(
            crc32fast::hash(&batch.payload),
            header.payload_crc,
            "s{} sends other bytes than the writer's at {base_offset}",
            s + 1
        );
        assert!(
            next.is_none_or(|next| next == base_offset),
            "s{} sends a page with a gap: {base_offset} follows where {next:?} should",
            s + 1
        );
        next = Some(header.end_offset());
    }
    assert!(
        next.is_none_or(|next| next == entries.next_offset),
        "a page ends where its last batch does"
    );
    assert!(entries.commit_offset <= ledger.end_offset());
}

/// A reader has got a page that should begin at `offset`; `has_begun`: it goes on where another ended.
pub fn after_page(r: usize, offset: u64, has_begun: bool, entries: &Entries) {
    let Some(first) = entries.batches.first() else {
        assert_eq!(entries.next_offset, offset, "an empty page leads nowhere");
        return;
    };
    let end = first.base_offset + u64::from(first.entry_count);
    let joins = first.base_offset == offset || !has_begun && (first.base_offset..end).contains(&offset);
    assert!(
        joins,
        "reader {r} wants offset {offset} and gets {} to {}",
        first.base_offset, entries.next_offset
    );
    for batch in &entries.batches {
        let (count, _) = cursor::check_entries(&batch.payload).expect("whole entries");
        assert_eq!(count, batch.entry_count, "entries add up to their batch");
    }
}
