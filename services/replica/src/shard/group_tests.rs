//! A group on a real journal. One that is lost and begins anew: what is appended then is kept, found, and read back.
//! One that leaves: whoever waits for it is told so, once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::Asked;
use quorate_journal::{Journal, Options};
use quorate_replica_log::{Recovered, Scan, State};
use quorate_tokens::Permission;
use quorate_types::ServerId;
use quorate_types::config::{Beginning, Member};
use quorate_types::cost::AppendCost;
use quorate_types::limits::{RECENT_BYTES_PER_GROUP, RING_STALL_MS};
use quorate_wire::client::{Message, NO_EXPECTED_OFFSET};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use uuid::Uuid;

use super::*;
use crate::clock::now_us;
use crate::disk::JournalPort;
use crate::shard::crossing::Backlog;
use crate::shard::io::Work;
use crate::shard::repair::read_batches;
use crate::shard::{ClientRequest, ShardMessage};
use crate::shared::{Plaintext, Shared};

const GROUP: GroupId = GroupId(Uuid::from_u128(7));
const ME: ServerId = ServerId(1);
const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
/// Of a connection of shard 1; the group is on shard 0.
const FAR: ClientRef = ClientRef {
    connection: 1 << 56 | 1,
    channel: 1,
};
const ENTRY_BYTES: usize = 1 << 20;
/// A base is written after 16 MiB that are trimmed.
const TRIMMED: u64 = 18;

struct Server {
    io: Io,
    work: Work,
    group: Group,
    events: Receiver<quorate_journal::Event>,
}

fn open(dir: &Path) -> (Arc<Journal>, Recovered) {
    let options = Options {
        segment_bytes: 64 << 20,
        ..Options::default()
    };
    let mut scan = Scan::new(ME);
    let (journal, recovery) = Journal::open(dir, options, |record| scan.record(&record).unwrap()).unwrap();
    (Arc::new(journal), scan.finish(&recovery))
}

fn server(journal: Arc<Journal>, replica: Replica, places: Places) -> Server {
    let (told, events) = channel();
    let port = JournalPort::new(journal, move |event| {
        let _over = told.send(event).is_err();
    });
    let plaintext = Plaintext {
        is_accepted: false,
        is_dialed: false,
    };
    let (news, _) = unbounded_channel();
    let shared = Shared::new("i1".to_string(), plaintext, news, None);
    let (mut io, work) = Io::new(0, Arc::new(shared), port);
    let life = io.new_life();
    let group = Group::new(GROUP, replica, places, life, now_us());
    Server {
        io,
        work,
        group,
        events,
    }
}

fn config(epoch: u64, beginning: Option<Beginning>) -> GroupConfig {
    let free = AppendCost {
        fixed_milli: [0; 3],
        per_byte_milli: [0; 3],
    };
    let member = Member {
        server_id: ME,
        address: "here".to_string(),
    };
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::Persistent,
        replication_degree: 1,
        min_replicas: 1,
        replicas: vec![member],
        learners: Vec::new(),
        budget: Budget::for_rate(1, 1, free),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning,
    }
}

fn payload(seq: u64) -> Bytes {
    let mut bytes = ((ENTRY_BYTES - 4) as u32).to_le_bytes().to_vec();
    bytes.resize(ENTRY_BYTES, seq as u8);
    bytes.into()
}

impl Server {
    /// Until all that was given to the journal is durable, and what follows from that is done.
    fn settle(&mut self) {
        loop {
            self.group.flush(&mut self.io);
            let (placed, refused) = self.io.journal.submit();
            self.io.journal.commit();
            assert!(refused.is_none(), "{refused:?}");
            let is_idle = placed.is_empty() && self.group.replica.durable_offset() == self.end();
            placed.into_iter().for_each(|one| self.group.placed(one));
            let patience = Duration::from_millis(if is_idle { 200 } else { 20_000 });
            let Ok(event) = self.events.recv_timeout(patience) else {
                assert!(is_idle, "the journal is silent");
                return;
            };
            if let quorate_journal::Event::Durable { tag, .. } = event {
                for durable in self.io.journal.completed(tag) {
                    self.group.durable(&mut self.io, durable);
                }
            }
        }
    }

    fn end(&self) -> u64 {
        self.group.replica.log().next_offset()
    }

