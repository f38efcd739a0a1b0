//! Coordinators as members of a quorum: one decides while it leads, and the others have what was agreed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_coordinator_core::command::{
    Command as Order, Effect, FleetSecrets, JoinTokenTerms, PlacementPolicy, Proof, Reply,
};
use quorate_coordinator_core::coordinator::{Command, Coordinator, Ending, Event, Start, alone, read_state};
use quorate_coordinator_core::engine::{Input, Now, Outgoing};
use quorate_coordinator_core::ids::CallId;
use quorate_coordinator_core::log::{
    Base, Contents, MemberDisk, encode_base, encode_base_of, encode_state, encode_writes, scan,
};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_quorum::{
    Change, Event as QuorumEvent, MemberId, Message, Point, Position, Refused, Settings, Snapshot, Term,
    Write,
};
use quorate_types::{FleetId, Place, RunId};
use serde_json::json;

use crate::rig::{candidate, settings};
use crate::world::World;

/// As a process makes them at its start, for a fleet that has none.
fn secrets_of(id: MemberId) -> FleetSecrets {
    FleetSecrets {
        authority_pem: format!("authority of {id}"),
        peer_keys: json!({"keys": [id.to_string()]}),
        sealed: "00".into(),
    }
}

const FLEET: FleetId = FleetId(7);
const TICK_MS: u64 = 10;

struct Node {
    id: MemberId,
    log: Vec<u8>,
    coordinator: Option<Coordinator>,
    /// Writes are not done while the disk hangs.
    hangs: bool,
    writes: VecDeque<Write>,
    released: Vec<Outgoing>,
    done: BTreeSet<CallId>,
    refused: BTreeMap<CallId, Refused>,
    /// Groups and tokens that a read saw.
    shown: BTreeMap<CallId, usize>,
    ending: Option<Ending>,
}

struct Fleet {
    nodes: Vec<Node>,
    now: Now,
    messages: VecDeque<(MemberId, MemberId, Message)>,
    /// Members that nobody reaches.
    cut_off: BTreeSet<MemberId>,
}

impl Node {
    fn first() -> Self {
        Self::first_with(&CoordinatorState::new(Profile::default_profile()))
    }

    fn first_with(state: &CoordinatorState) -> Self {
        let base = Base::first(MemberId(1), FLEET, "one".into());
        Self::on(1, encode_base(&base, Some(state)))
    }

    fn empty(id: u64) -> Self {
        Self::on(id, encode_base(&Base::empty(MemberId(id)), None))
    }

    fn on(id: u64, log: Vec<u8>) -> Self {
        Self {
            id: MemberId(id),
            log,
            coordinator: None,
            hangs: false,
            writes: VecDeque::new(),
            released: Vec::new(),
            done: BTreeSet::new(),
            refused: BTreeMap::new(),
            shown: BTreeMap::new(),
            ending: None,
        }
    }

    fn disk(&self) -> MemberDisk {
        match scan(&self.log).expect("a whole log").contents {
            Contents::Member(disk) => disk,
            other => panic!("{other:?}"),
        }
    }

    fn start(&mut self, now: Now) {
        let disk = self.disk();
        let state = disk.state.as_ref().map(|contents| read_state(contents).unwrap());
        let start = Start {
            settings: settings(),
            profile: Profile::default_profile(),
            policy: PlacementPolicy::default(),
            overpromising: Default::default(),
            secrets: Some(Box::new(secrets_of(self.id))),
            address: None,
            release: "0.1.0".into(),
            next_run: now.unix_ms ^ (self.id.0 << 48),
        };
        let quorum = Settings {
            heartbeat_ms: 20,
            election_ms: 100,
            seed: self.id.0 * 77,
            append_bytes: 1 << 20,
            kept_bytes: 0,
        };
        self.coordinator = Some(Coordinator::new(
            self.id,
            disk.to_quorum(),
            state,
            start,
            quorum,
            now,
        ));
    }

