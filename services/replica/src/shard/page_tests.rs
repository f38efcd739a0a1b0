//! Pages in turn, on real sockets: one tenant reads as much as it can, another gets its own as if it did not.

use std::rc::Rc;
use std::time::Instant;

use bytes::BytesMut;
use quorate_qos::Tenant;
use quorate_types::Code;
use quorate_types::cost::{Budget, ReadBudget, ShortBatch};
use quorate_types::limits::{CLIENT_OUTBOX_BYTES_MAX, CLIENT_PAGES_BYTES_MAX};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local, yield_now};

use super::fair_tests::*;
use super::*;
use crate::shard::run::let_next_read;
use crate::shard::test_shard::test_shard;

const READS_EACH: u64 = 200;

/// Both reserve reads, one entry each: ten microseconds of the thread.
fn shard_with_reads(dir: &std::path::Path) -> Shard {
    let mut shard = test_shard(dir, |_| {}).shard;
    for group_id in [FLOOD, OTHER] {
        let reads = ReadBudget {
            rate_per_s: 10_000,
            reserved_milli: COST.fixed_milli.map(|milli| milli * 10_000),
            cost: COST,
            short_page: ShortBatch::default(),
            from_disk: COST,
        };
        let mut config = config(group_id);
        config.budget = Budget {
            reads: Some(Box::new(reads)),
            ..Budget::for_rate(10_000, ENTRY_BYTES as u32, COST)
        };
        shard.configure(config);
    }
    shard.flush();
    shard
}

fn reads(count: u64) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    for request in 1..=count {
        let read = Message::Read {
            request: request as u32,
            max_bytes: 0,
            max_entries: 1,
            wait_ms: 0,
            offset: 0,
        };
        let payloads = read.encode(CHANNEL, None, &mut bytes).len();
        assert_eq!(payloads, 0, "a READ carries none");
    }
    bytes.to_vec()
}

async fn flush(shard: Rc<RefCell<Shard>>) {
    let wake = shard.borrow().flush_wake.clone();
    loop {
        wake.woken().await;
        shard.borrow_mut().flush();
        let_next_read(&shard).await;
    }
}

/// A connection of the tenant whose group has an entry.
async fn reader(
    shard: &Rc<RefCell<Shard>>,
    listener: &TcpListener,
    group_id: GroupId,
    tenant: Tenant,
) -> Client {
    let (stream, id) = connect(shard, listener).await;
    attach(&mut shard.borrow_mut(), id, group_id, tenant);
    let mut client = Client::new(stream, id);
    client.send(&appends(1));
    while client.answers().acked == 0 {
        yield_now().await;
    }
    client
}

