//! A shard one of whose groups comes upon an assertion: that group is in quarantine, and the others go on.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use quorate_journal::{Journal, JournalOptions};
use quorate_types::config::{Beginning, Member};
use quorate_types::cost::{Budget, EntryCost};
use quorate_types::{Access, Code, Epoch, GroupConfig, Permission, planted};
use quorate_wire::client::{Append, Message, NO_EXPECTED_OFFSET};
use uuid::Uuid;

use super::test_shard::{TestShard, on_journal};
use super::*;
use crate::backlog::Backlog;
use crate::messages::Hosting;

const POISONED: GroupId = GroupId(Uuid::from_u128(7));
const SOUND: GroupId = GroupId(Uuid::from_u128(8));
const ME: ServerId = ServerId(1);
const PERMISSION: Permission = Permission {
    may_append: true,
    may_read: true,
    project: None,
    layout: quorate_types::Layout(0),
    expires_at_s: u64::MAX,
};

fn config(group_id: GroupId, durability: Durability, epoch: Epoch) -> GroupConfig {
    let free = EntryCost {
        fixed_milli: [0; 3],
        per_byte_milli: [0; 3],
    };
    let me = Member {
        server_id: ME,
        address: "here".to_string(),
    };
    GroupConfig {
        group_id,
        epoch,
        durability,
        replication_degree: 1,
        min_replicas: 1,
        replicas: vec![me],
        learners: Vec::new(),
        budget: Budget::for_rate(1_000, 1, free),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
        access: Access::Full,
        layout: quorate_types::Layout::default(),
    }
}

/// Two groups, with a client each on a connection of shard 1.
struct Rig {
    test: TestShard,
    dir: PathBuf,
    /// Clients' answers by group, and whether the group's connections were closed.
    answers: Vec<(GroupId, Message)>,
    closed: Vec<GroupId>,
}

impl Rig {
    fn new(name: &str, durability: Durability) -> Self {
        let dir = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
        let options = JournalOptions {
            segment_bytes: 64 << 20,
            ..JournalOptions::default()
        };
        let (journal, _) = Journal::open(&dir, options, |_| {}).unwrap();
        let test = on_journal(Arc::new(journal), 2, |_| {});
        let mut rig = Self {
            test,
            dir,
            answers: Vec::new(),
            closed: Vec::new(),
        };
        for group_id in [POISONED, SOUND] {
            rig.test.shard.configure(config(group_id, durability, 1));
            rig.attach(group_id);
        }
        rig
    }

    fn client(group_id: GroupId) -> ClientRef {
        ClientRef {
            connection: 1 << 56 | group_id.0.as_u128() as u64,
            channel: 1,
        }
    }

    fn request(&mut self, group_id: GroupId, request: Request) {
        let message = ClientMessage::Request {
            group_id,
            client: Self::client(group_id),
            request,
            backlog: Arc::new(Backlog::default()),
            weight: 0,
        };
        self.test.shard.message(ShardMessage::Client(message));
        self.test.shard.flush();
        while let Ok(message) = self.test.other.try_recv() {
            match message {
                ShardMessage::Client(ClientMessage::Answer { client, message, .. }) => {
                    let group_id = GroupId(Uuid::from_u128(u128::from(client.connection & 0xff)));
                    self.answers.push((group_id, message));
                }
                ShardMessage::Client(ClientMessage::Quarantined { group_id }) => self.closed.push(group_id),
                _ => {}
            }
        }
    }

    fn attach(&mut self, group_id: GroupId) {
        let request = Request::Attach {
            number: 1,
            session: 5,
            permission: PERMISSION,
        };
        self.request(group_id, request);
    }

    fn append(&mut self, group_id: GroupId, seq: u64) {
        self.append_bytes(group_id, seq, 4);
    }

