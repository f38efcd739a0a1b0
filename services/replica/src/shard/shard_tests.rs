//! A shard on a real journal. A group that is dropped and comes again stands when the journal has the drop. A group
//! whose log is reset keeps, finds and reads back later appends. A group that leaves tells its readers so, once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::Replica;
use quorate_group::Lack;
use quorate_journal::{Journal, JournalOptions};
use quorate_recovery::{LogState, Places, Recovered, Scan};
use quorate_types::config::{Beginning, Member};
use quorate_types::cost::{Budget, EntryCost};
use quorate_types::limits::{RECENT_BYTES_PER_GROUP, RING_STALL_MS};
use quorate_types::{Access, Code, Epoch, GroupConfig, GroupState, Index, Permission};
use quorate_wire::client::{Append, Message, NO_EXPECTED_OFFSET, kind};
use quorate_wire::peer::{self, SyncReply};
use uuid::Uuid;

use super::disk::DiskReader;
use super::test_shard::{TestShard, on_journal};
use super::*;
use crate::backlog::Backlog;

const GROUP: GroupId = GroupId(Uuid::from_u128(7));
const ME: ServerId = ServerId(1);
const OTHER: ServerId = ServerId(2);
const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
/// A client of a connection of shard 1; the group is on shard 0.
const REMOTE: ClientRef = ClientRef {
    connection: 1 << 56 | 1,
    channel: 1,
};
const ENTRY_BYTES: usize = 1 << 20;
/// A base is written after 16 MiB that are trimmed.
const TRIMMED: u64 = 18;
const PERMISSION: Permission = Permission {
    may_append: true,
    may_read: true,
    project: None,
    layout: quorate_types::Layout(0),
    expires_at_s: u64::MAX,
};

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()))
}

fn open(dir: &Path) -> (Arc<Journal>, Recovered) {
    let options = JournalOptions {
        segment_bytes: 64 << 20,
        ..JournalOptions::default()
    };
    let mut scan = Scan::new(ME);
    let (journal, recovery) = Journal::open(dir, options, |record| scan.record(&record).unwrap()).unwrap();
    (Arc::new(journal), scan.finish(&recovery))
}

fn member(server_id: ServerId) -> Member {
    Member {
        server_id,
        address: "here".to_string(),
    }
}

fn config(epoch: Epoch, replicas: &[ServerId], learners: &[ServerId]) -> GroupConfig {
    let free = EntryCost {
        fixed_milli: [0; 3],
        per_byte_milli: [0; 3],
    };
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::Persistent,
        replication_degree: 1,
        min_replicas: 1,
        replicas: replicas.iter().copied().map(member).collect(),
        learners: learners.iter().copied().map(member).collect(),
        budget: Budget::for_rate(1, 1, free),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
        access: Access::Full,
        layout: quorate_types::Layout::default(),
    }
}

fn payload(seq: u64) -> Bytes {
    let mut bytes = ((ENTRY_BYTES - 4) as u32).to_le_bytes().to_vec();
    bytes.resize(ENTRY_BYTES, seq as u8);
    bytes.into()
}

/// A shard, and what its journal has done.
struct Server {
    test: TestShard,
    journal: Arc<Journal>,
    events: Receiver<quorate_journal::Event>,
}

impl Server {
    fn new(dir: &Path) -> Self {
        Self::on(open(dir).0)
    }

    fn on(journal: Arc<Journal>) -> Self {
        let (done, events) = channel();
        let test = on_journal(journal.clone(), 2, move |event| {
            let _over = done.send(event).is_err();
        });
        Self {
            test,
            journal,
            events,
        }
    }

    fn shard(&mut self) -> &mut Shard {
        &mut self.test.shard
    }

    fn replica(&self) -> &Replica {
        self.test.shard.groups[&GROUP].core.replica()
    }

    fn places(&self) -> &Places {
        &self.test.shard.groups[&GROUP].records.places
    }

    /// Until all that was given to the journal is durable, and what follows from that is done.
    fn settle(&mut self) {
        loop {
            self.shard().flush();
            let is_idle = self.test.shard.executor.disk.port.is_idle();
            let patience = Duration::from_millis(if is_idle { 200 } else { 20_000 });
            let Ok(event) = self.events.recv_timeout(patience) else {
                assert!(is_idle, "the journal is silent");
                return;
            };
            self.shard().message(ShardMessage::Journal(event));
        }
    }

