//! The last member of a fleet, when the disks of the others are lost: it goes on alone, as the first of a fleet of its own.

use quorate_quorum::{Content, MemberId, Members, Point, Term, Vote};
use quorate_types::FleetId;

use super::batch::{decode_batch, read_state};
use crate::log::{Base, MemberDisk, Replay};
use crate::state::CoordinatorState;

/// Servers refuse leaders of lower terms: former members that come back after all reach none.
const TERMS_AHEAD: u64 = 1_000;

/// A member's log as that of the only one.
#[derive(Debug)]
pub struct Alone {
    pub base: Base,
    pub state: Box<CoordinatorState>,
    /// The others that had votes: entries that only they have are lost.
    pub lost: Vec<MemberId>,
}

/// Takes all entries for agreed that the log has: some of them may have been. `fleet`: new, so that no former member is heard.
pub fn alone(disk: &MemberDisk, fleet: FleetId) -> Result<Alone, String> {
    let own = disk.base.member;
    let contents = disk
        .state
        .as_ref()
        .ok_or("its log is empty: it has never been taken in")?;
    let mut state = read_state(contents)?;
    let mut members = disk.base.members.clone();
    let mut replay = Replay::default();
    for entry in &disk.entries {
        match &entry.content {
            Content::Begin => {}
            Content::Members(changed) => members = changed.clone(),
            Content::Payload(payload) => {
                let batch = decode_batch(payload)?;
                let applied = replay.apply(&mut state, &batch);
                applied.map_err(|difference| difference.to_string())?;
            }
        }
    }
    let lost = members.iter().filter(|(id, member)| *id != own && member.votes);
    let lost = lost.map(|(id, _)| id).collect();
    let address = members
        .get(own)
        .map_or(String::new(), |member| member.address.clone());
    let last = disk.last();
    let term = Term(disk.vote.term.max(last.term).0 + TERMS_AHEAD);
    let base = Base {
        member: own,
        fleet: Some(fleet),
        vote: Vote { term, given_to: None },
        point: Point {
            term,
            position: last.position,
        },
        members: Members::first(own, address),
    };
    Ok(Alone { base, state, lost })
}