    /// A batch of one entry, of so many bytes.
    fn append_bytes(&mut self, group_id: GroupId, seq: u64, bytes: u32) {
        let mut payload = bytes.to_le_bytes().to_vec();
        payload.resize(4 + bytes as usize, 7);
        let payload = Bytes::from(payload);
        let append = Append {
            seq,
            floor_index: 0,
            timeout_ms: 0,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            expected_offset: NO_EXPECTED_OFFSET,
            fencing_token: 0,
            payload,
        };
        let request = Request::Message {
            message: Message::Append(append),
            trace: None,
        };
        self.request(group_id, request);
    }

    /// Batches of the group that are in its log here.
    fn last_index(&self, group_id: GroupId) -> Option<u64> {
        let hosted = self.test.shard.groups.get(&group_id);
        hosted.map(|hosted| hosted.core.replica().log().last_index())
    }

    /// The code with which a new client's ATTACH is refused.
    fn refused_with(&mut self, group_id: GroupId) -> u16 {
        self.answers.clear();
        self.attach(group_id);
        match &self.answers[..] {
            [(_, Message::Refused(refused))] => refused.code,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn quarantined(&self) -> Vec<GroupId> {
        let replicas = self.test.shard.shared().coordinator.quarantined();
        replicas.iter().map(|replica| replica.group_id).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        planted::poison(None);
        let _removed = std::fs::remove_dir_all(&self.dir).is_ok();
    }
}

#[test]
fn an_assertion_stops_its_group_and_no_other() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        let mut rig = Rig::new("quarantine", durability);
        rig.append(POISONED, 1);
        rig.append(SOUND, 1);
        planted::poison(Some((POISONED.0.as_u128(), 2)));
        rig.answers.clear();
        rig.append(POISONED, 2);
        rig.append(SOUND, 2);
        assert_eq!((rig.last_index(POISONED), rig.last_index(SOUND)), (None, Some(2)));
        let to_poisoned = rig.answers.iter().filter(|(group_id, _)| *group_id == POISONED);
        assert_eq!(to_poisoned.count(), 0, "nobody can say what happened");
        assert_eq!(rig.closed, [POISONED], "its clients' connections end");
        assert_eq!(rig.quarantined(), [POISONED], "the coordinator is told");
        assert_eq!(
            rig.refused_with(POISONED),
            Code::GroupNotHere as u16,
            "clients look elsewhere"
        );
    }
}

#[test]
fn a_quarantine_gives_back_the_groups_part_of_the_pool() {
    let mut rig = Rig::new("quarantine-pool", Durability::Persistent);
    for group_id in [POISONED, SOUND] {
        let small = GroupConfig {
            retention_bytes: 1,
            ..config(group_id, Durability::Persistent, 2)
        };
        rig.test.shard.configure(small);
        // Nothing becomes durable, so all of it is held.
        for seq in 1..=8 {
            rig.append_bytes(group_id, seq, 1 << 20);
        }
    }
    let used_by = |rig: &Rig, group_id| rig.test.shard.groups[&group_id].core.pooled_bytes();
    let (poisoned, sound) = (used_by(&rig, POISONED), used_by(&rig, SOUND));
    assert!(poisoned > 0 && sound > 0);
    assert_eq!(rig.test.shard.turn.pool.used_bytes(), poisoned + sound);
    planted::poison(Some((POISONED.0.as_u128(), 9)));
    rig.append(POISONED, 9);
    assert_eq!(rig.last_index(POISONED), None);
    assert_eq!(rig.test.shard.turn.pool.used_bytes(), sound);
}

#[test]
fn an_assertion_in_an_answer_stops_its_group_and_no_other() {
    for asks_all in [true, false] {
        let mut rig = Rig::new("quarantine-answer", Durability::InMemory);
        let answer = |hosted: &mut Hosted| {
            assert!(hosted.core.id() != POISONED, "it is wrong");
            hosted.core.id()
        };
        let shard = &mut rig.test.shard;
        if asks_all {
            assert_eq!(shard.ask_all(|hosted, _| Some(answer(hosted))), [SOUND]);
        } else {
            assert_eq!(shard.ask(SOUND, |hosted, _| answer(hosted)), Some(SOUND));
            assert_eq!(shard.ask(POISONED, |hosted, _| answer(hosted)), None);
        }
        assert_eq!((rig.last_index(POISONED), rig.last_index(SOUND)), (None, Some(0)));
        assert_eq!(rig.quarantined(), [POISONED]);
        // All else that is asked of groups goes on.
        rig.test.shard.tick();
        assert_eq!(rig.test.shard.sample().counts.roles.len(), 1);
    }
}