    fn write(&mut self, write: &Write) {
        if let Some(snapshot) = &write.snapshot {
            let disk = self.disk();
            let base = Base {
                fleet: Some(FLEET),
                vote: write.vote.unwrap_or(disk.vote),
                point: snapshot.base,
                members: snapshot.members.clone(),
                ..disk.base
            };
            self.log = encode_base_of(&base, &snapshot.contents);
        } else {
            self.log.extend(encode_writes([write]));
        }
    }

    fn newest_snapshot(&self) -> Arc<Snapshot> {
        let disk = self.disk();
        Arc::new(Snapshot {
            base: disk.base.point,
            members: disk.base.members,
            contents: disk.state.expect("a log that leads has a state"),
        })
    }

    /// Writes the agreed state in the place of the log.
    fn compact(&mut self) {
        let disk = self.disk();
        let coordinator = self.coordinator.as_mut().expect("it runs");
        let due = coordinator.snapshot_due().expect("nothing is open");
        let base = Base {
            vote: disk.vote,
            point: due.point,
            members: due.members,
            ..disk.base
        };
        let through = due.point.position;
        self.log = encode_base_of(&base, &encode_state(due.state));
        assert!(due.entries.is_empty(), "all is agreed");
        let now = Now { ms: 0, unix_ms: 0 };
        coordinator.take(now, Event::Quorum(QuorumEvent::Compacted { through }));
    }
}

impl Fleet {
    fn new(count: u64) -> Self {
        Self::beginning_with(Node::first(), count)
    }

    fn beginning_with(first: Node, count: u64) -> Self {
        let mut fleet = Self {
            nodes: vec![first],
            now: Now {
                ms: 0,
                unix_ms: 1_700_000_000_000,
            },
            messages: VecDeque::new(),
            cut_off: BTreeSet::new(),
        };
        fleet.nodes[0].start(fleet.now);
        fleet.pass(100);
        for id in 2..=count {
            fleet.nodes.push(Node::empty(id));
            fleet.nodes.last_mut().unwrap().start(fleet.now);
            let (id, address) = (MemberId(id), format!("n{id}"));
            fleet.change(900 + id.0, Change::AddLearner { id, address });
            // The leader gives it a vote.
            fleet.pass(600);
            let leader = fleet.leader();
            let members = fleet.nodes[leader].coordinator.as_ref().unwrap().members();
            assert!(members.is_voter(id), "{id}");
        }
        fleet
    }

    fn change(&mut self, call: CallId, change: Change) {
        let leader = self.leader();
        self.take(leader, Event::Quorum(QuorumEvent::Change { call, change }));
        self.pass(200);
        assert!(
            self.nodes[leader].done.contains(&call),
            "{:?}",
            self.nodes[leader].refused
        );
    }

    fn leader(&self) -> usize {
        let leads = |node: &Node| {
            node.coordinator
                .as_ref()
                .is_some_and(|one| one.engine().is_some())
        };
        let reached = |node: &Node| !self.cut_off.contains(&node.id);
        let found: Vec<usize> = (0..self.nodes.len())
            .filter(|n| leads(&self.nodes[*n]) && reached(&self.nodes[*n]))
            .collect();
        assert_eq!(found.len(), 1, "one leads");
        found[0]
    }

    fn take(&mut self, n: usize, event: Event) {
        let now = self.now;
        self.nodes[n]
            .coordinator
            .as_mut()
            .expect("it runs")
            .take(now, event);
        self.settle();
    }