    fn append(&mut self, session: u64, seq: u64) {
        let payload = payload(seq);
        let request = AppendRequest {
            client: CLIENT,
            session,
            seq,
            floor_index: 0,
            expected_offset: NO_EXPECTED_OFFSET,
            fencing_token: 0,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            payload,
            received_us: 0,
            wall_us: 0,
            trace: None,
        };
        self.group.step(&mut self.io, Event::Append(request));
    }

    fn read(&self, index: Index) -> Bytes {
        let place = self.group.places.get(index).expect("its place is known");
        let read = read_batches(&self.io.journal.journal(), None, GROUP, &[place]).remove(0);
        read.expect("it is there")
    }
}

#[test]
fn a_log_that_begins_anew_is_whole_here_on_disk_and_after_a_restart() {
    let dir = std::env::temp_dir().join(format!("quorate-anew-{}", std::process::id()));
    let replica = Replica::new(ME, Durability::Persistent);
    let mut server = server_of(&dir, replica);
    server.group.configure(&mut server.io, config(1, None));
    for seq in 1..=TRIMMED + 2 {
        server.append(7, seq);
        server.settle();
    }
    let asked = Asked::Trim {
        before_offset: TRIMMED,
    };
    let (client, request) = (CLIENT, 1);
    server.group.step(
        &mut server.io,
        Event::Ask {
            client,
            request,
            asked,
        },
    );
    server.settle();
    assert_eq!(server.group.replica.trim_offset(), TRIMMED);
    assert_eq!(server.group.places.get(TRIMMED), None, "a base is durable");

    let begins = Beginning {
        epoch: 5,
        offset: 1 << 40,
        entries_before: 0,
        bytes_before: 0,
    };
    // The last of the lost log are on their way still.
    server.append(7, TRIMMED + 3);
    server.group.configure(&mut server.io, config(5, Some(begins)));
    for seq in 1..=3 {
        server.append(8, seq);
    }
    server.settle();
    let check = |server: &Server| {
        let replica = &server.group.replica;
        assert_eq!(
            (
                replica.trim_offset(),
                replica.log().first_index(),
                replica.log().last_index()
            ),
            (1 << 40, 2, 4)
        );
        for index in 2..=4 {
            assert_eq!(server.read(index), payload(index - 1), "batch {index}");
        }
        assert_eq!(
            server.group.places.get(TRIMMED + 1),
            None,
            "nothing of the lost log"
        );
    };
    check(&server);
    assert_eq!(server.group.replica.commit_offset(), (1 << 40) + 3);

    drop(server);
    let (journal, mut recovered) = open(&dir);
    let found = recovered.groups.remove(&GROUP).expect("it is held");
    assert_eq!(found.state, State::Whole);
    assert_eq!(found.replica.commit_index(), 1, "the disk proves no more");
    let mut server = self::server(journal, found.replica, found.places);
    check(&server);
    server.group.configure(&mut server.io, config(6, Some(begins)));
    server.append(8, 4);
    server.settle();
    assert_eq!(server.group.replica.commit_offset(), (1 << 40) + 4);
    assert_eq!(server.read(5), payload(4));
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

fn server_of(dir: &Path, replica: Replica) -> Server {
    server(open(dir).0, replica, Places::default())
}

/// The shard of a client's connection, beside that of the group.
struct Far {
    told: UnboundedReceiver<ShardMessage>,
    backlog: Arc<Backlog>,
}

impl Far {
    /// Of what the client is told: the requests that are refused, and how.
    fn refused(&mut self) -> Vec<(u8, u64, u16)> {
        let mut refused = Vec::new();
        while let Ok(told) = self.told.try_recv() {
            if let ShardMessage::ToClient { message, .. } = told
                && let Message::Refused(refusal) = message
            {
                refused.push((refusal.op, refusal.id, refusal.code));
            }
        }
        refused
    }
}

impl Server {
    fn far(&mut self, session: u64) -> Far {
        let (near, _) = unbounded_channel();
        let (tell, told) = unbounded_channel();
        self.io.shared.set_shards(vec![near, tell]);
        let far = Far {
            told,
            backlog: Arc::default(),
        };
        let permission = Permission {
            may_append: true,
            may_read: true,
            project: None,
            expires_at_s: u64::MAX,
        };
        let request = ClientRequest::Attach {
            number: 1,
            session,
            permission,
        };
        self.io.crossings.note(FAR, &request, far.backlog.clone());
        self.group.client_request(&mut self.io, FAR, request);
        far
    }

    fn asked(&mut self, message: Message) {
        let request = ClientRequest::Message { message, trace: None };
        self.group.client_request(&mut self.io, FAR, request);
        self.group.flush(&mut self.io);
    }

    /// A subscription and a read, both of which wait for the disk.
    fn read_from_disk(&mut self) -> Vec<crate::shard::reads::DiskRead> {
        self.asked(Message::Subscribe {
            request: 1,
            credit_bytes: 1 << 20,
            offset: 0,
        });
        self.asked(Message::Read {
            request: 2,
            max_bytes: 0,
            max_entries: 0,
            wait_ms: 0,
            offset: 0,
        });
        let reads: Vec<_> = std::iter::from_fn(|| self.work.disk_reads.try_recv().ok()).collect();
        assert_eq!(reads.len(), 2, "what they want is on disk only");
        reads
    }
}

/// More than is kept in memory: the first batches are on disk only.
fn grown(dir: &Path) -> Server {
    let mut server = server_of(dir, Replica::new(ME, Durability::Persistent));
    server.group.configure(&mut server.io, config(1, None));
    let batches = RECENT_BYTES_PER_GROUP / ENTRY_BYTES as u64 + 4;
    for seq in 1..=batches {
        server.append(7, seq);
        if seq % 5 == 0 {
            server.settle();
        }
    }
    server.settle();
    assert_eq!(server.group.replica.commit_offset(), batches);
    server
}

fn folder(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()))
}

