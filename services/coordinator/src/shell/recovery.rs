//! Recovery: the member as its log has it. A folder without a log begins a fleet, and one of before the quorum becomes its
//! first member.

use std::path::Path;

use quorate_placement::Profile;
use quorate_quorum::{Disk, MemberId, Members, Point, Position, Term, Vote};
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
    match contents {
        Contents::Member(disk) => of_member(data_dir, log, &disk),
        Contents::Nothing if joins => begin_empty(&mut log).map(|begun| begun.with(log)),
        Contents::Nothing => begin_fleet(&mut log, begin()).map(|begun| begun.with(log)),
        Contents::Former(former) => {
            let state = replayed(data_dir, former, begin)?;
            begin_fleet(&mut log, state).map(|begun| begun.with(log))
        }
    }
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

/// A new member.
struct Begun {
    base: Base,
    state: Option<Box<CoordinatorState>>,
}

impl Begun {
    fn with(self, log: DurableLog) -> Recovery {
        let Self { base, state } = self;
        Recovery {
            log,
            member: base.member,
            fleet: base.fleet,
            disk: Disk {
                vote: base.vote,
                base: base.point,
                members: base.members,
                entries: Vec::new(),
            },
            state,
        }
    }
}

/// The first member of a fleet, which decides alone until it takes others in.
fn begin_fleet(log: &mut DurableLog, state: CoordinatorState) -> Result<Begun, Failure> {
    let member = MemberId(rand::random());
    let base = Base {
        member,
        fleet: Some(FleetId(rand::random())),
        vote: Vote {
            term: Term(1),
            given_to: None,
        },
        // A state counts as one agreed entry, so that nobody takes an empty disk for it.
        point: Point {
            term: Term(1),
            position: Position(1),
        },
        members: Members::first(member, String::new()),
    };
    log.begin(base.clone(), Some(&state))?;
    let (servers, groups) = (state.servers.len(), state.groups.len());
    info!(%member, servers, groups, "the first coordinator of its fleet");
    let state = Some(Box::new(state));
    Ok(Begun { base, state })
}

/// A member that waits to be taken in. Its number stays from here on.
fn begin_empty(log: &mut DurableLog) -> Result<Begun, Failure> {
    let member = MemberId(rand::random());
    let base = Base {
        member,
        fleet: None,
        vote: Vote::default(),
        point: Point::default(),
        members: Members::default(),
    };
    log.begin(base.clone(), None)?;
    info!(%member, "an empty disk, which is to be taken into a fleet");
    Ok(Begun { base, state: None })
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
