//! A group that is lost and begins anew, on a real journal: what is appended then is kept, found, and read back.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use quorate_chain::Asked;
use quorate_journal::{Journal, Options};
use quorate_replica_log::{Recovered, Scan, State};
use quorate_types::ServerId;
use quorate_types::config::{Beginning, Member};
use quorate_types::cost::AppendCost;
use quorate_wire::client::NO_EXPECTED_OFFSET;
use uuid::Uuid;

use super::*;
use crate::disk::JournalPort;
use crate::shard::repair::read_batches;
use crate::shared::{Plaintext, Shared};

const GROUP: GroupId = GroupId(Uuid::from_u128(7));
const ME: ServerId = ServerId(1);
const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
const ENTRY_BYTES: usize = 1 << 20;
/// A base is written after 16 MiB that are trimmed.
const TRIMMED: u64 = 18;

struct Server {
    io: Io,
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
    let (news, _) = tokio::sync::mpsc::unbounded_channel();
    let shared = Shared::new("i1".to_string(), plaintext, news, None);
    let (mut io, _) = Io::new(0, Arc::new(shared), port);
    let life = io.new_life();
    let group = Group::new(GROUP, replica, places, life, now_us());
    Server { io, group, events }
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
