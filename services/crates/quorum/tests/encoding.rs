//! Messages come out of their bytes as they went in, and no bytes do harm.

use proptest::prelude::*;
use quorate_quorum::{
    Body, Content, Entry, Member, MemberId, Members, Message, Point, Position, Term, decode_message,
    encode_message,
};

const MAX: u64 = 1 << 55;

fn points() -> impl Strategy<Value = Point> {
    (0..MAX, 0..MAX).prop_map(|(term, position)| Point {
        term: Term(term),
        position: Position(position),
    })
}

fn some_members() -> impl Strategy<Value = Members> {
    let member = (any::<u64>(), any::<bool>(), "[a-z0-9.:]{0,40}");
    (any::<u64>(), prop::collection::vec(member, 0..8)).prop_map(|(voter, others)| {
        let first = (MemberId(voter), String::from("first:1"), true);
        let others = others
            .into_iter()
            .map(|(id, votes, address)| (MemberId(id), address, votes));
        let named = others.chain([first]);
        Members::from_parts(named.map(|(id, address, votes)| (id, Member { address, votes })))
    })
}

fn contents() -> impl Strategy<Value = Content> {
    prop_oneof![
        Just(Content::Begin),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(|payload| Content::Payload(payload.into())),
        some_members().prop_map(Content::Members),
    ]
}

fn appends() -> impl Strategy<Value = Message> {
    let steps = prop::collection::vec((0..3u64, contents()), 0..6);
    (points(), steps, 0..MAX, any::<u64>()).prop_map(|(previous, steps, committed, round)| {
        let (mut term, mut position) = (previous.term, previous.position);
        let entries = steps.into_iter().map(|(later, content)| {
            (term, position) = (Term(term.0 + later), position.next());
            Entry {
                position,
                term,
                content,
            }
        });
        let entries: Vec<Entry> = entries.collect();
        let committed = Position(committed);
        let body = Body::Append {
            previous,
            entries,
            committed,
            round,
        };
        Message { term, body }
    })
}

fn others() -> impl Strategy<Value = Message> {
    let piece = (
        points(),
        some_members(),
        prop::collection::vec(any::<u8>(), 0..300),
        0..1_000u64,
        0..1_000u64,
    );
    let snapshots = piece.prop_map(|(base, members, piece, from_byte, more)| Body::Snapshot {
        base,
        members,
        total_bytes: from_byte + piece.len() as u64 + more,
        from_byte,
        piece: piece.into(),
        round: more,
    });
    let bodies = prop_oneof![
        points().prop_map(|last| Body::Canvass { last }),
        points().prop_map(|last| Body::Vote { last }),
        any::<bool>().prop_map(|would| Body::Canvassed { would }),
        any::<bool>().prop_map(|granted| Body::Voted { granted }),
        (0..MAX, any::<u64>()).prop_map(|(matched, round)| Body::Appended {
            matched: Position(matched),
            round,
        }),
        (points(), points(), any::<u64>()).prop_map(|(previous, hint, round)| Body::Diverged {
            previous,
            hint,
            round,
        }),
        (points(), any::<u64>(), any::<u64>()).prop_map(|(base, bytes, round)| Body::Pieces {
            base,
            bytes,
            round
        }),
        Just(Body::Superseded),
        points().prop_map(|acknowledged| Body::EntriesLost { acknowledged }),
        Just(Body::Lead),
        snapshots,
    ];
    (0..MAX, bodies).prop_map(|(term, body)| Message {
        term: Term(term),
        body,
    })
}

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![appends(), others()]
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in(message in messages()) {
        prop_assert_eq!(decode_message(&encode_message(&message)), Ok(message));
    }

    #[test]
    fn a_shorter_message_is_refused(message in messages(), cut in any::<prop::sample::Index>()) {
        let bytes = encode_message(&message);
        prop_assert!(decode_message(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn no_bytes_do_harm(message in messages(), at in any::<prop::sample::Index>(), to in any::<u8>(), junk: Vec<u8>) {
        let mut bytes = encode_message(&message);
        let place = at.index(bytes.len());
        bytes[place] = to;
        let _ = decode_message(&bytes);
        let _ = decode_message(&junk);
    }
}

#[test]
fn entries_out_of_order_are_refused() {
    let entry = |position, term| Entry {
        position: Position(position),
        term: Term(term),
        content: Content::Begin,
    };
    let of = |entries: Vec<Entry>| {
        let previous = Point {
            term: Term(3),
            position: Position(7),
        };
        let body = Body::Append {
            previous,
            entries,
            committed: Position(7),
            round: 1,
        };
        let term = Term(5);
        decode_message(&encode_message(&Message { term, body }))
    };
    assert!(of(vec![entry(8, 3), entry(9, 5)]).is_ok());
    for (entries, why) in [
        (vec![entry(9, 3)], "a gap"),
        (vec![entry(8, 2)], "a term that falls"),
        (vec![entry(8, 6)], "a term after the sender's"),
        (vec![entry(8, 4), entry(8, 4)], "one position twice"),
    ] {
        assert!(of(entries).is_err(), "{why}");
    }
}