    fn request(&mut self, client: ClientRef, request: Request) {
        self.shard().group_request(GROUP, client, request);
    }

    fn ask(&mut self, client: ClientRef, message: Message) {
        self.request(client, Request::Message { message, trace: None });
        self.shard().flush();
    }

    fn attach(&mut self, client: ClientRef, session: u64) {
        self.request(
            client,
            Request::Attach {
                number: 1,
                session,
                permission: PERMISSION,
            },
        );
    }

    fn append(&mut self, seq: u64) {
        let payload = payload(seq);
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
        self.request(
            CLIENT,
            Request::Message {
                message: Message::Append(append),
                trace: None,
            },
        );
    }

    fn read(&self, index: Index) -> Bytes {
        let place = self.places().get(index).expect("its place is known");
        let reader = DiskReader {
            journal: self.journal.clone(),
            logs: None,
        };
        reader.read(GROUP, &[place]).remove(0).expect("it is there")
    }

    /// A client of another shard's connection; its backlog.
    fn remote(&mut self, session: u64) -> Arc<Backlog> {
        let backlog = Arc::<Backlog>::default();
        let request = Request::Attach {
            number: 1,
            session,
            permission: PERMISSION,
        };
        self.shard()
            .executor
            .clients
            .note_remote(REMOTE, &request, backlog.clone());
        self.request(REMOTE, request);
        backlog
    }

    /// The remote client's refusals since the last call: kind, number, code.
    fn refused(&mut self) -> Vec<(u8, u64, u16)> {
        let mut refused = Vec::new();
        while let Ok(message) = self.test.other.try_recv() {
            if let ShardMessage::Client(ClientMessage::Answer {
                message: Message::Refused(one),
                ..
            }) = message
            {
                refused.push((one.op, one.id, one.code));
            }
        }
        refused.sort_unstable();
        refused
    }

    /// Request 1 of the remote client.
    fn subscribe(&mut self) {
        let subscribe = Message::Subscribe {
            request: 1,
            credit_bytes: 1 << 20,
            offset: 0,
        };
        self.ask(REMOTE, subscribe);
    }

    /// Request 2 of the remote client.
    fn read_first(&mut self, wait_ms: u32) {
        let read = Message::Read {
            request: 2,
            max_bytes: 0,
            max_entries: 0,
            wait_ms,
            offset: 0,
        };
        self.ask(REMOTE, read);
    }

    /// A subscription and a read, both of which wait for the disk.
    fn read_from_disk(&mut self) -> Vec<DiskWork> {
        self.subscribe();
        self.read_first(0);
        let reads: Vec<_> = std::iter::from_fn(|| self.test.work.try_recv().ok()).collect();
        assert_eq!(reads.len(), 2, "what they want is on disk only");
        reads
    }
}

/// More than is kept in memory: the first batches are on disk only.
fn grown(dir: &Path) -> Server {
    let mut server = Server::new(dir);
    server.shard().configure(config(1, &[ME], &[]));
    server.attach(CLIENT, 7);
    let batches = RECENT_BYTES_PER_GROUP / ENTRY_BYTES as u64 + 4;
    for seq in 1..=batches {
        server.append(seq);
        if seq % 5 == 0 {
            server.settle();
        }
    }
    server.settle();
    assert_eq!(server.replica().commit_offset(), batches);
    server
}

/// A turn that did not end would have time stand still.
fn time_passes(shard: &mut Shard) {
    shard.prepare_turn();
    let before = shard.turn.now_us;
    while clock::now_us() <= before {}
    shard.prepare_turn();
    assert!(shard.turn.now_us > before);
}

