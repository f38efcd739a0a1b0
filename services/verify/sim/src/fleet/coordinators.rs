//! The fleet's coordinators, and what people want of them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_coordinator_core::log::Base;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_quorum::{Member as Listed, MemberId, Members, Position};
use quorate_types::{FleetId, GroupId, Micros, ServerId, Sla};

use super::member::policy;
use super::{Member, MemberLog};
use crate::plan::Plan;

/// Addresses for newcomers that servers are given from the beginning. Nobody is there until one comes.
pub const SPARES: usize = 3;

#[derive(Debug)]
pub struct Coordinators {
    /// By place. Former members stay, and so do their places.
    pub members: Vec<Member>,
    /// Join tokens to be issued.
    pub invitations: Vec<String>,
    pub to_admit: Vec<(GroupId, Sla)>,
    /// Servers that are to be drained.
    pub drains: BTreeSet<ServerId>,
    pub calls: u64,
    pub credentials: u64,
    pub restores: Restores,
    pub replacement: Option<Replacement>,
    /// Leaders by term.
    pub led: BTreeMap<u64, usize>,
    /// The agreed state of a leader that was killed, and its place in the log: nobody may know it for a while.
    kept: Option<(Position, Box<CoordinatorState>)>,
    /// The newest state that [`Self::is_newest`] saw.
    looked_at: Position,
}

/// A coordinator that comes in the place of another, until the other one is removed.
#[derive(Debug, Clone, Copy)]
pub struct Replacement {
    pub old: usize,
    pub new: usize,
}

/// Copies of the log of one that is alone, and what an operator does with them.
#[derive(Debug, Default)]
pub struct Restores {
    pub copies: Vec<MemberLog>,
    /// The newest log, while an older copy is in its place.
    pub newest: Option<MemberLog>,
    /// The state that it replays to, until the coordinator has started on it, or has gone on with the copy.
    pub newest_state: Option<Box<CoordinatorState>>,
    pub lacks_epochs: bool,
    /// Servers that have registered since the start.
    pub heard: BTreeSet<usize>,
    /// A copy was gone on with.
    pub went_on: bool,
    /// The time at which the roll call was first seen to wait for an operator.
    pub stuck_since: Option<Micros>,
}

impl Coordinators {
    /// All of them have votes from the beginning.
    pub fn new(plan: &Plan, mut drift_permille: impl FnMut() -> i64) -> Self {
        let mut state = CoordinatorState::new(Profile::default_profile());
        state.policy = policy();
        let ids = (1..=plan.coordinators as u64).map(MemberId);
        let listed = |id: MemberId| Listed {
            address: format!("c{id}"),
            votes: true,
        };
        let all = Members::from_parts(ids.clone().map(|id| (id, listed(id))));
        let members = ids.map(|id| {
            let mut base = Base::first(id, FleetId(1), String::new());
            base.members = all.clone();
            let log = MemberLog::new(&base, Some(&state));
            Member::new(plan, id, log, drift_permille(), 0)
        });
        let mut members: Vec<Member> = members.collect();
        if let [one] = &mut members[..] {
            one.lead_at_once(0);
        }
        Self {
            members,
            invitations: Vec::new(),
            to_admit: Vec::new(),
            drains: BTreeSet::new(),
            calls: 0,
            credentials: 0,
            restores: Restores::default(),
            replacement: None,
            led: BTreeMap::new(),
            kept: None,
            looked_at: Position(0),
        }
    }

    /// Its process is about to end.
    pub fn keep_state_of(&mut self, c: usize) {
        let decisions = &self.members[c].decisions;
        let position = decisions.agreed_position();
        let is_newer = self.kept.as_ref().is_none_or(|(kept, _)| *kept < position);
        if let Some(state) = decisions.agreed_state().filter(|_| is_newer) {
            self.kept = Some((position, Box::new(state.clone())));
        }
    }

    pub fn is_alone(&self) -> bool {
        self.members.len() == 1
    }

    /// The one that leads in the greatest term.
    pub fn leader(&self) -> Option<usize> {
        let leads = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.leads());
        let newest = leads.max_by_key(|(_, member)| member.decisions.term());
        newest.map(|(c, _)| c)
    }

    /// Something decides.
    pub fn is_up(&self) -> bool {
        self.leader().is_some()
    }

    pub fn place_of(&self, id: MemberId) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    /// The state by the one that leads, or else by the one that has most of what is agreed.
    pub fn state(&self) -> &CoordinatorState {
        self.state_and_position().1
    }

    /// The state, and the position up to which it is agreed. A majority that is away may have agreed on more.
    fn state_and_position(&self) -> (Position, &CoordinatorState) {
        if let Some(c) = self.leader() {
            let decisions = &self.members[c].decisions;
            return (
                decisions.agreed_position(),
                decisions.engine().expect("it leads").state(),
            );
        }
        let agreed = |member: &&Member| member.decisions.agreed_state().is_some();
        let most = self.members.iter().filter(agreed);
        let most = most.max_by_key(|member| member.decisions.agreed_position());
        let kept = self.kept.as_ref();
        let behind = |(position, _): &&(Position, _)| {
            most.is_none_or(|most| most.decisions.agreed_position() < *position)
        };
        if let Some((position, state)) = kept.filter(behind) {
            return (*position, state);
        }
        let decisions = most.map(|member| &member.decisions);
        if let Some(decisions) = decisions {
            let state = decisions.agreed_state().expect("it was looked for");
            return (decisions.agreed_position(), state);
        }
        // Alone, and killed with a batch open.
        let mut all = self.members.iter().map(|member| &member.decisions);
        let one = all.find_map(|decisions| Some((decisions.agreed_position(), decisions.engine()?.state())));
        one.expect("one has a state")
    }

    /// Whether the state is no older than any that was looked at in this way before.
    pub fn is_newest(&mut self) -> bool {
        let (position, _) = self.state_and_position();
        let is_newest = self.is_alone() || position >= self.looked_at;
        self.looked_at = self.looked_at.max(position);
        is_newest
    }

    /// The state of the newest log. While an older copy is in its place, the coordinator issues nothing, and what it
    /// takes for the state is not what servers, clients and operators go by.
    pub fn known(&self) -> &CoordinatorState {
        self.restores.newest_state.as_deref().unwrap_or(self.state())
    }
}
