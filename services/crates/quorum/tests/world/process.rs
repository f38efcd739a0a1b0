//! A member's process, and the state that it applies the agreed log to.

use std::sync::Arc;

use quorate_quorum::{
    Content, Entry, Event, MemberId, Members, Point, Position, Replica, RoleView, Settings, Snapshot,
};

use super::disk::{Done, SimDisk};
use super::random::Random;

const TICK_MS: u64 = 20;

pub struct Process {
    id: MemberId,
    settings: Settings,
    pub disk: SimDisk,
    pub replica: Option<Replica>,
    pub role: Option<RoleView>,
    /// Entries applied, and a digest of them: the state.
    pub applied: u64,
    pub digest: u64,
    pub restores: usize,
    /// Its disk is gone, and with it the member.
    pub is_wiped: bool,
    pub frozen_until_ms: u64,
    next_tick_ms: u64,
    wants_snapshot: bool,
    late: Vec<Event>,
}

impl Process {
    pub fn new(id: MemberId, first: Members, settings: Settings) -> Self {
        Self {
            id,
            settings,
            disk: SimDisk::new(first),
            replica: None,
            role: None,
            applied: 0,
            digest: 0,
            restores: 0,
            is_wiped: false,
            frozen_until_ms: 0,
            next_tick_ms: 0,
            wants_snapshot: false,
            late: Vec::new(),
        }
    }

    pub fn start(&mut self, now_ms: u64) {
        let disk = self.disk.read();
        (self.applied, self.digest) = (0, 0);
        if let Some(snapshot) = self.disk.snapshot() {
            self.take_state(&snapshot);
        }
        let settings = Settings {
            seed: self.settings.seed ^ now_ms,
            ..self.settings
        };
        self.replica = Some(Replica::new(self.id, disk, settings, now_ms));
        self.next_tick_ms = now_ms + TICK_MS;
    }

    pub fn crash(&mut self, random: &mut Random) {
        self.replica = None;
        self.role = None;
        self.wants_snapshot = false;
        self.late.clear();
        self.disk.crash(random);
    }

    /// Events that are due: writes that ended, the tick.
    pub fn due(&mut self, now_ms: u64) -> Vec<Event> {
        if self.replica.is_none() {
            return Vec::new();
        }
        let mut events: Vec<Event> = self
            .disk
            .due(now_ms)
            .into_iter()
            .map(|done| match done {
                Done::Write(id) => Event::Written { id },
                Done::Snapshot(through) => Event::Compacted { through },
            })
            .collect();
        if now_ms < self.frozen_until_ms {
            self.late.append(&mut events);
            return events;
        }
        let mut all = std::mem::take(&mut self.late);
        all.append(&mut events);
        if std::mem::take(&mut self.wants_snapshot) {
            let snapshot = self.disk.snapshot().expect("a compacted log has one");
            all.push(Event::SnapshotLoaded { snapshot });
        }
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            all.push(Event::Tick);
        }
        all
    }

    /// Another member's connection has ended, it seems.
    pub fn sees_closed(&mut self, member: MemberId) {
        self.late.push(Event::Closed { member });
    }

    pub fn load_snapshot(&mut self) {
        self.wants_snapshot = true;
    }

    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.restores += 1;
        self.take_state(snapshot);
    }

    fn take_state(&mut self, snapshot: &Snapshot) {
        self.applied = snapshot.base.position.0;
        let digest = snapshot.contents[..8].try_into().expect("eight bytes");
        self.digest = u64::from_le_bytes(digest);
    }

    /// Begins a snapshot of the state.
    pub fn compact(&mut self, now_ms: u64, random: &mut Random) -> Option<Position> {
        let replica = self.replica.as_ref()?;
        let position = Position(self.applied);
        let known = self
            .disk
            .snapshot()
            .map_or(0, |snapshot| snapshot.base.position.0);
        if self.applied <= known {
            return None;
        }
        // Longer than one piece, now and then.
        let mut contents = self.digest.to_le_bytes().to_vec();
        contents.resize(8 + random.below(3) as usize * 200_000, 7);
        let base: Point = replica.point_at(position);
        self.disk.begin_snapshot(
            Arc::new(Snapshot {
                base,
                members: replica.members_at(position).clone(),
                contents: contents.into(),
            }),
            now_ms,
            random,
        );
        Some(position)
    }
}

/// The state after an entry: all entries before count.
pub fn digested(before: u64, entry: &Entry) -> u64 {
    let mut digest = before ^ entry.term.0.wrapping_mul(31) ^ entry.position.0;
    let bytes: &[u8] = match &entry.content {
        Content::Payload(payload) => payload,
        _ => &[],
    };
    for byte in bytes {
        digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    digest.rotate_left(9)
}

pub fn digest(entries: &[Entry]) -> u64 {
    entries.iter().fold(0, digested)
}