#[test]
fn in_a_turn_time_stands_still() {
    let dir = folder("turn");
    let mut server = Server::new(&dir);
    let shard = server.shard();
    time_passes(shard);
    shard.begin_turn();
    let (now, wall_us) = (shard.turn.now_us, shard.turn.wall_us);
    while clock::now_us() <= now || clock::wall_us() <= wall_us {}
    shard.prepare_turn();
    assert_eq!((shard.turn.now_us, shard.turn.wall_us), (now, wall_us));
    shard.end_turn();
    time_passes(shard);
    assert!(shard.turn.wall_us > wall_us);
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_group_that_comes_again_stands_behind_its_drop() {
    let dir = folder("again");
    let mut server = Server::new(&dir);
    server.shard().configure(config(1, &[ME], &[]));
    server.shard().flush();
    server.shard().drop_group(GROUP, 1);
    server.shard().configure(config(3, &[OTHER], &[ME]));
    // The answer of an empty log's predecessor to the only question that was asked.
    let reply = SyncReply {
        nonce: 1,
        common_index: 0,
        last_index: 0,
        commit_index: 0,
        base: None,
    };
    let message = peer::Message::SyncReply(reply);
    server.shard().peer_envelope(
        OTHER,
        Envelope {
            group_id: GROUP,
            epoch: 3,
            message,
        },
    );
    server.shard().flush();
    assert_eq!(
        server.replica().state(),
        GroupState::Syncing,
        "a restart would bring it back"
    );
    while server.replica().state() == GroupState::Syncing {
        let event = server
            .events
            .recv_timeout(Duration::from_secs(20))
            .expect("the journal is silent");
        server.shard().message(ShardMessage::Journal(event));
        server.shard().flush();
    }
    assert!(!server.shard().executor.disk.port.is_dropping(GROUP));
    time_passes(server.shard());
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_log_that_is_reset_is_whole_here_on_disk_and_after_a_restart() {
    let dir = folder("reset");
    let mut server = Server::new(&dir);
    server.shard().configure(config(1, &[ME], &[]));
    server.attach(CLIENT, 7);
    for seq in 1..=TRIMMED + 2 {
        server.append(seq);
        server.settle();
    }
    server.ask(
        CLIENT,
        Message::Trim {
            request: 1,
            before_offset: TRIMMED,
        },
    );
    server.settle();
    assert_eq!(server.replica().trim_offset(), TRIMMED);
    assert_eq!(server.places().get(TRIMMED), None, "a base is durable");

    let beginning = Beginning {
        epoch: 5,
        offset: 1 << 40,
        entries_before: 0,
        bytes_before: 0,
    };
    let reset = GroupConfig {
        beginning: Some(beginning),
        ..config(5, &[ME], &[])
    };
    // The last of the lost log are on their way still.
    server.append(TRIMMED + 3);
    server.shard().configure(reset.clone());
    server.attach(CLIENT, 8);
    for seq in 1..=3 {
        server.append(seq);
    }
    server.settle();
    check_reset(&server);
    assert_eq!(server.replica().commit_offset(), (1 << 40) + 3);

    drop(server);
    let (journal, mut recovered) = open(&dir);
    let found = recovered.groups.remove(&GROUP).expect("it is held");
    assert_eq!(found.state, LogState::Whole);
    assert_eq!(found.replica.commit_index(), 1, "the disk proves no more");
    let mut server = Server::on(journal);
    server
        .shard()
        .recovered(GROUP, found.replica, found.places, false);
    check_reset(&server);
    server.shard().configure(GroupConfig { epoch: 6, ..reset });
    server.attach(CLIENT, 8);
    server.append(4);
    server.settle();
    assert_eq!(server.replica().commit_offset(), (1 << 40) + 4);
    assert_eq!(server.read(5), payload(4));
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

fn check_reset(server: &Server) {
    let replica = server.replica();
    let log = replica.log();
    assert_eq!(
        (replica.trim_offset(), log.first_index(), log.last_index()),
        (1 << 40, 2, 4)
    );
    for index in 2..=4 {
        assert_eq!(server.read(index), payload(index - 1), "batch {index}");
    }
    assert_eq!(server.places().get(TRIMMED + 1), None, "nothing of the lost log");
}

#[test]
fn readers_that_wait_for_the_disk_get_the_refusal_of_a_leaving_group_and_nothing_after_that() {
    let dir = folder("leaves");
    let mut server = grown(&dir);
    server.remote(0);
    let reads = server.read_from_disk();
    server.shard().drop_group(GROUP, 1);
    let code = Code::GroupNotHere as u16;
    let mut expected = [(kind::SUBSCRIBE, 1, code), (kind::READ, 2, code)];
    expected.sort_unstable();
    assert_eq!(server.refused(), expected);
    // The group comes back, and the client to it with the same numbers, before the disk has answered.
    server.shard().configure(config(2, &[ME], &[]));
    server.remote(0);
    server.subscribe();
    server.read_first(1_000);
    for work in reads {
        let DiskWork::Page { read, .. } = work else {
            panic!("a page was asked for")
        };
        let payloads = read.lacking().map(|_| Err(Lack::Trimmed)).collect();
        server.shard().event(GROUP, Event::PageRead { read, payloads });
    }
    assert_eq!(server.refused(), [], "it asked nothing of this one");
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_channel_that_a_head_turns_away_leaves_nothing_behind() {
    let dir = folder("turns-away");
    let mut server = Server::new(&dir);
    let two = GroupConfig {
        replication_degree: 2,
        ..config(1, &[ME, OTHER], &[])
    };
    server.shard().configure(two);
    let start = clock::now_us();
    server.shard().is_in_turn = true; // the clock is this test's
    for tick in 0..=8 {
        server.shard().turn.now_us = start + tick * RING_STALL_MS * 1_000 / 4;
        server.shard().event(
            GROUP,
            Event::Tick {
                is_coordinator_silent: true,
            },
        );
    }
    assert!(server.replica().is_isolated());
    let backlog = server.remote(9);
    assert_eq!(server.refused(), [(kind::ATTACH, 0, Code::CutOff as u16)]);
    assert_eq!(Arc::strong_count(&backlog), 1, "the connection's own");
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Counts errors in the log.
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
fn records_that_are_lost_together_are_logged_in_one_line() {
    let dir = folder("lost-together");
    let mut server = grown(&dir);
    let said = Arc::new(AtomicUsize::new(0));
    let damaged = (1..=3).map(|index| (index, None)).collect();
    tracing::subscriber::with_default(Errors(said.clone()), || {
        server.shard().event(GROUP, Event::Damaged(damaged));
    });
    assert_eq!(said.load(Ordering::Relaxed), 1);
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

/// A connection to a peer: the peer's end, and this server's way to it.
async fn connected() -> (tokio::net::TcpStream, std::rc::Rc<quorate_transport::WriteHalf>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = tokio::net::TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let (_, stream) = quorate_transport::plain(accepted);
    (peer, std::rc::Rc::new(stream))
}

/// The kind of the first frame that the peer gets, signs of life aside.
async fn first_kind(peer: &tokio::net::TcpStream) -> u8 {
    let mut bytes = bytes::BytesMut::with_capacity(1 << 10);
    loop {
        tokio::time::timeout(Duration::from_secs(5), peer.readable())
            .await
            .expect("a frame comes")
            .unwrap();
        if peer.try_read_buf(&mut bytes).is_err() {
            continue;
        }
        while let Some(frame) = quorate_wire::decode_frame(&mut bytes, u32::MAX).unwrap() {
            if frame.kind != peer::kind::ALIVE {
                return frame.kind;
            }
        }
    }
}

/// Links that the other shard was told of: whether each is up.
fn told(other: &mut tokio::sync::mpsc::UnboundedReceiver<ShardMessage>) -> Vec<bool> {
    let messages = std::iter::from_fn(|| other.try_recv().ok());
    let changes = messages.filter_map(|message| match message {
        ShardMessage::Link(LinkMessage::Up(OTHER)) => Some(true),
        ShardMessage::Link(LinkMessage::Down(OTHER)) => Some(false),
        _ => None,
    });
    changes.collect()
}

#[test]
fn groups_hear_of_a_link_before_its_frames_and_first_of_the_end_of_the_one_that_it_replaces() {
    let dir = folder("links-in-order");
    let (journal, _) = open(&dir);
    let TestShard {
        mut shard, mut other, ..
    } = on_journal(journal, 2, |_| {});
    shard.configure(config(1, &[OTHER, ME], &[]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for changes in [&[true][..], &[false, true]] {
            let (peer, stream) = connected().await;
            shard.open_link(OTHER, stream, 2);
            shard.flush();
            // The group asks its predecessor before any message of the shard's inbox is taken.
            assert_eq!(first_kind(&peer).await, peer::kind::SYNC_REQUEST);
            assert_eq!(told(&mut other), changes);
        }
    });
    drop(runtime);
    drop(shard); // its journal writes until then
    std::fs::remove_dir_all(&dir).unwrap();
}
