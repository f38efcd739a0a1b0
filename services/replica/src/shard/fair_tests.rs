//! Turns between tenants, on real sockets: one tenant floods, another is served as if it did not.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdTcpStream;
use std::time::Instant;

use bytes::BytesMut;
use quorate_qos::Tenant;
use quorate_types::config::Member;
use quorate_types::cost::{Budget, EntryCost};
use quorate_types::{Access, Durability, GroupConfig, Permission, ServerId};
use quorate_wire::client::{Append, NO_EXPECTED_OFFSET};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local, yield_now};
use uuid::Uuid;

use super::*;
use crate::shard::run::let_next_read;
use crate::shard::test_shard::test_shard;

pub const FLOOD: GroupId = GroupId(Uuid::from_u128(7));
pub const OTHER: GroupId = GroupId(Uuid::from_u128(8));
const ME: ServerId = ServerId(1);
pub const CHANNEL: u32 = 1;
/// Ten microseconds of the thread, so that a round of two tenants is a hundred of each.
pub const COST: EntryCost = EntryCost {
    fixed_milli: [10_000_000, 0, 0],
    per_byte_milli: [0; 3],
};
pub const ENTRY_BYTES: usize = 1_000;
pub const FLOODING: usize = 40;
const APPENDS_EACH: u64 = 200;
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Both reserved the same; the flood's buckets hold nothing, so that all it appends is refused.
pub fn config(group_id: GroupId) -> GroupConfig {
    let mut budget = Budget::for_rate(10_000, ENTRY_BYTES as u32, COST);
    if group_id == FLOOD {
        budget.tokens_per_s_milli = [0; 3];
    }
    let me = Member {
        server_id: ME,
        address: "here".to_string(),
    };
    GroupConfig {
        group_id,
        epoch: 1,
        durability: Durability::InMemory,
        replication_degree: 1,
        min_replicas: 1,
        replicas: vec![me],
        learners: Vec::new(),
        budget,
        retention_bytes: 64 << 20,
        retention_age_s: None,
        beginning: None,
        access: Access::Full,
        layout: quorate_types::Layout::default(),
    }
}

fn shard(dir: &std::path::Path) -> Shard {
    let mut shard = test_shard(dir, |_| {}).shard;
    shard.configure(config(FLOOD));
    shard.configure(config(OTHER));
    shard.flush();
    shard
}

/// A connection that is served; what is at the other end, and its number.
pub async fn connect(shard: &Rc<RefCell<Shard>>, listener: &TcpListener) -> (StdTcpStream, u64) {
    let client = StdTcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let before: HashSet<u64> = shard.borrow().executor.clients.ids().collect();
    let slot = shard.borrow().shared().connections.take().unwrap();
    let halves = quorate_transport::plain(accepted);
    spawn_local(run(shard.clone(), halves, Bytes::new(), slot, 1));
    loop {
        let new = shard
            .borrow()
            .executor
            .clients
            .ids()
            .find(|id| !before.contains(id));
        match new {
            Some(id) => return (client, id),
            None => yield_now().await,
        }
    }
}

/// As an ATTACH whose token was good.
pub fn attach(shard: &mut Shard, connection: u64, group_id: GroupId, tenant: Tenant) {
    let cost = shard.shared().group_costs.get(group_id);
    let client = ClientRef {
        connection,
        channel: CHANNEL,
    };
    let number = shard.executor.clients.attach_as(client, group_id, tenant, cost);
    let permission = Permission {
        may_append: true,
        may_read: true,
        project: None,
        layout: quorate_types::Layout(0),
        expires_at_s: u64::MAX,
    };
    let request = Request::Attach {
        number,
        session: connection,
        permission,
    };
    shard.group_request(group_id, client, request);
}

pub fn appends(count: u64) -> Vec<u8> {
    let mut payload = (ENTRY_BYTES as u32).to_le_bytes().to_vec();
    payload.resize(4 + ENTRY_BYTES, 9);
    let payload = Bytes::from(payload);
    let mut bytes = BytesMut::new();
    for seq in 1..=count {
        let append = Message::Append(Append {
            seq,
            floor_index: 0,
            timeout_ms: 1_000,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            expected_offset: NO_EXPECTED_OFFSET,
            fencing_token: 0,
            payload: payload.clone(),
        });
        let payloads: Vec<Bytes> = append.encode(CHANNEL, None, &mut bytes).into_iter().collect();
        payloads
            .iter()
            .for_each(|payload| bytes.extend_from_slice(payload));
    }
    bytes.to_vec()
}