#[test]
fn readers_that_wait_for_the_disk_are_told_that_the_group_leaves_and_nothing_after_that() {
    let dir = folder("leaves");
    let mut server = grown(&dir);
    let mut far = server.far(0);
    let reads = server.read_from_disk();
    server.group.abandon(&mut server.io);
    let code = Code::GroupNotHere as u16;
    let mut refused = far.refused();
    refused.sort_unstable();
    let mut expected = [(kind::SUBSCRIBE, 1, code), (kind::READ, 2, code)];
    expected.sort_unstable();
    assert_eq!(refused, expected);
    // The group comes back, and the client to it, before the disk has answered.
    let life = server.io.new_life();
    let replica = Replica::new(ME, Durability::Persistent);
    server.group = Group::new(GROUP, replica, Places::default(), life, now_us());
    for read in reads {
        server.group.disk_read_done(&mut server.io, read, Vec::new());
    }
    assert_eq!(far.refused(), [], "it asked nothing of this one");
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_channel_that_a_head_turns_away_leaves_nothing_behind() {
    let dir = folder("turns-away");
    let mut server = server_of(&dir, Replica::new(ME, Durability::Persistent));
    let mut two = config(1, None);
    two.replication_degree = 2;
    two.replicas.push(Member {
        server_id: ServerId(2),
        address: "there".to_string(),
    });
    server.group.configure(&mut server.io, two);
    let (start, mut commands) = (now_us(), Vec::new());
    let replica = &mut server.group.replica;
    replica.step(start, Event::CoordinatorSilent(true), &mut commands);
    for tick in 0..=8 {
        let now = start + tick * RING_STALL_MS * 1_000 / 4;
        replica.step(now, Event::Tick { wall_us: 0 }, &mut commands);
    }
    assert!(replica.is_cut_off());
    let mut far = server.far(9);
    assert_eq!(far.refused(), [(kind::ATTACH, 0, Code::CutOff as u16)]);
    assert_eq!(Arc::strong_count(&far.backlog), 1, "the connection's own");
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Counts what is said as an error.
struct Errors(Arc<AtomicUsize>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn records_that_are_lost_together_are_told_in_one_line() {
    let dir = folder("lost-together");
    let mut server = grown(&dir);
    let said = Arc::new(AtomicUsize::new(0));
    let damaged = (1..=3).map(|index| (index, None)).collect();
    tracing::subscriber::with_default(Errors(said.clone()), || {
        server.group.repair(&mut server.io, damaged);
    });
    assert_eq!(said.load(Ordering::Relaxed), 1);
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}
