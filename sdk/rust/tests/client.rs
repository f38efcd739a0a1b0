//! The client over real sockets, against a head of a few lines that keeps one log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quorate_client::codes::client_side;
use quorate_client::limits::ABANDONED_SENDINGS_MAX;
use quorate_client::{AppendOptions, Client, ConnectFailed, Handle, Options};
use quorate_types::{Code, limits};
use quorate_wire::client::{
    Attached, Entries, EntriesBatch, HelloOk, Message, Notice, Refused, StatusOk, kind,
};
use quorate_wire::decode_frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(20);
const GROUP: &str = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f";

/// Behaviour of the fake server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Serve,
    /// Orders the first batch of each of the first `n` connections, and closes without an answer.
    CloseAfterOrdering(u32),
    /// Sends clients to this port.
    Redirect(u16),
    /// Names a head at the first port, and a moment later the next one at the second.
    LoseHead(u16, u16),
    RefuseTokens,
    /// Takes every batch of the first session that appends, and answers nothing, not even a PING.
    SwallowSession,
    /// An isolated head, which reaches only its clients: it takes a connection, and refuses at the first batch.
    Isolated,
}

#[derive(Default)]
struct Log {
    batches: Vec<EntriesBatch>,
    bases: Vec<u64>,
    end: u64,
    connections: u32,
    /// Sessions of clients that append, in order.
    sessions: Vec<u64>,
    swallowed: u32,
}

/// Serves on a port of its own until the test's runtime ends.
async fn serve(manner: Manner) -> (u16, Arc<Mutex<Log>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Arc::new(Mutex::new(Log::default()));
    let shared = log.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, manner, shared.clone()));
        }
    });
    (port, log)
}

async fn converse(mut stream: TcpStream, manner: Manner, log: Arc<Mutex<Log>>) {
    let mut received = BytesMut::new();
    loop {
        while let Some(frame) = decode_frame(&mut received, limits::FRAME_BYTES_MAX).unwrap() {
            let Some(answer) = answer(Message::decode(&frame).unwrap(), manner, &log) else {
                return;
            };
            if let Some(answer) = answer {
                stream
                    .write_all(&answer.to_bytes(frame.channel, None))
                    .await
                    .unwrap();
            }
            if let (Manner::LoseHead(_, head), kind::ATTACH) = (manner, frame.kind) {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let notice = Message::Notice(Notice {
                    epoch: 2,
                    role: 2,
                    state: 1,
                    rate_per_s: 1,
                    head_address: format!("127.0.0.1:{head}"),
                });
                stream
                    .write_all(&notice.to_bytes(frame.channel, None))
                    .await
                    .unwrap();
            }
        }
        if !matches!(stream.read_buf(&mut received).await, Ok(1..)) {
            return;
        }
    }
}

/// `None` closes the connection.
fn answer(message: Message, manner: Manner, log: &Mutex<Log>) -> Option<Option<Message>> {
    let mut log = log.lock().unwrap();
    let answer = match message {
        Message::Hello { .. } => Message::HelloOk(HelloOk {
            version: quorate_types::versions::CLIENT.newest,
            server_id: 1,
            frame_bytes_max: limits::FRAME_BYTES_MAX,
            entry_bytes_max: limits::ENTRY_BYTES_MAX,
            batch_bytes_max: limits::BATCH_BYTES_MAX,
            batch_entries_max: limits::BATCH_ENTRIES_MAX,
        }),
        Message::Attach { .. } if manner == Manner::RefuseTokens => {
            refused(kind::ATTACH, 0, Code::TokenInvalid, 3)
        }
        Message::Attach { session, .. } => {
            log.connections += u32::from(session != 0);
            if session != 0 && !log.sessions.contains(&session) {
                log.sessions.push(session);
            }
            if manner == Manner::Isolated && log.connections > 1 {
                return Some(Some(refused(kind::ATTACH, 0, Code::CutOff, 3)));
            }
            let (role, head_address) = match manner {
                Manner::Redirect(port) | Manner::LoseHead(port, _) => (2, format!("127.0.0.1:{port}")),
                _ => (1, String::new()),
            };
            Message::Attached(Attached {
                epoch: 1,
                role,
                durability: 1,
                state: 1,
                window_batches: 8,
                last_index: 0,
                next_seq: log.bases.len() as u64 + 1,
                commit_offset: log.end,
                trim_offset: 0,
                rate_per_s: 1,
                head_address,
            })
        }
        Message::Append(_) if manner == Manner::SwallowSession && log.sessions.len() == 1 => {
            log.swallowed += 1;
            return Some(None);
        }
        Message::Append(append) if manner == Manner::Isolated => {
            match refused(kind::APPEND, append.seq, Code::CutOff, 3) {
                Message::Refused(refused) => Message::Refused(Refused {
                    outcome: 2,
                    ..refused
                }),
                other => other,
            }
        }
        Message::Append(append) => {
            let next = log.bases.len() as u64 + 1;
            assert!(
                append.seq <= next,
                "this head refuses nothing, so no batch is missing"
            );
            if append.seq == next {
                let base_offset = log.end;
                log.bases.push(base_offset);
                log.end += u64::from(append.entry_count);
                log.batches.push(EntriesBatch {
                    base_offset,
                    timestamp_us: 1,
                    entry_count: append.entry_count,
                    payload_crc: append.payload_crc,
                    payload: append.payload,
                });
                if matches!(manner, Manner::CloseAfterOrdering(n) if log.connections <= n) {
                    return None;
                }
            }
            Message::Acked(vec![(append.seq, log.bases[append.seq as usize - 1])])
        }
        Message::Read { request, offset, .. } | Message::Subscribe { request, offset, .. } => {
            let wanted = |batch: &&EntriesBatch| batch.base_offset + u64::from(batch.entry_count) > offset;
            Message::Entries(Entries {
                request,
                next_offset: log.end.max(offset),
                commit_offset: log.end,
                trim_offset: 0,
                batches: log.batches.iter().filter(wanted).cloned().collect(),
            })
        }
        Message::Status { request } => Message::StatusOk(StatusOk {
            request,
            role: 1,
            state: 1,
            epoch: 1,
            commit_offset: log.end,
            durable_offset: log.end,
            trim_offset: 0,
            next_offset: log.end,
            head_address: String::new(),
        }),
        _ => return Some(None),
    };
    Some(Some(answer))
}