fn with_shard<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Rc<RefCell<Shard>>, TcpListener) -> F) {
    let dir = std::env::temp_dir().join(format!("quorate-pages-{name}-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let shard = Rc::new(RefCell::new(shard_with_reads(&dir)));
    LocalSet::new().block_on(&runtime, async {
        spawn_local(flush(shard.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        test(shard.clone(), listener).await;
    });
    drop(shard);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Pages that the flood got before the other had all of its own.
fn read_before(name: &'static str, flooding: Tenant, other: Tenant) -> u64 {
    let before = Rc::new(std::cell::Cell::new(0));
    let found = before.clone();
    with_shard(name, async move |shard, listener| {
        let mut flood = Vec::new();
        for _ in 0..FLOODING {
            flood.push(reader(&shard, &listener, FLOOD, flooding).await);
        }
        let mut calm = reader(&shard, &listener, OTHER, other).await;
        shard.borrow_mut().executor.clients.weigh_tenants();
        for client in &mut flood {
            client.send(&reads(READS_EACH));
        }
        calm.send(&reads(READS_EACH));
        let began = Instant::now();
        while calm.answers().pages < READS_EACH {
            assert!(began.elapsed() < PATIENCE, "{} pages", calm.answers().pages);
            yield_now().await;
        }
        found.set(flood.iter_mut().map(|client| client.answers().pages).sum());
        let sample = shard.borrow_mut().sample();
        let of_other = sample.groups.iter().find(|sample| sample.group == OTHER);
        let totals = of_other.expect("it is here").totals;
        assert_eq!(
            totals.owed_read_entries, READS_EACH,
            "all were within the reservation"
        );
        assert!(
            sample.counts.owed_reads > READS_EACH,
            "the flood has a reservation, too"
        );
        while flood.iter_mut().map(|client| client.answers().pages).sum::<u64>()
            < FLOODING as u64 * READS_EACH
        {
            assert!(began.elapsed() < PATIENCE, "nothing is lost");
            yield_now().await;
        }
    });
    before.get()
}

#[test]
fn a_flood_of_reads_does_not_keep_another_tenants_waiting() {
    let apart = read_before("apart", Tenant(1), Tenant(2));
    assert!(apart <= 4 * READS_EACH, "{apart} pages of the flood came first");
    assert!(apart >= READS_EACH / 4, "the flood has its share: {apart}");
    let together = read_before("together", Tenant(1), Tenant(1));
    assert!(together > 8 * READS_EACH, "{together}: the test tells nothing");
}

/// A queue of pages that nobody lets pass: its tenant is in debt, as another waits.
#[test]
fn pages_of_a_request_that_is_cancelled_or_a_channel_that_is_detached_are_not_sent() {
    with_shard("cancelled", async move |shard, listener| {
        let mut client = reader(&shard, &listener, OTHER, Tenant(2)).await;
        let id = client.id;
        // A second of the thread: no page leaves before that is paid off, and nothing pays where no pass is made.
        let debt = [1_000_000_000_000, 0, 0];
        shard.borrow_mut().executor.clients.charge_pages(id, debt);
        let of = ClientRef {
            connection: id,
            channel: CHANNEL,
        };
        let page = |request| {
            Message::Entries(quorate_wire::client::Entries {
                request,
                next_offset: 1,
                commit_offset: 1,
                trim_offset: 0,
                batches: Vec::new(),
            })
        };
        {
            let clients = &mut shard.borrow_mut().executor.clients;
            for request in [7, 8, 7, 9] {
                clients.send(of, page(request));
            }
            clients.refuse(of, Refusal::new(kind::SUBSCRIBE, 7, Code::GroupNotHere));
            clients.refuse(of, Refusal::new(kind::SUBSCRIBE, 9, Code::GroupNotHere));
            assert_eq!(
                clients.waiting_pages(id),
                6,
                "refusals of reads do not overtake pages"
            );
            clients.forget_pages(of, Some(7));
            assert_eq!(clients.waiting_pages(id), 3);
        }
        while client.answers().refused == 0 {
            yield_now().await;
        }
        assert_eq!(client.answers().pages, 2, "before the refusal behind them");
        let clients = &mut shard.borrow_mut().executor.clients;
        clients.charge_pages(id, debt);
        clients.send(of, page(11));
        assert_eq!(clients.detach(of), Some(OTHER));
        assert_eq!(clients.waiting_pages(id), 0);
    });
}

#[test]
fn a_connection_with_too_many_pages_is_not_read_and_then_closed() {
    with_shard("bounded", async move |shard, listener| {
        let client = reader(&shard, &listener, OTHER, Tenant(2)).await;
        let clients = &mut shard.borrow_mut().executor.clients;
        clients.charge_pages(client.id, [1_000_000_000_000, 0, 0]);
        let of = ClientRef {
            connection: client.id,
            channel: CHANNEL,
        };
        let mut pages = 0;
        while !clients.get(client.id).expect("it is there").is_closing() {
            let was_ahead = clients.get(client.id).expect("it is there").is_ahead();
            assert_eq!(was_ahead, pages * (1 << 20) > CLIENT_OUTBOX_BYTES_MAX);
            clients.send(of, mebibyte());
            pages += 1;
        }
        assert_eq!(
            pages,
            CLIENT_PAGES_BYTES_MAX / (1 << 20) + 2,
            "one beyond, and the one that finds it so"
        );
    });
}

/// A page of a mebibyte.
fn mebibyte() -> Message {
    let mut payload = BytesMut::zeroed(1 << 20);
    payload[..4].copy_from_slice(&((1u32 << 20) - 4).to_le_bytes());
    let payload = payload.freeze();
    Message::Entries(quorate_wire::client::Entries {
        request: 1,
        next_offset: 1,
        commit_offset: 1,
        trim_offset: 0,
        batches: vec![quorate_wire::client::EntriesBatch {
            base_offset: 0,
            timestamp_us: 0,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            payload,
        }],
    })
}

/// More pages than a client may leave unread: they wait for its socket, in their own queue.
#[test]
fn a_client_that_reads_slowly_gets_all_of_its_pages() {
    with_shard("slow", async move |shard, listener| {
        let mut client = reader(&shard, &listener, OTHER, Tenant(2)).await;
        let of = ClientRef {
            connection: client.id,
            channel: CHANNEL,
        };
        let count = 3 * (CLIENT_OUTBOX_BYTES_MAX >> 20) as u64;
        for _ in 0..count {
            shard.borrow_mut().executor.clients.send(of, mebibyte());
        }
        for _ in 0..1_000 {
            yield_now().await; // the server writes what the socket takes
        }
        {
            let clients = &shard.borrow().executor.clients;
            let connection = clients.get(client.id).expect("it is there");
            assert!(!connection.is_closing() && clients.waiting_pages(client.id) > 0);
            assert!(
                connection.outbox.len() <= CLIENT_OUTBOX_BYTES_MAX + (1 << 21),
                "{}",
                connection.outbox.len()
            );
        }
        let began = Instant::now();
        while client.answers().pages < count {
            assert!(began.elapsed() < PATIENCE, "{} pages", client.answers().pages);
            yield_now().await;
        }
    });
}
