//! One replica server: its identity, its process, its disk and its groups.

use std::collections::{BTreeMap, BTreeSet};

use quorate_group::{Outputs, Pool, Quarantines, ServerClock, Turn};
use quorate_journal::record::Lsn;
use quorate_types::control::{DrainState, HeldGroup, SlowReport, ToCoordinator};
use quorate_types::coordinators::KnownCoordinators;
use quorate_types::limits::INCARNATIONS_KEPT_MAX;
use quorate_types::reports::ReportBook;
use quorate_types::{Epoch, GroupId, Micros, Place, ServerId};

use super::{Control, Delivered, Hang, Hosted, Scheduled};
use crate::disk::{Disk, Image};

/// The time on the wall when a run begins.
pub const WALL_BEGINS_US: u64 = 1_700_000_000_000_000;

#[derive(Debug)]
pub struct Server {
    /// On its disk, with the credential; `None`: not joined yet.
    pub id: Option<ServerId>,
    pub credential: Option<String>,
    /// How often this place was taken by another machine.
    pub machine: u32,
    /// Join tokens that were used up here.
    pub tokens: u32,
    pub alive: bool,
    pub incarnation: u64,
    /// The last place in the coordinator's log that the process was told, and the one on its disk.
    pub place: Option<Place>,
    pub kept_place: Option<Place>,
    /// On its disk: starts of the process since one that the coordinator confirmed, that one first.
    pub starts: Vec<String>,
    /// Starts before this process.
    pub previous_starts: Vec<String>,
    pub paused_until: Micros,
    /// Events that came while it was paused.
    pub deferred: Vec<Scheduled>,
    pub hang: Hang,
    pub disk: Disk,
    pub disk_fault: bool,
    /// Groups of which its disk lost what it had called durable, each with its epoch then, until it has all that is committed
    /// again. Acknowledgements of that epoch may still be under way.
    pub lied: BTreeMap<GroupId, Epoch>,
    /// Until the process is killed: nobody makes room.
    pub disk_is_full_for_good: bool,
    /// Records were damaged since this process started, and not all are repaired.
    pub has_damage: bool,
    /// Copiers of the journal that wait for a damaged record: of which group, and which record.
    pub copiers: BTreeMap<u64, (GroupId, Lsn)>,
    pub copiers_started: u64,
    /// Damaged records, none of a batch, for which groups have stated again where their logs begin and end.
    pub restated: BTreeSet<Lsn>,
    /// Its journal failed; it is restarted then.
    pub fails_until: Option<Micros>,
    pub sync_factor: u64,
    pub groups: BTreeMap<GroupId, Hosted>,
    /// Groups whose replica an assertion stopped.
    pub quarantined: Quarantines,
    /// Groups that were here and are lost.
    pub lost: BTreeSet<GroupId>,
    /// The turn of all its groups, as one shard has it.
    pub turn: Turn,
    pub outputs: Outputs,
    /// The client's message of the step that is running.
    pub delivered: Option<Delivered>,
    pub hostings: u64,
    pub attachments: u64,
    /// On its clock: when the coordinator last answered this process; and how long a lease is. 0 before the first answer.
    pub answered_us: Micros,
    pub lease_us: Micros,
    /// Found on disk at start.
    pub held: Vec<HeldGroup>,
    pub control: Option<Control>,
    /// Where coordinators are, and which of them to dial.
    pub known: KnownCoordinators,
    /// Its groups as it last saw them, and what of that the coordinator has.
    pub reports: ReportBook,
    /// The state of its drain, by the coordinator's last message.
    pub drain: DrainState,
    /// Peers whose link broke, or could not be opened, and did not come back.
    pub unreachable: BTreeSet<ServerId>,
    /// The servers that its groups wait for, as of its last tick.
    pub slow: Vec<SlowReport>,
    /// For the coordinator, until there is a connection.
    pub unsent: Vec<ToCoordinator>,
    /// Grows whenever what is held of a group is lost: (server, group) with the same number has kept what it had.
    pub lineages: BTreeMap<GroupId, u64>,
    pub drift_permille: i64,
    pub wall_offset_us: i64,
    /// The wall clock beside the coordinator's, since the process began.
    pub clock: ServerClock,
}

