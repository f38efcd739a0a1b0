//! A world of coordinators from one seed: members with disks, a network that delays, drops, repeats and reorders, and
//! callers. It holds no rule of the protocol: it looks at what the members say was agreed.

mod calls;
mod disk;
mod faults;
mod process;
mod random;

use std::collections::BTreeMap;

use quorate_quorum::{
    Command, Content, Entry, Event, Member, MemberId, Members, Message, Position, Replica, RoleView,
    Settings, Term,
};

use calls::Calls;
pub use faults::Profile;
use process::Process;
pub use random::Random;

const HEARTBEAT_MS: u64 = 50;
const ELECTION_MS: u64 = 300;
const HEALED_WITHIN_MS: u64 = 20_000;

pub struct World {
    pub now_ms: u64,
    profile: Profile,
    random: Random,
    processes: BTreeMap<MemberId, Process>,
    network: BTreeMap<(u64, u64), (MemberId, MemberId, Message)>,
    sent: u64,
    faults: faults::Faults,
    /// The agreed entries, by whichever member said so first. Every other member must say the same.
    agreed: Vec<Entry>,
    leaders: BTreeMap<Term, MemberId>,
    calls: Calls,
    /// The members that it began with.
    first: Members,
}

/// The outcome of a seed, so that a world in which nothing happens is seen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub agreed: usize,
    pub reads: usize,
    pub terms: usize,
    pub restores: usize,
    pub members: usize,
}

/// Runs a seed: faults for a time, then none, and everything must go on.
pub fn run(profile: Profile, seed: u64) -> Counts {
    let mut world = World::new(profile, seed);
    let until_ms = 4_000 + world.random.below(8_000);
    while world.now_ms < until_ms {
        world.step(true);
    }
    world.heal();
    world.counts()
}

impl World {
    fn new(profile: Profile, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let voters = match profile {
            Profile::Any => [1, 3, 3, 5],
            Profile::Elections | Profile::Snapshots => [3, 3, 3, 3],
            Profile::Terms => [5, 5, 5, 3],
        };
        let voters = voters[random.below(4) as usize];
        let faults = faults::Faults::new(profile, &mut random);
        let mut world = Self {
            now_ms: 0,
            profile,
            random,
            processes: BTreeMap::new(),
            network: BTreeMap::new(),
            sent: 0,
            faults,
            agreed: Vec::new(),
            leaders: BTreeMap::new(),
            calls: Calls::new(voters),
            first: Members::default(),
        };
        // One takes the others in, or all begin at once.
        let begin = if profile != Profile::Any { voters } else { 1 };
        let ids: Vec<MemberId> = (0..begin).map(|_| world.new_id()).collect();
        let votes = true;
        world.first = Members::from_parts(ids.iter().map(|id| {
            let address = address(*id);
            (*id, Member { address, votes })
        }));
        for id in ids {
            world.add_process(id, world.first.clone());
        }
        world
    }

    /// A member with an empty disk.
    fn new_id(&mut self) -> MemberId {
        MemberId(self.random.next() >> 8)
    }

    fn add_process(&mut self, id: MemberId, members: Members) {
        let one_by_one = matches!(self.profile, Profile::Terms | Profile::Snapshots) || self.random.one_in(2);
        let settings = Settings {
            heartbeat_ms: HEARTBEAT_MS,
            election_ms: ELECTION_MS,
            seed: self.random.next(),
            append_bytes: if one_by_one { 1 } else { 1 << 20 },
            // Few entries, so that members behind need a snapshot.
            kept_bytes: if self.profile == Profile::Snapshots {
                0
            } else {
                2_000
            },
        };
        let mut process = Process::new(id, members, settings);
        process.start(self.now_ms);
        self.processes.insert(id, process);
    }