    /// A token's command, as the API gives it.
    fn order(&mut self, n: usize, call: CallId) {
        let token = JoinTokenTerms {
            expires_at_ms: self.now.unix_ms + 60_000,
            name: None,
            auxiliary: false,
        };
        let digest = format!("token-{call}");
        let command = Order::IssueJoinToken { digest, token };
        self.take(n, Event::Input(Input::Command { call, command }));
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.now.ms += TICK_MS;
            self.now.unix_ms += TICK_MS;
            for n in 0..self.nodes.len() {
                if let Some(coordinator) = &mut self.nodes[n].coordinator {
                    coordinator.take(self.now, Event::Tick);
                }
            }
            self.settle();
        }
    }

    fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for n in 0..self.nodes.len() {
                is_quiet &= !self.carry_out(n);
            }
            while let Some((from, to, message)) = self.messages.pop_front() {
                is_quiet = false;
                let is_cut = self.cut_off.contains(&from) || self.cut_off.contains(&to);
                let node = self.nodes.iter_mut().find(|node| node.id == to);
                if let Some(coordinator) = node.and_then(|node| node.coordinator.as_mut())
                    && !is_cut
                {
                    coordinator.take(self.now, Event::Quorum(QuorumEvent::Received { from, message }));
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn carry_out(&mut self, n: usize) -> bool {
        let now = self.now;
        let node = &mut self.nodes[n];
        let Some(coordinator) = &mut node.coordinator else {
            return false;
        };
        let commands = coordinator.take_commands(now);
        let mut is_busy = !commands.is_empty();
        for command in commands {
            match command {
                Command::Write(write) => node.writes.push_back(write),
                Command::ToMember { to, message } => self.messages.push_back((node.id, to, message)),
                Command::LoadSnapshot => {
                    let snapshot = node.newest_snapshot();
                    let loaded = Event::Quorum(QuorumEvent::SnapshotLoaded { snapshot });
                    node.coordinator.as_mut().unwrap().take(now, loaded);
                }
                Command::Release { outgoing, .. } => node.released.extend(outgoing),
                Command::Show { call } => {
                    let state = node
                        .coordinator
                        .as_ref()
                        .unwrap()
                        .agreed_state()
                        .expect("it is shown");
                    node.shown.insert(call, state.join_tokens().iter().count());
                }
                Command::Done { call } => drop(node.done.insert(call)),
                Command::Refused { call, why } => drop(node.refused.insert(call, why)),
                Command::Note(_) | Command::Role(_) => {}
                Command::End(ending) => node.ending = Some(ending),
            }
        }
        while let Some(write) = node.writes.pop_front_if(|_| !node.hangs) {
            node.write(&write);
            let written = Event::Quorum(QuorumEvent::Written { id: write.id });
            node.coordinator.as_mut().unwrap().take(now, written);
            is_busy = true;
        }
        is_busy
    }

    fn answered(&self, n: usize, call: CallId) -> bool {
        let answer = Outgoing::Answer {
            call,
            reply: Reply::TokenIssued,
        };
        self.nodes[n].released.contains(&answer)
    }

    /// All members that run have the same agreed state.
    fn agree(&mut self) -> usize {
        self.pass(100);
        let states: Vec<Vec<u8>> = self
            .nodes
            .iter()
            .filter_map(|node| node.coordinator.as_ref())
            .map(|one| encode_state(one.agreed_state().expect("nothing is open")).to_vec())
            .collect();
        assert!(states.windows(2).all(|two| two[0] == two[1]), "one state");
        let state: CoordinatorState = serde_json::from_slice(&states[0]).unwrap();
        state.join_tokens().iter().count()
    }
}

#[test]
fn the_keys_of_the_first_coordinator_stay_whoever_leads() {
    let mut fleet = Fleet::new(3);
    let keys = secrets_of(MemberId(1));
    for _ in 0..2 {
        fleet.agree();
        for node in fleet.nodes.iter().filter(|node| node.coordinator.is_some()) {
            let state = node.coordinator.as_ref().unwrap().agreed_state().unwrap();
            assert_eq!(state.secrets.as_deref(), Some(&keys));
        }
        let leader = fleet.leader();
        fleet.nodes[leader].coordinator = None;
        fleet.pass(1_000);
        fleet.nodes[leader].start(fleet.now);
        fleet.pass(500);
    }
    // The same, encrypted with another key.
    let sealed = FleetSecrets {
        sealed: "01".into(),
        ..keys
    };
    let (leader, secrets) = (fleet.leader(), Box::new(sealed.clone()));
    let command = Order::UseSecrets { secrets };
    fleet.take(leader, Event::Input(Input::Command { call: 7, command }));
    fleet.agree();
    let states = fleet.nodes.iter().map(|node| node.coordinator.as_ref());
    for state in states.map(|one| one.unwrap().agreed_state().unwrap()) {
        assert_eq!(state.secrets.as_deref(), Some(&sealed));
    }
}

#[test]
fn a_leader_that_followed_another_needs_no_roll_call() {
    let state = World::new(2).state;
    let mut fleet = Fleet::beginning_with(Node::first_with(&state), 3);
    let calls_roll = |fleet: &Fleet| {
        let node = &fleet.nodes[fleet.leader()];
        let engine = node.coordinator.as_ref().unwrap().engine().unwrap();
        engine.roll_call(fleet.now.ms).is_some()
    };
    assert!(calls_roll(&fleet), "its log might be an older copy");
    let first = fleet.leader();
    fleet.nodes[first].coordinator = None;
    fleet.pass(1_000);
    assert!(!calls_roll(&fleet), "the first one sent it the whole log");
    // All of them end, and nobody can tell any more.
    for node in &mut fleet.nodes {
        node.coordinator = None;
    }
    for n in 0..3 {
        fleet.nodes[n].start(fleet.now);
    }
    fleet.pass(1_000);
    assert!(calls_roll(&fleet));
}

#[test]
fn keys_of_another_authority_change_nothing() {
    let mut world = World::new(0);
    let secrets = |id| Box::new(secrets_of(MemberId(id)));
    let used = |world: &mut World, id| {
        let secrets = secrets(id);
        world.apply(Order::UseSecrets { secrets })
    };
    assert_eq!(used(&mut world, 1), [Effect::Reply(Reply::Done)]);
    let refused = used(&mut world, 2);
    assert!(matches!(
        &refused[..],
        [Effect::Reply(Reply::Conflict {
            code: "other_authority",
            ..
        })]
    ));
    assert_eq!(world.state.secrets, Some(secrets(1)));
}

#[test]
fn one_coordinator_leads_at_once_and_answers_when_its_disk_has_the_command() {
    let mut fleet = Fleet::new(1);
    assert_eq!(fleet.leader(), 0);
    fleet.nodes[0].hangs = true;
    fleet.order(0, 1);
    fleet.pass(50);
    assert!(!fleet.answered(0, 1), "the disk does not have it");
    assert!(!fleet.nodes[0].coordinator.as_ref().unwrap().is_open(fleet.now.ms));
    fleet.nodes[0].hangs = false;
    fleet.settle();
    assert!(fleet.answered(0, 1));
}

#[test]
fn a_start_finds_what_was_agreed_with_a_snapshot_or_without() {
    for compacts in [false, true] {
        let mut fleet = Fleet::new(1);
        fleet.order(0, 1);
        if compacts {
            fleet.nodes[0].compact();
        }
        fleet.order(0, 2);
        fleet.nodes[0].start(fleet.now);
        fleet.pass(100);
        assert_eq!(fleet.agree(), 2);
        let place = fleet.nodes[0]
            .coordinator
            .as_ref()
            .unwrap()
            .agreed_state()
            .unwrap()
            .history
            .place();
        assert_eq!(place.unwrap().position, 5, "two runs, the keys and two tokens");
    }
}

#[test]
fn members_that_were_taken_in_have_the_same_state() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    fleet.order(leader, 1);
    assert!(fleet.answered(leader, 1));
    assert_eq!(fleet.agree(), 1);
}