/// The turn of a process that has just started.
pub fn turn(pool_bytes: u64) -> Turn {
    let mut turn = Turn::new();
    turn.pool = Pool::new(pool_bytes);
    turn
}

impl Server {
    pub fn new(drift_permille: i64, segment_bytes: usize, pool_bytes: u64, known: KnownCoordinators) -> Self {
        Self {
            id: None,
            credential: None,
            machine: 0,
            tokens: 0,
            alive: true,
            incarnation: 1,
            place: None,
            kept_place: None,
            starts: Vec::new(),
            previous_starts: Vec::new(),
            paused_until: 0,
            deferred: Vec::new(),
            hang: Hang::default(),
            disk: Disk::new(segment_bytes),
            disk_fault: false,
            lied: BTreeMap::new(),
            disk_is_full_for_good: false,
            has_damage: false,
            copiers: BTreeMap::new(),
            copiers_started: 0,
            restated: BTreeSet::new(),
            fails_until: None,
            sync_factor: 1,
            groups: BTreeMap::new(),
            quarantined: Quarantines::default(),
            lost: BTreeSet::new(),
            turn: turn(pool_bytes),
            outputs: Outputs::default(),
            delivered: None,
            hostings: 0,
            attachments: 0,
            answered_us: 0,
            lease_us: 0,
            held: Vec::new(),
            control: None,
            known,
            reports: ReportBook::default(),
            drain: DrainState::None,
            unreachable: BTreeSet::new(),
            slow: Vec::new(),
            unsent: Vec::new(),
            lineages: BTreeMap::new(),
            drift_permille,
            wall_offset_us: 0,
            clock: ServerClock::default(),
        }
    }

    /// Its own clock, which never goes back.
    pub fn clock_us(&self, now: Micros) -> Micros {
        (now as i64 + now as i64 * self.drift_permille / 1_000) as Micros
    }

    /// The earliest time at which its clock says this.
    pub fn when(&self, clock_us: Micros) -> Micros {
        (clock_us * 1_000).div_ceil((1_000 + self.drift_permille) as u64)
    }

    pub fn wall_us(&self, now: Micros) -> u64 {
        ((WALL_BEGINS_US + now) as i64 + self.wall_offset_us) as u64
    }

    /// The name of its process. A real server draws it at random.
    pub fn incarnation_name(&self, s: usize) -> String {
        format!("{s}-{}-{}", self.machine, self.incarnation)
    }

    /// Notes the start on disk, before the coordinator learns of it.
    pub fn note_start(&mut self, s: usize) {
        self.previous_starts.clone_from(&self.starts);
        if self.id.is_none() {
            return;
        }
        if self.starts.len() >= INCARNATIONS_KEPT_MAX {
            // The first is the one that the coordinator knows for sure.
            self.starts.remove(1);
        }
        let incarnation = self.incarnation_name(s);
        self.starts.push(incarnation);
    }

    /// Sets the turn for a step at this time.
    pub fn set_turn(&mut self, now: Micros) {
        self.turn.now_us = self.clock_us(now);
        self.turn.wall_us = self.wall_us(now);
        self.turn.vouch = self.clock.vouch();
        self.turn.journal_waiting_bytes = self.disk.waiting_bytes();
    }

    /// A number for each time that a group comes to the server, whatever its process.
    pub fn new_hosting(&mut self) -> u64 {
        self.hostings += 1;
        self.hostings
    }

    /// No answer for the length of a lease, as `services/replica/src/shared/coordinator.rs` has it.
    pub fn is_coordinator_silent(&self, now: Micros) -> bool {
        self.clock_us(now).saturating_sub(self.answered_us) >= self.lease_us
    }

    pub fn group_ids(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    pub fn lineage(&self, group_id: GroupId) -> u64 {
        self.lineages.get(&group_id).copied().unwrap_or(0)
    }

    /// Counts the server's copy of the group as lost from here on.
    pub fn forget(&mut self, group_id: GroupId) {
        *self.lineages.entry(group_id).or_default() += 1;
    }

    pub fn image(&self, group_id: GroupId) -> Option<&Image> {
        self.disk.images.get(&group_id)
    }
}