    fn step(&mut self, has_faults: bool) {
        self.now_ms += 1 + self.random.below(5);
        if has_faults {
            self.fault();
        }
        self.call(has_faults);
        let due: Vec<_> = self
            .network
            .range(..(self.now_ms + 1, 0))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let (from, to, message) = self.network.remove(&key).expect("it is there");
            let frozen_until_ms = self
                .processes
                .get(&to)
                .map_or(0, |process| process.frozen_until_ms);
            if frozen_until_ms > self.now_ms {
                self.network.insert((frozen_until_ms, key.1), (from, to, message));
            } else {
                self.feed(to, Event::Received { from, message });
            }
        }
        let ids: Vec<MemberId> = self.processes.keys().copied().collect();
        for id in ids {
            let now_ms = self.now_ms;
            let process = self.processes.get_mut(&id).expect("it is there");
            for event in process.due(now_ms) {
                self.feed(id, event);
            }
        }
    }

    /// Gives a running member an event, and does what follows.
    fn feed(&mut self, id: MemberId, event: Event) {
        let now_ms = self.now_ms;
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        let Some(replica) = &mut process.replica else {
            return;
        };
        replica.take(now_ms, event);
        for command in replica.take_commands(now_ms) {
            self.carry_out(id, command);
        }
    }

    fn carry_out(&mut self, id: MemberId, command: Command) {
        let process = self.processes.get_mut(&id).expect("it gave the command");
        match command {
            Command::Write(write) => process.disk.begin(write, self.now_ms, &mut self.random),
            Command::Send { to, message } => self.send(id, to, message),
            Command::Commit(entries) => {
                for entry in entries {
                    self.agree(id, entry);
                }
                self.compact_sometimes(id);
            }
            Command::Restore(snapshot) => {
                process.restore(&snapshot);
                let through = snapshot.base.position.0 as usize;
                assert!(through <= self.agreed.len(), "a snapshot of what was not agreed");
                let last = &self.agreed[through - 1];
                assert_eq!(last.position, snapshot.base.position);
                assert_eq!(
                    process::digest(&self.agreed[..through]),
                    process.digest,
                    "a snapshot of another log"
                );
            }
            Command::EntriesLost { .. } => panic!("a sound disk is said to lack entries"),
            Command::LoadSnapshot => process.load_snapshot(),
            Command::Role(RoleView::Leader { term }) => {
                let leader = *self.leaders.entry(term).or_insert(id);
                assert_eq!(leader, id, "{term:?} has two leaders");
                process.role = Some(RoleView::Leader { term });
            }
            Command::Role(role) => process.role = Some(role),
            Command::Placed { .. }
            | Command::ReadAt { .. }
            | Command::Refused { .. }
            | Command::Begun { .. } => {
                self.answered(id, command);
            }
        }
    }

    fn send(&mut self, from: MemberId, to: MemberId, message: Message) {
        for at_ms in self.faults.deliveries(&mut self.random, self.now_ms, from, to) {
            self.sent += 1;
            self.network
                .insert((at_ms, self.sent), (from, to, message.clone()));
        }
    }

    /// A member says that this entry is agreed.
    fn agree(&mut self, id: MemberId, entry: Entry) {
        let process = self.processes.get_mut(&id).expect("it said so");
        process.applied += 1;
        assert_eq!(
            entry.position,
            Position(process.applied),
            "{id}: entries are agreed in order"
        );
        process.digest = process::digested(process.digest, &entry);
        let place = entry.position.0 as usize - 1;
        if place < self.agreed.len() {
            assert_eq!(self.agreed[place], entry, "{id} says otherwise at {place}");
        } else {
            assert_eq!(place, self.agreed.len());
            self.calls.agreed(&entry);
            self.agreed.push(entry);
        }
    }

    fn compact_sometimes(&mut self, id: MemberId) {
        let rarely = if self.profile == Profile::Snapshots { 3 } else { 40 };
        if !self.random.one_in(rarely) {
            return;
        }
        let process = self.processes.get_mut(&id).expect("it runs");
        if let Some(through) = process.compact(self.now_ms, &mut self.random) {
            assert!(through.0 <= self.agreed.len() as u64);
        }
    }

    /// The members as they are agreed on.
    fn agreed_members(&self) -> Option<Members> {
        let named = self.agreed.iter().rev().find_map(|entry| match &entry.content {
            Content::Members(members) => Some(members.clone()),
            _ => None,
        });
        named.or_else(|| Some(self.first.clone()))
    }

    /// Without faults a leader is found, and everything agreed reaches every member.
    fn heal(&mut self) {
        self.faults.end();
        let ids: Vec<MemberId> = self.processes.keys().copied().collect();
        for id in ids {
            let process = self.processes.get_mut(&id).expect("it is there");
            if !process.is_wiped && process.replica.is_none() {
                process.start(self.now_ms);
            }
        }
        let until_ms = self.now_ms + HEALED_WITHIN_MS;
        let before = self.agreed.len();
        loop {
            self.step(false);
            let members = self.agreed_members().expect("there was a first one");
            let whole = self.agreed.len() as u64;
            let mut voters = members.voters();
            let is_even = voters.all(|id| {
                let process = &self.processes[&id];
                process.is_wiped || process.applied == whole
            });
            if is_even && self.agreed.len() > before + 3 && self.calls.read_last() {
                return;
            }
            assert!(
                self.now_ms < until_ms,
                "nothing is agreed, or not everywhere: {}",
                self.describe()
            );
        }
    }

    fn describe(&self) -> String {
        let of = |(id, process): (&MemberId, &Process)| {
            let view = process
                .replica
                .as_ref()
                .map(|replica: &Replica| replica.view(self.now_ms));
            format!(
                "\n{id}: wiped {}, applied {}, {view:?}",
                process.is_wiped, process.applied
            )
        };
        let members = self.agreed_members();
        let agreed = self.agreed.len();
        format!(
            "{agreed} agreed, {members:?}{}",
            self.processes.iter().map(of).collect::<String>()
        )
    }

    fn counts(&self) -> Counts {
        Counts {
            agreed: self.agreed.len(),
            reads: self.calls.reads_answered(),
            terms: self.leaders.len(),
            restores: self.processes.values().map(|process| process.restores).sum(),
            members: self.processes.len(),
        }
    }
}

fn address(id: MemberId) -> String {
    format!("{id}:1")
}
