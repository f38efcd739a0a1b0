//! Clients that share connections, over real sockets, against a server of a few lines with a log for each group.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use quorate_client::{Client, Connections, Handle, Options};
use quorate_types::{Code, GroupId, limits};
use quorate_wire::client::{Attached, HelloOk, Message, Notice, Refused, kind};
use quorate_wire::{Frame, decode_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Server {
    connections: u32,
    logs: HashMap<GroupId, Log>,
    detached: Vec<GroupId>,
    /// Batches of all groups after which connections are closed, with the last one's answer.
    close_after: Option<usize>,
    batches: usize,
    /// So many of the next attachments are refused, for now, and the connection ends with the same write.
    refuses: u32,
    /// This group gets another head at its first batch, and its clients a NOTICE of that.
    deposes: Option<GroupId>,
}

/// The offset of each batch, in order, and the log's end.
#[derive(Default)]
struct Log {
    bases: Vec<u64>,
    end: u64,
    attachments: u32,
}

type Shared = Arc<Mutex<Server>>;

async fn serve() -> (u16, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Shared::default();
    let shared = server.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            shared.lock().unwrap().connections += 1;
            tokio::spawn(converse(stream, shared.clone()));
        }
    });
    (port, server)
}

async fn converse(mut stream: TcpStream, server: Shared) {
    let (mut received, mut channels) = (BytesMut::new(), HashMap::new());
    loop {
        while let Some(frame) = decode_frame(&mut received, limits::FRAME_BYTES_MAX).unwrap() {
            let Some(answers) = answer(&frame, &mut channels, &mut server.lock().unwrap()) else {
                return;
            };
            let mut bytes = Vec::new();
            for answer in answers {
                let is_goodbye = matches!(answer, Message::Goodbye { .. });
                let channel = if is_goodbye { 0 } else { frame.channel };
                bytes.extend_from_slice(&answer.to_bytes(channel, None));
            }
            stream.write_all(&bytes).await.unwrap();
        }
        if !matches!(stream.read_buf(&mut received).await, Ok(1..)) {
            return;
        }
    }
}

/// `None` closes the connection.
fn answer(frame: &Frame, channels: &mut HashMap<u32, GroupId>, server: &mut Server) -> Option<Vec<Message>> {
    Some(match Message::decode(frame).unwrap() {
        Message::Hello { .. } => vec![Message::HelloOk(HelloOk {
            version: quorate_types::versions::CLIENT.newest,
            server_id: 1,
            frame_bytes_max: limits::FRAME_BYTES_MAX,
            entry_bytes_max: limits::ENTRY_BYTES_MAX,
            batch_bytes_max: limits::BATCH_BYTES_MAX,
            batch_entries_max: limits::BATCH_ENTRIES_MAX,
        })],
        Message::Attach { .. } if server.refuses > 0 => {
            server.refuses -= 1;
            let (code, message) = (Code::ShuttingDown as u16, String::new());
            vec![refused_attach(), Message::Goodbye { code, message }]
        }
        Message::Attach { group_id, .. } => {
            let before = channels.insert(frame.channel, group_id);
            assert!(before.is_none(), "a channel is used once");
            let log = server.logs.entry(group_id).or_default();
            log.attachments += 1;
            vec![Message::Attached(Attached {
                epoch: u64::from(log.attachments),
                role: 1,
                durability: 1,
                state: 1,
                window_batches: 8,
                last_index: 0,
                next_seq: log.bases.len() as u64 + 1,
                commit_offset: log.end,
                trim_offset: 0,
                rate_per_s: 1,
                head_address: String::new(),
            })]
        }
        Message::Append(append) => {
            let group_id = channels[&frame.channel];
            server.batches += 1;
            let log = server.logs.get_mut(&group_id).unwrap();
            let next = log.bases.len() as u64 + 1;
            assert!(append.seq <= next, "no batch was refused, so none is missing");
            if append.seq == next {
                log.bases.push(log.end);
                log.end += u64::from(append.entry_count);
            }
            if server.close_after.is_some_and(|count| server.batches >= count) {
                server.close_after = None;
                return None;
            }
            let acked = Message::Acked(vec![(append.seq, log.bases[append.seq as usize - 1])]);
            if server.deposes.take_if(|group| *group == group_id).is_none() {
                return Some(vec![acked]);
            }
            let notice = Notice {
                epoch: 9,
                role: 1,
                state: 1,
                rate_per_s: 1,
                head_address: String::new(),
            };
            log.attachments = 9;
            vec![acked, Message::Notice(notice)]
        }
        Message::Detach => {
            server.detached.extend(channels.remove(&frame.channel));
            Vec::new()
        }
        _ => Vec::new(),
    })
}