#[test]
fn nothing_is_answered_before_a_majority_has_it_and_another_member_goes_on() {
    let mut fleet = Fleet::new(3);
    fleet.order(0, 1);
    fleet.cut_off.insert(MemberId(1));
    fleet.order(0, 2);
    assert!(!fleet.answered(0, 2));
    fleet.pass(600);
    let leader = fleet.leader();
    assert_ne!(leader, 0);
    fleet.order(leader, 3);
    assert!(fleet.answered(leader, 3));
    // It may have had more than is agreed, and reads its state again.
    assert!(fleet.nodes[0].coordinator.as_ref().unwrap().engine().is_none());
    fleet.cut_off.clear();
    fleet.pass(600);
    assert!(!fleet.answered(0, 2));
    assert_eq!(fleet.agree(), 2, "the first and the third");
}

#[test]
fn a_deposed_leader_shows_no_state() {
    let mut fleet = Fleet::new(3);
    fleet.take(0, Event::Read { call: 1 });
    assert_eq!(fleet.nodes[0].shown.get(&1), Some(&0));
    fleet.cut_off.insert(MemberId(1));
    fleet.take(0, Event::Read { call: 2 });
    fleet.pass(50);
    assert_eq!(fleet.nodes[0].shown.get(&2), None, "no majority confirms it");
    fleet.pass(600);
    fleet.cut_off.clear();
    fleet.pass(600);
    assert_eq!(fleet.nodes[0].shown.get(&2), None);
    fleet.take(0, Event::Read { call: 3 });
    let why = fleet.nodes[0].refused.get(&3);
    assert!(
        matches!(why, Some(Refused::NotLeader { leader: Some(_) })),
        "{why:?}"
    );
    let leader = fleet.leader();
    fleet.take(leader, Event::Read { call: 4 });
    assert_eq!(fleet.nodes[leader].shown.get(&4), Some(&0));
}

