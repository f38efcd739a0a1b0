//! Messages and entries as bytes, little-endian. Decoding refuses whatever a member would never send, so that nothing of
//! it reaches an assertion.
//!
//! ```text
//! message  u64 term, u8 kind, body
//! point    u64 term, u64 position
//! entry    u64 position, u64 term, u8 kind: 0 begin; 1 payload: u32 length, bytes; 2 members
//! members  u8 count, each: u64 id, u8 votes, u8 length and address
//! ```

use bytes::{BufMut, BytesMut};
use quorate_wire::WireError;
use quorate_wire::cursor::{Reader, put_str8};

use crate::entry::{Content, Entry};
use crate::ids::{MemberId, Point, Position, Term};
use crate::limits::{MEMBERS_MAX, SNAPSHOT_BYTES_MAX};
use crate::members::{Member, Members};
use crate::message::{Body, Message};

const CANVASS: u8 = 1;
const CANVASSED: u8 = 2;
const VOTE: u8 = 3;
const VOTED: u8 = 4;
const APPEND: u8 = 5;
const APPENDED: u8 = 6;
const DIVERGED: u8 = 7;
const SNAPSHOT: u8 = 8;
const PIECES: u8 = 9;
const SUPERSEDED: u8 = 10;
const LEAD: u8 = 11;
const ENTRIES_LOST: u8 = 12;

const BEGIN: u8 = 0;
const PAYLOAD: u8 = 1;
const MEMBERS: u8 = 2;
/// Bytes of the shortest entry.
const ENTRY_BYTES_MIN: usize = 17;

pub fn encode_message(message: &Message) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_u64_le(message.term.0);
    match &message.body {
        Body::Canvass { last } => put_kind_and_point(&mut out, CANVASS, *last),
        Body::Vote { last } => put_kind_and_point(&mut out, VOTE, *last),
        Body::Canvassed { would } => out.put_slice(&[CANVASSED, u8::from(*would)]),
        Body::Voted { granted } => out.put_slice(&[VOTED, u8::from(*granted)]),
        Body::EntriesLost { acknowledged } => put_kind_and_point(&mut out, ENTRIES_LOST, *acknowledged),
        Body::Superseded => out.put_u8(SUPERSEDED),
        Body::Lead => out.put_u8(LEAD),
        Body::Append {
            previous,
            entries,
            committed,
            round,
        } => {
            put_kind_and_point(&mut out, APPEND, *previous);
            out.put_u64_le(committed.0);
            out.put_u64_le(*round);
            out.put_u32_le(entries.len() as u32);
            entries.iter().for_each(|entry| put_entry(&mut out, entry));
        }
        Body::Appended { matched, round } => {
            out.put_u8(APPENDED);
            out.put_u64_le(matched.0);
            out.put_u64_le(*round);
        }
        Body::Diverged {
            previous,
            hint,
            round,
        } => {
            put_kind_and_point(&mut out, DIVERGED, *previous);
            put_point(&mut out, *hint);
            out.put_u64_le(*round);
        }
        Body::Snapshot {
            base,
            members,
            total_bytes,
            from_byte,
            piece,
            round,
        } => {
            put_kind_and_point(&mut out, SNAPSHOT, *base);
            put_members(&mut out, members);
            out.put_u64_le(*total_bytes);
            out.put_u64_le(*from_byte);
            out.put_u64_le(*round);
            put_bytes(&mut out, piece);
        }
        Body::Pieces { base, bytes, round } => {
            put_kind_and_point(&mut out, PIECES, *base);
            out.put_u64_le(*bytes);
            out.put_u64_le(*round);
        }
    }
    out.to_vec()
}

pub fn decode_message(bytes: &[u8]) -> Result<Message, WireError> {
    let mut from = Reader::new(bytes, "a message between coordinators");
    let term = Term(from.position()?);
    let kind = from.u8()?;
    let body = match kind {
        CANVASS => Body::Canvass {
            last: point(&mut from)?,
        },
        VOTE => Body::Vote {
            last: point(&mut from)?,
        },
        CANVASSED => Body::Canvassed {
            would: flag(&mut from)?,
        },
        VOTED => Body::Voted {
            granted: flag(&mut from)?,
        },
        ENTRIES_LOST => Body::EntriesLost {
            acknowledged: point(&mut from)?,
        },
        SUPERSEDED => Body::Superseded,
        LEAD => Body::Lead,
        APPEND => append(&mut from, term)?,
        APPENDED => Body::Appended {
            matched: Position(from.position()?),
            round: from.u64()?,
        },
        DIVERGED => Body::Diverged {
            previous: point(&mut from)?,
            hint: point(&mut from)?,
            round: from.u64()?,
        },
        SNAPSHOT => snapshot(&mut from)?,
        PIECES => Body::Pieces {
            base: point(&mut from)?,
            bytes: from.u64()?,
            round: from.u64()?,
        },
        kind => return Err(WireError::UnknownKind { kind }),
    };
    Ok(Message { term, body })
}