fn refused_attach() -> Message {
    Message::Refused(Refused {
        op: kind::ATTACH,
        outcome: 1,
        retry: 1,
        code: Code::GroupNotHere as u16,
        retry_after_ms: 1,
        id: 0,
        head_address: String::new(),
        message: String::new(),
    })
}

fn group(number: u32) -> GroupId {
    GroupId(uuid::Uuid::from_u128(u128::from(number) + 1))
}

fn open(port: u16, number: u32, connections: &Connections) -> Client {
    let id = group(number);
    let handle = format!(
        r#"{{"group_id":"{id}","token":"t","endpoints":[{{"address":"127.0.0.1:{port}","role":"head"}}]}}"#
    );
    let options = Options {
        connections: connections.clone(),
        ..Options::default()
    };
    Client::open(Handle::parse(&handle).unwrap(), options)
}

/// Runs a test with a bound in time.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        tokio::time::timeout(PATIENCE, test)
            .await
            .expect("the test ends in time")
    });
}

/// Each client appends `count` entries, all at once; each must get the next offset of its own log.
async fn append_all(clients: &[Client], from: u64, count: u64) {
    let pending: Vec<_> = clients
        .iter()
        .flat_map(|client| (from..from + count).map(move |offset| (offset, client.append("x"))))
        .collect();
    for (offset, appending) in pending {
        assert_eq!(appending.await, Ok(offset));
    }
}

#[test]
fn clients_with_clones_of_one_connections_share_a_connection() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        let clients: Vec<_> = (0..20).map(|number| open(port, number, &connections)).collect();
        append_all(&clients, 0, 30).await;
        assert_eq!(server.lock().unwrap().connections, 1);
        let alone = open(port, 99, &Connections::default());
        assert_eq!(alone.append("x").await, Ok(0));
        let server = server.lock().unwrap();
        assert_eq!((server.connections, server.logs.len()), (2, 21));
    });
}

/// A server that ends refuses who attaches, and says goodbye to all.
#[test]
fn a_refused_attachment_right_before_the_connections_end_does_not_end_the_client() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        server.lock().unwrap().refuses = 3;
        let client = open(port, 1, &connections);
        append_all(std::slice::from_ref(&client), 0, 3).await;
        let server = server.lock().unwrap();
        assert_eq!((server.refuses, server.logs[&group(1)].attachments), (0, 1));
    });
}

#[test]
fn a_full_connection_is_followed_by_another() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        let count = limits::CHANNELS_PER_CONNECTION_MAX as u32 + 1;
        let clients: Vec<_> = (0..count)
            .map(|number| open(port, number, &connections))
            .collect();
        append_all(&clients, 0, 1).await;
        assert_eq!(server.lock().unwrap().connections, 2);
    });
}

#[test]
fn all_reconnect_when_the_connection_breaks_and_no_batch_is_ordered_twice() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        let clients: Vec<_> = (0..20).map(|number| open(port, number, &connections)).collect();
        append_all(&clients, 0, 1).await;
        server.lock().unwrap().close_after = Some(30);
        append_all(&clients, 1, 30).await;
        // A client without an outstanding append reconnects only now.
        append_all(&clients, 31, 1).await;
        let server = server.lock().unwrap();
        assert!(server.close_after.is_none(), "it was closed");
        assert_eq!(server.connections, 2);
        assert!(
            server
                .logs
                .values()
                .all(|log| (log.end, log.attachments) == (32, 2))
        );
    });
}

#[test]
fn a_client_that_leaves_or_attaches_again_does_not_disturb_others() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        let mut clients: Vec<_> = (0..3).map(|number| open(port, number, &connections)).collect();
        server.lock().unwrap().deposes = Some(group(1));
        append_all(&clients, 0, 5).await;
        append_all(&clients, 5, 5).await;
        clients.remove(0).close().await;
        append_all(&clients, 10, 5).await;
        let server = server.lock().unwrap();
        assert_eq!(server.connections, 1);
        assert_eq!(server.detached, [group(1), group(0)]);
        let attachments = [0, 1, 2].map(|number| server.logs[&group(number)].attachments);
        assert_eq!(attachments, [1, 10, 1]);
    });
}

#[test]
fn an_unused_connection_is_closed() {
    run(async {
        let ((port, server), connections) = (serve().await, Connections::default());
        for number in 0..3 {
            let client = open(port, number, &connections);
            assert_eq!(client.append("x").await, Ok(0));
            client.close().await;
        }
        assert_eq!(server.lock().unwrap().connections, 3);
    });
}