#[test]
fn a_member_that_was_away_gets_entries_or_a_snapshot() {
    let mut fleet = Fleet::new(3);
    for compacts in [false, true] {
        fleet.nodes[2].coordinator = None;
        fleet.order(0, 10 + u64::from(compacts));
        if compacts {
            fleet.nodes[0].compact();
        }
        fleet.order(0, 20 + u64::from(compacts));
        fleet.nodes[2].start(fleet.now);
        fleet.pass(300);
        assert_eq!(fleet.agree(), 2 + 2 * usize::from(compacts));
    }
}

#[test]
fn commands_wait_while_the_leader_hands_over_and_calls_of_others_are_refused() {
    let mut fleet = Fleet::new(3);
    // Nobody can take over, as the others get nothing.
    fleet.nodes[1].hangs = true;
    fleet.nodes[2].hangs = true;
    let step_down = QuorumEvent::StepDown { call: 5, to: None };
    fleet.take(0, Event::Quorum(step_down));
    assert!(fleet.nodes[0].done.contains(&5));
    fleet.nodes[1].hangs = false;
    fleet.nodes[2].hangs = false;
    fleet.pass(600);
    let leader = fleet.leader();
    assert_ne!(leader, 0, "it handed over");
    fleet.order(0, 6);
    assert!(matches!(
        fleet.nodes[0].refused.get(&6),
        Some(Refused::NotLeader { leader: Some(_) })
    ));
    fleet.order(leader, 7);
    assert_eq!(fleet.agree(), 1);
}

#[test]
fn members_that_decide_otherwise_than_the_log_stop() {
    let mut fleet = Fleet::new(3);
    let entry = br#"[{"at_ms": 1, "command": {"command": "begin_run", "run": 5, "release": "9.9.9"},
        "issued": [{"group_id": "00000000-0000-0000-0000-000000000001", "epoch": 1, "digest": 1}]}]"#;
    let text = String::from_utf8_lossy(entry).replace("\n", "");
    let payload: Arc<[u8]> = text.into_bytes().into();
    let call = 77;
    fleet.take(0, Event::Quorum(QuorumEvent::Propose { call, payload }));
    fleet.pass(100);
    let ending = fleet.nodes[0].ending.as_ref();
    assert!(matches!(ending, Some(Ending::DecidedOtherwise(_))), "{ending:?}");
    // Another is elected, and finds the same.
    fleet.pass(600);
    let ended = fleet.nodes.iter().filter(|node| node.ending.is_some()).count();
    assert!(ended >= 2, "{ended}");
}

/// Nobody writes such a log, and nothing of it reaches an assertion.
#[test]
fn a_log_that_begins_where_none_can_is_damaged() {
    let state = CoordinatorState::new(Profile::default_profile());
    let first = Base::first(MemberId(1), FLEET, "one".into());
    for (point, expected) in [
        ((2, 1), "a term that was not begun"),
        ((1, u64::MAX), "beyond the end of all logs"),
    ] {
        let point = Point {
            term: Term(point.0),
            position: Position(point.1),
        };
        let base = Base {
            point,
            ..first.clone()
        };
        let (at, damage) = scan(&encode_base(&base, Some(&state))).unwrap_err();
        assert!(at > 0 && damage.contains(expected), "{damage}");
    }
    scan(&encode_base(&first, Some(&state))).unwrap();
}

