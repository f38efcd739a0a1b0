//! The format of `coordinator.log`: one member's disk, as the quorum knows it.
//!
//! The framing is that of `quorate_record_file`, with the magic "QRTCLOG\0" and version 2; payloads are JSON:
//!
//! ```text
//! {"base": {"member", "fleet", "vote", "point", "members", "state"}}   first record only; no state: an empty disk
//! {"writes": [{"vote", "cut_after", "entries": […]}, …]}              writes of the quorum, synced as one; what one lacks stays
//! ```
//!
//! An entry is `{"position", "term"}` with one of `"commands": [{"at_ms": …, "command": …}, …]`, a batch that is agreed or
//! refused as one, or `"members": […]`; with neither it begins its term. Numbers of members and of the fleet are
//! hexadecimal text, so that readers whose numbers are floating-point read them right.

use std::sync::Arc;

use quorate_quorum::{Content, Entry, Member, MemberId, Members, Point, Position, Term, Vote, Write};
use quorate_record_file::HEADER_BYTES;
use quorate_types::FleetId;
use quorate_types::limits::COORDINATOR_RECORD_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::state::CoordinatorState;

pub(super) const MAGIC: &[u8; 8] = b"QRTCLOG\0";
pub(super) const VERSION: u32 = 2;

/// The disk of a member as its log begins. Its vote is the last one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub member: MemberId,
    /// None: nobody has taken the member in.
    pub fleet: Option<FleetId>,
    pub vote: Vote,
    pub point: Point,
    pub members: Members,
}

impl Base {
    /// The first member of a fleet, which decides alone until it takes others in.
    pub fn first(member: MemberId, fleet: FleetId, address: String) -> Self {
        let term = Term(1);
        Self {
            member,
            fleet: Some(fleet),
            vote: Vote { term, given_to: None },
            // Its state counts as one agreed entry, so that nobody takes an empty disk for it.
            point: Point {
                term,
                position: Position(1),
            },
            members: Members::first(member, address),
        }
    }

    /// A member that waits to be taken in.
    pub fn empty(member: MemberId) -> Self {
        Self {
            member,
            fleet: None,
            vote: Vote::default(),
            point: Point::default(),
            members: Members::default(),
        }
    }
}

/// No log gets so far, and sums of such numbers do not overflow.
const NUMBER_MAX: u64 = 1 << 62;

/// One record. A snapshot's state is bytes or a value when it is written, and bytes when it is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record<S> {
    Base(BaseRecord<S>),
    Writes(Vec<WriteRecord>),
}

#[derive(Serialize, Deserialize)]
pub(super) struct BaseRecord<S> {
    member: String,
    fleet: Option<String>,
    vote: VoteRecord,
    point: PointRecord,
    members: Vec<MemberRecord>,
    pub state: S,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WriteRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vote: Option<VoteRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<EntryRecord>,
}

#[derive(Serialize, Deserialize)]
struct VoteRecord {
    term: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given_to: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PointRecord {
    term: u64,
    position: u64,
}

#[derive(Serialize, Deserialize)]
struct MemberRecord {
    id: String,
    address: String,
    votes: bool,
}

#[derive(Serialize, Deserialize)]
struct EntryRecord {
    position: u64,
    term: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commands: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberRecord>>,
}

/// The first bytes of every log.
pub fn header() -> [u8; HEADER_BYTES] {
    quorate_record_file::header(MAGIC, VERSION)
}

/// A whole log that begins there, with this state and nothing else. None: an empty disk.
pub fn encode_base(base: &Base, state: Option<&CoordinatorState>) -> Vec<u8> {
    whole_log(base, state)
}

/// The same for a snapshot that came from another member, or the empty disk's none. The contents were read as a state.
pub fn encode_base_of(base: &Base, contents: &[u8]) -> Vec<u8> {
    let contents = std::str::from_utf8(contents).expect("a state is text");
    let state: &RawValue = serde_json::from_str(contents).expect("a state is JSON");
    whole_log(base, state)
}

/// The record of writes that are synced as one: a crash keeps all of them or none. A snapshot begins another log.
pub fn encode_writes<'a>(writes: impl IntoIterator<Item = &'a Write>) -> Vec<u8> {
    let record = |write: &Write| WriteRecord {
        vote: write.vote.map(VoteRecord::from),
        cut_after: write.cut_after.map(|position| position.0),
        entries: write.entries.iter().map(EntryRecord::from).collect(),
    };
    encode(&Record::<()>::Writes(writes.into_iter().map(record).collect()))
}

/// The contents of a snapshot.
pub fn encode_state(state: &CoordinatorState) -> Arc<[u8]> {
    serde_json::to_vec(state).expect("the state serialises").into()
}