fn append(from: &mut Reader<'_>, term: Term) -> Result<Body, WireError> {
    let previous = point(from)?;
    let committed = Position(from.position()?);
    let round = from.u64()?;
    let count = from.count(ENTRY_BYTES_MIN)?;
    let mut entries = Vec::with_capacity(count);
    let mut before = previous;
    for _ in 0..count {
        let entry = entry(from)?;
        let follows =
            entry.position == before.position.next() && before.term <= entry.term && entry.term <= term;
        if !follows {
            return Err(malformed("the order of entries"));
        }
        before = entry.point();
        entries.push(entry);
    }
    Ok(Body::Append {
        previous,
        entries,
        committed,
        round,
    })
}

fn snapshot(from: &mut Reader<'_>) -> Result<Body, WireError> {
    let base = point(from)?;
    let members = members(from)?;
    let (total_bytes, from_byte, round) = (from.u64()?, from.u64()?, from.u64()?);
    let piece = bytes(from)?;
    let end = from_byte.checked_add(piece.len() as u64);
    if total_bytes > SNAPSHOT_BYTES_MAX || end.is_none_or(|end| end > total_bytes) {
        return Err(malformed("a piece of a snapshot"));
    }
    let piece = piece.into();
    Ok(Body::Snapshot {
        base,
        members,
        total_bytes,
        from_byte,
        piece,
        round,
    })
}

pub fn put_entry(out: &mut BytesMut, entry: &Entry) {
    out.put_u64_le(entry.position.0);
    out.put_u64_le(entry.term.0);
    match &entry.content {
        Content::Begin => out.put_u8(BEGIN),
        Content::Payload(payload) => {
            out.put_u8(PAYLOAD);
            put_bytes(out, payload);
        }
        Content::Members(members) => {
            out.put_u8(MEMBERS);
            put_members(out, members);
        }
    }
}

pub fn entry(from: &mut Reader<'_>) -> Result<Entry, WireError> {
    let (position, term) = (Position(from.position()?), Term(from.position()?));
    let content = match from.u8()? {
        BEGIN => Content::Begin,
        PAYLOAD => Content::Payload(bytes(from)?.into()),
        MEMBERS => Content::Members(members(from)?),
        kind => return Err(WireError::UnknownKind { kind }),
    };
    Ok(Entry {
        position,
        term,
        content,
    })
}

pub fn put_members(out: &mut BytesMut, members: &Members) {
    let count = members.ids().count();
    assert!(count <= MEMBERS_MAX, "changes keep the bound");
    out.put_u8(count as u8);
    for (id, member) in members.iter() {
        out.put_u64_le(id.0);
        out.put_u8(u8::from(member.votes));
        put_str8(out, &member.address);
    }
}

pub fn members(from: &mut Reader<'_>) -> Result<Members, WireError> {
    let count = usize::from(from.u8()?);
    let mut found = Vec::with_capacity(count.min(MEMBERS_MAX));
    for _ in 0..count {
        let (id, votes, address) = (MemberId(from.u64()?), flag(from)?, from.str8()?);
        found.push((id, Member { address, votes }));
    }
    let members = Members::from_parts(found);
    if count > MEMBERS_MAX || members.ids().count() != count || members.voters().next().is_none() {
        return Err(malformed("the members"));
    }
    Ok(members)
}

fn put_kind_and_point(out: &mut BytesMut, kind: u8, point: Point) {
    out.put_u8(kind);
    put_point(out, point);
}

fn put_point(out: &mut BytesMut, point: Point) {
    out.put_u64_le(point.term.0);
    out.put_u64_le(point.position.0);
}

fn point(from: &mut Reader<'_>) -> Result<Point, WireError> {
    let (term, position) = (Term(from.position()?), Position(from.position()?));
    Ok(Point { term, position })
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}

fn bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
    let length = from.count(1)?;
    from.bytes(length)
}

fn flag(from: &mut Reader<'_>) -> Result<bool, WireError> {
    match from.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(malformed("a flag")),
    }
}

fn malformed(what: &'static str) -> WireError {
    WireError::Malformed { what }
}