#[test]
fn the_last_of_three_goes_on_alone_with_all_that_its_log_has() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    for call in 1..=3 {
        fleet.order(leader, call);
        fleet.pass(100);
    }
    let last = (leader + 1) % 3;
    let disk = fleet.nodes[last].disk();
    let found = alone(&disk, FleetId(8)).unwrap();
    assert_eq!(found.lost.len(), 2);
    assert_eq!(found.state.join_tokens().iter().count(), 3);
    assert!(found.base.vote.term.0 > disk.vote.term.0 + 100 && found.base.fleet == Some(FleetId(8)));
    let id = fleet.nodes[last].id;
    let log = encode_base(&found.base, Some(&found.state));
    let mut fleet = Fleet::beginning_with(Node::on(id.0, log), 1);
    let leader = fleet.leader();
    fleet.order(leader, 9);
    assert_eq!(fleet.agree(), 4);
    let empty = Node::empty(9).disk();
    assert!(
        alone(&empty, FleetId(8))
            .unwrap_err()
            .contains("never been taken in")
    );
}

#[test]
fn an_older_copy_of_a_members_log_ends_it() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    let follower = (leader + 1) % 3;
    let copy = fleet.nodes[follower].log.clone();
    for call in 1..4 {
        fleet.order(leader, call);
    }
    fleet.pass(100);
    let newest = std::mem::replace(&mut fleet.nodes[follower].log, copy);
    let now = fleet.now;
    fleet.nodes[follower].start(now);
    fleet.pass(200);
    let Some(Ending::EntriesLost {
        member,
        acknowledged,
        last,
    }) = fleet.nodes[follower].ending.clone()
    else {
        panic!("{:?}", fleet.nodes[follower].ending);
    };
    assert_eq!(member, fleet.nodes[follower].id);
    assert!(last.position < acknowledged.position, "{last} {acknowledged}");

    // The newest log is put back.
    fleet.nodes[follower].ending = None;
    fleet.nodes[follower].log = newest;
    fleet.nodes[follower].start(now);
    fleet.order(leader, 4);
    fleet.pass(400);
    let agreed = |n: usize| fleet.nodes[n].coordinator.as_ref().unwrap().agreed_position();
    assert_eq!(agreed(follower), agreed(leader));
    assert!(fleet.nodes[follower].ending.is_none());
}

/// A server shows a place that the log does not have.
fn show_later_place(fleet: &mut Fleet, n: usize) {
    let mut candidate = candidate(
        1,
        &Proof::JoinToken {
            digest: "token-1".into(),
            credential_digest: "credential".into(),
        },
    );
    candidate.is_certified = true;
    let (run, position) = (RunId(u64::MAX), 99);
    candidate.register.place = Some(Place { run, position });
    fleet.take(n, Event::Input(Input::Register(candidate)));
}

#[test]
fn a_leader_that_is_cut_off_takes_no_later_place_for_a_proof() {
    let mut fleet = Fleet::new(3);
    let former = fleet.leader();
    let id = fleet.nodes[former].id;
    fleet.cut_off.insert(id);
    show_later_place(&mut fleet, former);
    fleet.pass(1_000);
    assert!(fleet.nodes[former].ending.is_none(), "it cannot know");
    assert_ne!(fleet.leader(), former);
    fleet.cut_off.clear();
    fleet.pass(500);
    let agreed = |n: usize| fleet.nodes[n].coordinator.as_ref().unwrap().agreed_position();
    assert_eq!(agreed(former), agreed(fleet.leader()));

    // A majority says that this one leads.
    let leader = fleet.leader();
    show_later_place(&mut fleet, leader);
    fleet.pass(100);
    assert!(matches!(fleet.nodes[leader].ending, Some(Ending::Behind(_))));
}
