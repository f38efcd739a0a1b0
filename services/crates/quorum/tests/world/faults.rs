//! Faults of a world: the network's, the processes', the disks'.

use std::collections::BTreeMap;

use quorate_quorum::{MemberId, RoleView};

use super::World;
use super::random::Random;

pub struct Faults {
    loss_percent: u64,
    repeat_percent: u64,
    delay_ms_max: u64,
    /// Links, from and to, that lose everything until a time.
    cut: BTreeMap<(MemberId, MemberId), u64>,
    /// Mean time between two of each kind.
    crash_every: u64,
    power_every: u64,
    cut_every: u64,
    freeze_every: u64,
    slow_every: u64,
    wipe_every: u64,
    restarts: BTreeMap<MemberId, u64>,
}

/// A leader of short terms lasts so many steps in the mean.
const LED_STEPS: u64 = 60;

/// The kind of trouble that a world has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A bit of everything.
    Any,
    /// Many elections at once: members fall and return while votes are on their way.
    Elections,
    /// Short terms, of which each leaves a few entries with a few members.
    Terms,
    /// Logs that are compacted all the time, and answers that are lost.
    Snapshots,
}

impl Faults {
    pub fn new(profile: Profile, random: &mut Random) -> Self {
        let mut some = |values: [u64; 3]| values[random.below(3) as usize];
        let mut faults = Self {
            loss_percent: some([0, 2, 20]),
            repeat_percent: some([0, 2, 10]),
            delay_ms_max: some([3, 20, 120]),
            cut: BTreeMap::new(),
            crash_every: some([100, 300, 1_000]),
            power_every: some([300, 1_000, 4_000]),
            cut_every: some([150, 500, 2_000]),
            freeze_every: some([200, 600, 3_000]),
            slow_every: some([200, 600, 3_000]),
            wipe_every: some([400, 1_000, 4_000]),
            restarts: BTreeMap::new(),
        };
        match profile {
            Profile::Any => {}
            Profile::Elections => {
                (faults.power_every, faults.delay_ms_max, faults.loss_percent) = (40, 150, 0);
            }
            Profile::Terms => {
                (faults.crash_every, faults.power_every) = (1_000, 2_000);
                (faults.delay_ms_max, faults.loss_percent) = (100, 10);
            }
            Profile::Snapshots => {
                (faults.crash_every, faults.power_every, faults.delay_ms_max) = (60, 200, 80);
                faults.loss_percent = 10;
            }
        }
        faults
    }

    pub fn end(&mut self) {
        (self.loss_percent, self.repeat_percent, self.delay_ms_max) = (0, 0, 3);
        self.cut.clear();
        self.restarts.clear();
    }

    /// The times at which a message arrives: none, one, or two.
    pub fn deliveries(&mut self, random: &mut Random, now_ms: u64, from: MemberId, to: MemberId) -> Vec<u64> {
        let is_cut = self
            .cut
            .get(&(from, to))
            .is_some_and(|until_ms| now_ms < *until_ms);
        if is_cut || random.below(100) < self.loss_percent {
            return Vec::new();
        }
        let copies = if random.below(100) < self.repeat_percent {
            2
        } else {
            1
        };
        (0..copies)
            .map(|_| now_ms + 1 + random.below(self.delay_ms_max))
            .collect()
    }
}

impl World {
    /// Now and then something fails, or returns.
    pub(super) fn fault(&mut self) {
        let ids: Vec<MemberId> = self.processes.keys().copied().collect();
        let id = ids[self.random.below(ids.len() as u64) as usize];
        let now_ms = self.now_ms;
        if self.random.one_in(self.faults.crash_every) {
            self.crash(id, 1_500);
        }
        if self.random.one_in(self.faults.power_every) {
            // Most of them at once, and back soon.
            for other in &ids {
                if !self.random.one_in(4) {
                    self.crash(*other, 200);
                }
            }
        }
        if self.profile == Profile::Terms {
            self.end_terms(&ids);
        }
        if self.random.one_in(self.faults.freeze_every) {
            let frozen_ms = 100 + self.random.below(1_500);
            self.processes.get_mut(&id).expect("it is there").frozen_until_ms = now_ms + frozen_ms;
        }
        if self.random.one_in(self.faults.slow_every) {
            let slow_ms = 200 + self.random.below(1_500);
            self.processes
                .get_mut(&id)
                .expect("it is there")
                .disk
                .slow_down(now_ms + slow_ms);
        }
        if self.random.one_in(self.faults.cut_every) {
            self.close_connections(id);
            self.cut_links(&ids, id);
        }
        if self.random.one_in(self.faults.wipe_every) {
            self.wipe(id);
        }
        let due: Vec<MemberId> = self
            .faults
            .restarts
            .iter()
            .filter(|(_, at)| **at <= now_ms)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.faults.restarts.remove(&id);
            let process = self.processes.get_mut(&id).expect("it is there");
            if !process.is_wiped && process.replica.is_none() {
                process.start(now_ms);
            }
        }
    }

    fn crash(&mut self, id: MemberId, away_ms_max: u64) {
        self.processes
            .get_mut(&id)
            .expect("it is there")
            .crash(&mut self.random);
        let back_ms = self.now_ms + 20 + self.random.below(away_ms_max);
        self.faults.restarts.insert(id, back_ms);
        self.close_connections(id);
    }

    /// Leaders crash soon after they have begun, and return soon.
    fn end_terms(&mut self, ids: &[MemberId]) {
        for id in ids {
            let leads = matches!(self.processes[id].role, Some(RoleView::Leader { .. }));
            if leads && self.random.one_in(LED_STEPS) {
                self.crash(*id, 400);
            }
        }
    }

    /// Some of the others see the end of its connections. It may live.
    fn close_connections(&mut self, member: MemberId) {
        for (id, process) in &mut self.processes {
            if *id != member && self.random.one_in(2) {
                process.sees_closed(member);
            }
        }
    }

    /// One is cut off, or cannot send, or two halves are apart.
    fn cut_links(&mut self, ids: &[MemberId], one: MemberId) {
        let until_ms = self.now_ms + 100 + self.random.below(2_500);
        let kind = self.random.below(3);
        let halves: Vec<bool> = ids.iter().map(|_| self.random.one_in(2)).collect();
        for (from_number, from) in ids.iter().enumerate() {
            for (to_number, to) in ids.iter().enumerate() {
                let is_cut = match kind {
                    0 => *from == one || *to == one,
                    1 => *from == one,
                    _ => halves[from_number] != halves[to_number],
                };
                if is_cut && from != to {
                    self.faults.cut.insert((*from, *to), until_ms);
                }
            }
        }
    }

    /// A disk is lost. Never so that the members cannot decide any more: that is an operator's affair.
    fn wipe(&mut self, id: MemberId) {
        let Some(agreed) = self.agreed_members() else {
            return;
        };
        let now_ms = self.now_ms;
        let views = self
            .processes
            .values()
            .filter_map(|process| process.replica.as_ref())
            .map(|replica| replica.view(now_ms));
        let is_settled = views
            .filter(|view| agreed.is_voter(view.own))
            .all(|view| view.members == agreed);
        let is_away = |id: MemberId| self.processes[&id].replica.is_none();
        let others_away = agreed.ids().filter(|other| *other != id).any(is_away);
        let is_enough = agreed.voters().count() >= 3 || !agreed.is_voter(id);
        if is_settled && !others_away && is_enough && self.processes.len() < 12 {
            let process = self.processes.get_mut(&id).expect("it is there");
            process.crash(&mut self.random);
            process.is_wiped = true;
        }
    }
}