/// A client's end of a connection.
pub struct Client {
    stream: StdTcpStream,
    /// The connection's number in the shard.
    pub id: u64,
    unread: BytesMut,
    answers: Answers,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Answers {
    pub acked: u64,
    pub refused: u64,
    pub pages: u64,
}

impl Client {
    pub fn new(stream: StdTcpStream, id: u64) -> Self {
        Self {
            stream,
            id,
            unread: BytesMut::new(),
            answers: Answers::default(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a socket holds so much");
    }

    /// The answers that have come so far.
    pub fn answers(&mut self) -> Answers {
        let mut buffer = [0; 65_536];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => self.unread.extend_from_slice(&buffer[..read]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        let answers = &mut self.answers;
        while let Some(frame) = quorate_wire::decode_frame(&mut self.unread, FRAME_BYTES_MAX).unwrap() {
            match Message::decode(&frame).unwrap() {
                Message::Acked(acks) => answers.acked += acks.len() as u64,
                Message::Refused(_) => answers.refused += 1,
                Message::Entries(_) => answers.pages += 1,
                _ => {}
            }
        }
        *answers
    }
}

fn offered(shard: &Rc<RefCell<Shard>>, group_id: GroupId) -> u64 {
    shard.borrow().groups[&group_id].core.totals().offered_entries
}

/// Forty connections have their sockets full of appends that will all be refused; then another's come on one connection,
/// last of all. How many of the flood's were read before all of the other's were committed.
fn read_before(name: &str, flooding: Tenant, other: Tenant) -> u64 {
    let dir = std::env::temp_dir().join(format!("quorate-fair-{name}-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let shard = Rc::new(RefCell::new(shard(&dir)));
    let before = Rc::new(Cell::new(None));
    LocalSet::new().block_on(&runtime, async {
        spawn_local(flush(shard.clone(), before.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut flood = Vec::new();
        for _ in 0..FLOODING {
            let (client, id) = connect(&shard, &listener).await;
            attach(&mut shard.borrow_mut(), id, FLOOD, flooding);
            flood.push(Client::new(client, id));
        }
        let (mut calm, id) = connect(&shard, &listener).await;
        attach(&mut shard.borrow_mut(), id, OTHER, other);
        shard.borrow_mut().executor.clients.weigh_tenants();
        // From here on nothing runs before all that is to be read is in sockets.
        let bytes = appends(APPENDS_EACH);
        for client in &mut flood {
            client.send(&bytes);
        }
        calm.write_all(&bytes).expect("a socket holds so much");
        // Nothing is lost: the rest of the flood is read, too.
        let began = Instant::now();
        while before.get().is_none() || offered(&shard, FLOOD) < FLOODING as u64 * APPENDS_EACH {
            assert!(
                began.elapsed() < PATIENCE,
                "{} of the flood were read",
                offered(&shard, FLOOD)
            );
            yield_now().await;
        }
        let answers = flood[0].answers();
        assert!(answers.acked == 0 && answers.refused > 0, "{answers:?}");
        assert_eq!(shard.borrow().executor.clients.ids().count(), FLOODING + 1);
    });
    drop(shard);
    std::fs::remove_dir_all(dir).unwrap();
    before.get().expect("both were read")
}

/// As the shard's own, and notes how far the flood is when the other's appends are committed.
async fn flush(shard: Rc<RefCell<Shard>>, before: Rc<Cell<Option<u64>>>) {
    let wake = shard.borrow().flush_wake.clone();
    loop {
        wake.woken().await;
        shard.borrow_mut().flush();
        let committed = shard.borrow().groups[&OTHER].core.replica().commit_offset();
        if before.get().is_none() && committed == APPENDS_EACH {
            before.set(Some(offered(&shard, FLOOD)));
        }
        let_next_read(&shard).await;
    }
}

#[test]
fn a_flood_of_one_tenant_does_not_keep_another_waiting() {
    let apart = read_before("apart", Tenant(1), Tenant(2));
    // As much as the other, what a first round alone holds, and a read of each of the rounds.
    assert!(
        apart <= 4 * APPENDS_EACH,
        "{apart} appends of the flood came first"
    );
    assert!(apart >= APPENDS_EACH / 4, "the flood has its share: {apart}");
    // Within one tenant connections take turns.
    let together = read_before("together", Tenant(1), Tenant(1));
    assert!(together > 8 * APPENDS_EACH, "{together}: the test tells nothing");
}
