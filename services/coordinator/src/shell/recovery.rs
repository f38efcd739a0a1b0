//! Recovery: the member as its log has it. A folder without a log begins a fleet, and one of before the quorum becomes its
//! first member.

use std::path::Path;

use quorate_placement::Profile;
use quorate_quorum::{Disk, MemberId};
use quorate_types::FleetId;
use tracing::{info, warn};

use crate::disk::{DurableLog, Opened};
use crate::exit::Failure;
use quorate_coordinator_core::coordinator::read_state;
use quorate_coordinator_core::log::{Base, Contents, Former, MemberDisk};
use quorate_coordinator_core::state::CoordinatorState;

/// A log that was read, and the member that it belongs to.
pub struct Recovery {
    pub log: DurableLog,
    pub member: MemberId,
    /// None: nobody has taken it in.
    pub fleet: Option<FleetId>,
    pub disk: Disk,
    /// The state of its snapshot.
    pub state: Option<Box<CoordinatorState>>,
}

impl Recovery {
    /// Whether the fleet begins here: it has no keys yet.
    pub fn begins_fleet(&self) -> bool {
        let is_alone = self.disk.members.ids().eq([self.member]);
        let has_keys = self.state.as_ref().is_some_and(|state| state.secrets.is_some());
        is_alone && !has_keys && self.disk.entries.is_empty()
    }
}

/// Reads the log. `profile`: of a fleet that begins. `joins`: an empty folder is to be taken into a fleet.
pub fn recover(data_dir: &Path, profile: &Profile, joins: bool) -> Result<Recovery, Failure> {
    let (mut log, opened) = DurableLog::open(data_dir)?;
    let Opened { contents, cut_bytes } = opened;
    if cut_bytes > 0 {
        warn!(
            bytes = cut_bytes,
            "truncated a torn record at the end of the log: nothing had followed from it"
        );
    }
    let begin = || CoordinatorState::new(profile.clone());
    let of_new_fleet = || CoordinatorState::of_new_fleet(profile.clone());
    let member = MemberId(rand::random());
    let first = || Base::first(member, FleetId(rand::random()), String::new());
    let (base, state) = match contents {
        Contents::Member(disk) => return of_member(data_dir, log, &disk),
        Contents::Nothing if joins => (Base::empty(member), None),
        Contents::Nothing => (first(), Some(of_new_fleet())),
        Contents::Former(former) => (first(), Some(replayed(data_dir, former, begin)?)),
    };
    log.begin(base.clone(), state.as_ref())?;
    let groups = state.as_ref().map_or(0, |state| state.groups.len());
    let is_first = state.is_some();
    info!(%member, is_first, groups, "a new member; the first one decides alone until it takes others in");
    Ok(Recovery {
        log,
        member,
        fleet: base.fleet,
        disk: Disk {
            vote: base.vote,
            base: base.point,
            members: base.members,
            entries: Vec::new(),
        },
        state: state.map(Box::new),
    })
}

fn of_member(data_dir: &Path, log: DurableLog, disk: &MemberDisk) -> Result<Recovery, Failure> {
    let unreadable = |problem| Failure::disk(format!("{}: {problem}", data_dir.display()));
    let state = disk
        .state
        .as_ref()
        .map(|contents| read_state(contents))
        .transpose();
    let state = state.map_err(unreadable)?;
    let servers = state.as_ref().map_or(0, |state| state.servers.len());
    let groups = state.as_ref().map_or(0, |state| state.groups.len());
    let (member, entries) = (disk.base.member, disk.entries.len());
    info!(%member, entries, servers, groups, "recovered");
    Ok(Recovery {
        log,
        member,
        fleet: disk.base.fleet,
        disk: disk.to_quorum(),
        state,
    })
}

fn replayed(
    data_dir: &Path,
    former: Former,
    begin: impl FnOnce() -> CoordinatorState,
) -> Result<CoordinatorState, Failure> {
    let state = former.replay(begin);
    let state = state.map_err(|difference| Failure::decided_otherwise(data_dir, &difference))?;
    state.validate().map_err(|problem| {
        Failure::disk(format!(
            "the state in {} contradicts itself: {problem}",
            data_dir.display()
        ))
    })?;
    Ok(state)
}