fn whole_log<S: Serialize>(base: &Base, state: S) -> Vec<u8> {
    let mut contents = header().to_vec();
    contents.extend_from_slice(&encode(&Record::Base(BaseRecord {
        member: base.member.to_string(),
        fleet: base.fleet.map(|fleet| fleet.to_string()),
        vote: base.vote.into(),
        point: PointRecord {
            term: base.point.term.0,
            position: base.point.position.0,
        },
        members: records_of(&base.members),
        state,
    })));
    contents
}

fn encode<S: Serialize>(record: &Record<S>) -> Vec<u8> {
    let payload = serde_json::to_vec(record).expect("records serialise");
    assert!(
        payload.len() as u64 <= COORDINATOR_RECORD_BYTES_MAX,
        "a record of {} bytes",
        payload.len()
    );
    quorate_record_file::encode(&payload)
}

impl<S> BaseRecord<S> {
    pub(super) fn base(&self) -> Result<Base, String> {
        let term = Term(self.point.term);
        let position = Position(self.point.position);
        let fleet = self.fleet.as_deref();
        let fleet = fleet.map(|text| text.parse().map_err(|_| wrong("fleet", text)));
        let vote = self.vote.vote()?;
        if term > vote.term {
            return Err("it begins in a term that was not begun".into());
        }
        if term.0.max(position.0) > NUMBER_MAX {
            return Err("it begins beyond the end of all logs".into());
        }
        Ok(Base {
            member: member_id(&self.member)?,
            fleet: fleet.transpose()?,
            vote,
            point: Point { term, position },
            members: members_of(&self.members)?,
        })
    }
}

impl WriteRecord {
    /// The write, as the quorum asked for it; its number is not kept.
    pub(super) fn write(self) -> Result<Write, String> {
        let entries = self.entries.into_iter().map(EntryRecord::entry);
        Ok(Write {
            id: quorate_quorum::WriteId::default(),
            vote: self.vote.as_ref().map(VoteRecord::vote).transpose()?,
            snapshot: None,
            cut_after: self.cut_after.map(Position),
            entries: entries.collect::<Result<_, _>>()?,
        })
    }
}

impl From<Vote> for VoteRecord {
    fn from(vote: Vote) -> Self {
        Self {
            term: vote.term.0,
            given_to: vote.given_to.map(|member| member.to_string()),
        }
    }
}

impl VoteRecord {
    fn vote(&self) -> Result<Vote, String> {
        Ok(Vote {
            term: Term(self.term),
            given_to: self.given_to.as_deref().map(member_id).transpose()?,
        })
    }
}

impl From<&Entry> for EntryRecord {
    fn from(entry: &Entry) -> Self {
        let (commands, members) = match &entry.content {
            Content::Begin => (None, None),
            Content::Payload(payload) => {
                let text = std::str::from_utf8(payload).expect("a batch is text").to_string();
                (Some(RawValue::from_string(text).expect("a batch is JSON")), None)
            }
            Content::Members(members) => (None, Some(records_of(members))),
        };
        Self {
            position: entry.position.0,
            term: entry.term.0,
            commands,
            members,
        }
    }
}

impl EntryRecord {
    fn entry(self) -> Result<Entry, String> {
        let content = match (self.commands, self.members) {
            (None, None) => Content::Begin,
            (Some(commands), None) => Content::Payload(commands.get().as_bytes().into()),
            (None, Some(members)) => Content::Members(members_of(&members)?),
            (Some(_), Some(_)) => return Err("an entry has commands and members".into()),
        };
        Ok(Entry {
            position: Position(self.position),
            term: Term(self.term),
            content,
        })
    }
}

fn records_of(members: &Members) -> Vec<MemberRecord> {
    let record = |(id, member): (MemberId, &Member)| MemberRecord {
        id: id.to_string(),
        address: member.address.clone(),
        votes: member.votes,
    };
    members.iter().map(record).collect()
}

fn members_of(records: &[MemberRecord]) -> Result<Members, String> {
    let member = |record: &MemberRecord| {
        let (address, votes) = (record.address.clone(), record.votes);
        Ok((member_id(&record.id)?, Member { address, votes }))
    };
    let members: Result<Vec<_>, String> = records.iter().map(member).collect();
    Ok(Members::from_parts(members?))
}

fn member_id(text: &str) -> Result<MemberId, String> {
    let number = u64::from_str_radix(text, 16).map_err(|_| wrong("member", text))?;
    Ok(MemberId(number))
}

pub(super) fn unreadable(error: &serde_json::Error) -> String {
    format!("a record is unreadable ({error}); was it written by a newer version?")
}

fn wrong(what: &str, text: &str) -> String {
    format!("{text:?} is no number of a {what}")
}