fn refused(op: u8, id: u64, code: Code, retry: u8) -> Message {
    let (outcome, retry_after_ms, code) = (1, 0, code as u16);
    let (head_address, message) = (String::new(), String::new());
    Message::Refused(Refused {
        op,
        outcome,
        retry,
        code,
        retry_after_ms,
        id,
        head_address,
        message,
    })
}

fn handle(ports: &[u16]) -> String {
    let endpoints: Vec<String> = ports
        .iter()
        .map(|port| format!(r#"{{"address":"127.0.0.1:{port}","role":"head"}}"#))
        .collect();
    format!(
        r#"{{"group_id":"{GROUP}","token":"t","endpoints":[{}]}}"#,
        endpoints.join(",")
    )
}

/// Runs a test with a bound in time.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, test)
            .await
            .expect("the test ends in time")
    });
}

#[test]
fn appends_are_read_back_at_the_offsets_reported() {
    run(async {
        let (port, _) = serve(Manner::Serve).await;
        let client = Client::connect(&handle(&[port])).await.unwrap();
        let pending: Vec<_> = (0..100)
            .map(|number| client.append(format!("entry {number}")))
            .collect();
        for (number, offset) in pending.into_iter().enumerate() {
            assert_eq!(offset.await, Ok(number as u64));
        }
        let many = client
            .append_many(vec![Bytes::from("a"), Bytes::from("b")], Default::default())
            .await
            .unwrap();
        assert_eq!((many.base_offset, many.count), (100, 2));
        let page = client.read(99, 2, Duration::ZERO).await.unwrap();
        let found: Vec<_> = page
            .entries
            .iter()
            .map(|entry| (entry.offset, &entry.data[..]))
            .collect();
        assert_eq!(found, [(99, &b"entry 99"[..]), (100, &b"a"[..])]);
        assert_eq!((page.next_offset, page.commit_offset), (101, 102));
        let mut tail = client.tail(98);
        for expected in 98..102 {
            assert_eq!(tail.next().await.unwrap().offset, expected);
        }
        assert_eq!(client.status().await.unwrap().commit_offset, 102);
        let too_large = client.append(vec![0; (1 << 20) + 1]).await.unwrap_err();
        assert!(!too_large.is_unknown() && too_large.failure().is(Code::EntryTooLarge));
        client.close().await;
    });
}

#[test]
fn a_batch_whose_answer_was_lost_is_ordered_once() {
    run(async {
        let (port, log) = serve(Manner::CloseAfterOrdering(2)).await;
        let client = Client::open(Handle::parse(&handle(&[port])).unwrap(), Options::default());
        for number in 0..5 {
            assert_eq!(client.append("x").await, Ok(number));
        }
        let log = log.lock().unwrap();
        assert_eq!((log.end, log.connections), (5, 3), "two connections were closed");
    });
}

#[test]
fn a_session_without_answers_is_ended_and_reported() {
    run(async {
        let (port, log) = serve(Manner::SwallowSession).await;
        let options = Options {
            answer_wait: Duration::from_millis(30),
            ..Options::default()
        };
        let client = Client::open(Handle::parse(&handle(&[port])).unwrap(), options);
        let soon = AppendOptions {
            timeout: Some(Duration::from_millis(30)),
            ..AppendOptions::default()
        };
        let first = client.append_many(vec![Bytes::from("orphan")], soon);
        let behind = client.append("behind");
        let (first, behind) = (first.await.unwrap_err(), behind.await.unwrap_err());
        for error in [&first, &behind] {
            assert!(
                error.is_unknown() && error.failure().code == client_side::NO_ANSWER,
                "{error}"
            );
            assert!(error.to_string().contains("Read the log"), "{error}");
        }
        assert!(behind.to_string().contains("its session is given up"), "{behind}");
        assert_eq!(client.append("next").await, Ok(0));
        let log = log.lock().unwrap();
        let sendings = 2 * (1 + ABANDONED_SENDINGS_MAX);
        assert_eq!((log.sessions.len(), log.swallowed), (2, sendings));
    });
}