#[test]
fn a_copier_that_waits_for_a_group_in_quarantine_is_released() {
    let mut rig = Rig::new("quarantine-copier", Durability::Persistent);
    for group_id in [POISONED, SOUND] {
        rig.append(group_id, 1);
    }
    let (answer, answers) = std::sync::mpsc::channel();
    let wait = disk::CopierWait::new(0..Lsn::MAX, answer);
    for group_id in [POISONED, SOUND] {
        let hosted = &rig.test.shard.groups[&group_id];
        let disk = &mut rig.test.shard.executor.disk;
        let damaged = disk.wait_for_repairs(group_id, &hosted.records, &wait);
        assert_eq!(damaged.len(), 1);
    }
    drop(wait);
    planted::poison(Some((POISONED.0.as_u128(), 2)));
    rig.append(POISONED, 2);
    assert!(
        answers.try_recv().is_err(),
        "the sound group's is still waited for"
    );
    rig.test
        .shard
        .executor
        .disk
        .release_copier(quorate_group::CopierId(2));
    assert!(matches!(answers.try_recv(), Ok(quorate_group_log::Answer::Done)));
}

#[test]
fn a_group_that_is_quarantined_as_a_whole_says_so_until_a_later_epoch() {
    let mut rig = Rig::new("quarantine-whole", Durability::Persistent);
    planted::poison(Some((POISONED.0.as_u128(), 1)));
    rig.append(POISONED, 1);
    let (group_id, epoch) = (POISONED, 1);
    let whole = Hosting::Quarantined { group_id, epoch };
    rig.test.shard.message(ShardMessage::Hosting(whole));
    assert_eq!(rig.refused_with(POISONED), Code::GroupQuarantined as u16);
    // The same configuration again, as a coordinator sends that misses the group in a report.
    rig.test
        .shard
        .configure(config(POISONED, Durability::Persistent, 1));
    assert_eq!(
        rig.last_index(POISONED),
        None,
        "it does not come back with an empty log"
    );
    assert_eq!(rig.refused_with(POISONED), Code::GroupQuarantined as u16);
    rig.test
        .shard
        .configure(config(POISONED, Durability::Persistent, 2));
    assert_eq!(rig.last_index(POISONED), None);
    assert_eq!(
        rig.refused_with(POISONED),
        Code::GroupNotHere as u16,
        "it goes on elsewhere"
    );
}

#[test]
fn a_drop_or_a_reset_ends_the_quarantine_with_the_data() {
    for is_reset in [false, true] {
        let mut rig = Rig::new("quarantine-ends", Durability::InMemory);
        planted::poison(Some((POISONED.0.as_u128(), 1)));
        rig.append(POISONED, 1);
        planted::poison(None);
        let mut again = config(POISONED, Durability::InMemory, 3);
        if is_reset {
            again.beginning = Some(Beginning {
                epoch: 3,
                offset: 1 << 40,
                entries_before: 0,
                bytes_before: 0,
            });
        } else {
            let (group_id, epoch) = (POISONED, 2);
            rig.test
                .shard
                .message(ShardMessage::Hosting(Hosting::Drop { group_id, epoch }));
        }
        assert_eq!(rig.quarantined().is_empty(), !is_reset);
        rig.test.shard.configure(again);
        // The base of a reset log is a batch of its own.
        let begins_at = Some(u64::from(is_reset));
        assert_eq!((rig.quarantined(), rig.last_index(POISONED)), (vec![], begins_at));
    }
}
