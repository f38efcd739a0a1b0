//! The members that agree on the log.

use std::collections::BTreeMap;

use crate::ids::MemberId;
use crate::limits::{MEMBERS_MAX, VOTERS_MAX};
use crate::refused::Refused;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The others reach it there.
    pub address: String,
    /// A member without a vote is a learner: it gets all entries, and counts for nothing.
    pub votes: bool,
}

/// All members. Two successive versions differ by one voter at most, so their majorities overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members(BTreeMap<MemberId, Member>);

/// A change by one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    AddLearner {
        id: MemberId,
        address: String,
    },
    /// A learner that has caught up gets a vote.
    Promote(MemberId),
    Remove(MemberId),
    Move {
        id: MemberId,
        address: String,
    },
}

impl Members {
    /// The first one decides alone, until it takes others in.
    pub fn first(id: MemberId, address: String) -> Self {
        let votes = true;
        Self(BTreeMap::from([(id, Member { address, votes })]))
    }

    pub fn from_parts(members: impl IntoIterator<Item = (MemberId, Member)>) -> Self {
        Self(members.into_iter().collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        self.0.iter().map(|(id, member)| (*id, member))
    }

    pub fn ids(&self) -> impl Iterator<Item = MemberId> {
        self.0.keys().copied()
    }

    pub fn get(&self, id: MemberId) -> Option<&Member> {
        self.0.get(&id)
    }

    pub fn is_voter(&self, id: MemberId) -> bool {
        self.get(id).is_some_and(|member| member.votes)
    }

    pub fn voters(&self) -> impl Iterator<Item = MemberId> {
        self.iter().filter(|(_, member)| member.votes).map(|(id, _)| id)
    }

    /// Whether more than half of the voters are such.
    pub fn has_majority(&self, mut is: impl FnMut(MemberId) -> bool) -> bool {
        let voters = self.voters().count();
        2 * self.voters().filter(|id| is(*id)).count() > voters
    }

    /// The members after the change.
    pub fn changed(&self, change: &Change) -> Result<Self, Refused> {
        let mut members = self.clone();
        match change {
            Change::AddLearner { id, address } => {
                if members.0.len() >= MEMBERS_MAX {
                    return Err(Refused::TooManyMembers);
                }
                let votes = false;
                let address = address.clone();
                let known = members.0.insert(*id, Member { address, votes });
                known.map_or(Ok(()), |_| Err(Refused::KnownMember))?;
            }
            Change::Promote(id) => {
                if members.voters().count() >= VOTERS_MAX {
                    return Err(Refused::TooManyMembers);
                }
                let member = members.0.get_mut(id).ok_or(Refused::UnknownMember)?;
                if std::mem::replace(&mut member.votes, true) {
                    return Err(Refused::KnownMember);
                }
            }
            Change::Remove(id) => {
                members.0.remove(id).ok_or(Refused::UnknownMember)?;
                if members.voters().next().is_none() {
                    return Err(Refused::LastVoter);
                }
            }
            Change::Move { id, address } => {
                let member = members.0.get_mut(id).ok_or(Refused::UnknownMember)?;
                member.address.clone_from(address);
            }
        }
        Ok(members)
    }

    pub fn bytes(&self) -> usize {
        self.0.values().map(|member| 16 + member.address.len()).sum()
    }
}
