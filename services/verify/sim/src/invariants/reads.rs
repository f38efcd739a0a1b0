//! Reads return the committed entries, without a gap.

use quorate_chain::ReadError;
use quorate_types::{Code, Offset};
use rand::Rng;

use crate::fleet::World;

/// Reads somewhere in the log of this replica.
pub fn read_somewhere(world: &mut World, s: usize, g: usize) {
    let (begin, end) = (world.ledgers[g].begin_offset(), world.ledgers[g].end_offset());
    let offset = world.rng.random_range(begin..=end + 1);
    read(world, s, g, offset);
}

/// Reads one page; answers the next offset, or `None` when nothing is there.
pub fn read(world: &World, s: usize, g: usize, offset: Offset) -> Option<Offset> {
    let group_id = World::group_id(g);
    let replica = world.servers[s].groups.get(&group_id)?.replica();
    let page = match replica.read(offset, 1000, 10, 16) {
        Ok(page) => page,
        Err(error @ ReadError::Trimmed { trim_offset }) => {
            assert_eq!(error.code(), Code::Trimmed);
            assert!(offset < trim_offset && trim_offset <= replica.commit_offset());
            return None;
        }
        Err(ReadError::BeyondEnd { commit_offset }) => {
            assert!(offset > commit_offset);
            return None;
        }
    };
    let mut next = offset;
    for (at, piece) in page.pieces.iter().enumerate() {
        let header = world.ledgers[g]
            .at(piece.index)
            .expect("only what is committed is read");
        assert_eq!(
            (
                piece.base_offset,
                piece.payload_crc,
                piece.entry_count,
                piece.payload_len
            ),
            (
                header.base_offset,
                header.payload_crc,
                header.entry_count,
                header.payload_len
            ),
            "what is read is what was committed"
        );
        let joins = if at == 0 {
            piece.base_offset <= next
        } else {
            piece.base_offset == next
        };
        assert!(joins, "a gap at {next}");
        next = header.end_offset();
        assert!(next > offset);
        if let Some(payload) = &piece.payload
            && payload.len() < 1_000
        {
            assert_eq!(
                crc32fast::hash(payload),
                header.payload_crc,
                "the bytes are the client's"
            );
        }
    }
    assert_eq!(page.next_offset, next);
    assert!(page.commit_offset >= next || page.pieces.is_empty());
    (!page.pieces.is_empty()).then_some(next)
}