#[test]
fn a_redirect_is_followed_and_a_dead_endpoint_skipped() {
    run(async {
        let (head, log) = serve(Manner::Serve).await;
        let (follower, _) = serve(Manner::Redirect(head)).await;
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = unused.local_addr().unwrap().port();
        drop(unused);
        let client = Client::connect(&handle(&[dead, follower])).await.unwrap();
        assert_eq!(client.append("x").await, Ok(0));
        assert_eq!(log.lock().unwrap().end, 1);
    });
}

#[test]
fn a_client_waits_for_the_next_head_at_a_follower_whose_head_is_gone() {
    run(async {
        let (head, log) = serve(Manner::Serve).await;
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = unused.local_addr().unwrap().port();
        drop(unused);
        let (follower, followers) = serve(Manner::LoseHead(dead, head)).await;
        let client = Client::connect(&handle(&[dead, follower])).await.unwrap();
        assert_eq!(client.append("x").await, Ok(0));
        assert_eq!(log.lock().unwrap().end, 1);
        assert_eq!(followers.lock().unwrap().connections, 1, "it was asked once");
    });
}

#[test]
fn an_isolated_head_is_left_and_the_next_one_waited_for() {
    run(async {
        let (head, log) = serve(Manner::Serve).await;
        let (old, olds) = serve(Manner::Isolated).await;
        let (follower, followers) = serve(Manner::LoseHead(old, head)).await;
        let client = Client::connect(&handle(&[old, follower])).await.unwrap();
        assert_eq!(client.append("x").await, Ok(0));
        assert_eq!(log.lock().unwrap().end, 1);
        assert_eq!(olds.lock().unwrap().connections, 1, "it was not asked again");
        assert_eq!(followers.lock().unwrap().connections, 1, "it was asked once");
    });
}

#[test]
fn a_bad_token_is_reported_at_once_and_an_absent_fleet_by_the_deadline() {
    run(async {
        let (port, _) = serve(Manner::RefuseTokens).await;
        let Err(ConnectFailed::Connect(error)) = Client::connect(&handle(&[port])).await else {
            panic!("it was refused")
        };
        assert!(error.0.is(Code::TokenInvalid), "{error}");
        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = unused.local_addr().unwrap().port();
        drop(unused);
        let options = Options {
            timeout: Duration::from_millis(100),
            ..Options::default()
        };
        let client = Client::open(Handle::parse(&handle(&[dead])).unwrap(), options);
        let error = client.append("x").await.unwrap_err();
        assert!(
            !error.is_unknown() && error.to_string().contains("refused"),
            "{error}"
        );
        assert!(client.status().await.is_err());
    });
}

#[test]
fn appends_beyond_the_rate_leave_in_their_time_or_never() {
    run(async {
        let (port, log) = serve(Manner::Serve).await;
        let charges = r#"{"charges":{"rate_per_s":1,"tokens_per_s_milli":[100000,0,0],
            "cost":{"fixed_milli":[0,0,0],"per_byte_milli":[1000,0,0]},"short_batch":{"entries":0,"lacking_milli":[0,0,0]}},"#;
        let bought = |port| handle(&[port]).replacen('{', charges, 1);
        let many = |count| vec![Bytes::from("x"); count];
        let began = tokio::time::Instant::now();
        let client = Client::connect(&bought(port)).await.unwrap();
        // The head announces a request of 100 tokens each second, and a byte is one: 106.25 at once and each second.
        for (count, base_offset) in [(106, 0), (20, 106)] {
            let appended = client.append_many(many(count), AppendOptions::default()).await;
            assert_eq!(appended.map(|appended| appended.base_offset), Ok(base_offset));
        }
        assert!(began.elapsed() > Duration::from_millis(180));
        let soon = AppendOptions {
            timeout: Some(Duration::from_millis(50)),
            ..AppendOptions::default()
        };
        let late = client.append_many(many(100), soon).await.unwrap_err();
        assert!(
            !late.is_unknown() && late.to_string().contains("waiting in the client"),
            "{late}"
        );
        assert_eq!(log.lock().unwrap().end, 126);
        let (port, _log) = serve(Manner::Serve).await;
        let options = Options {
            pace: false,
            ..Options::default()
        };
        let client = Client::open(Handle::parse(&bought(port)).unwrap(), options);
        for _ in 0..2 {
            let soon = AppendOptions {
                timeout: Some(Duration::from_millis(900)),
                ..AppendOptions::default()
            };
            assert!(client.append_many(many(106), soon).await.is_ok());
        }
    });
}
