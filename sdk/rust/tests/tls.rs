//! TLS over real sockets: a client with servers that it trusts, and with servers that it cannot trust.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use quorate_certificates::{Authority, request};
use quorate_client::{Client, ConnectFailed, Failure, Handle, Options, info};
use quorate_transport::tls::{OwnCertificate, ServerTls};
use quorate_transport::{FrameReader, Outbox, ReadHalf, WriteHalf, begins_with_tls, handshake, plain};
use quorate_types::{Code, ServerId, limits};
use quorate_wire::client::{Attached, HelloOk, Message};
use rustls::HandshakeKind;
use serde_json::json;
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(20);
const DAY: Duration = Duration::from_secs(86_400);
const SERVER_UNTRUSTED: u16 = 1005;

fn server_tls(authority: &Authority, issued_at: SystemTime) -> ServerTls {
    let key = request::new_key();
    let request = request::request(&key).unwrap();
    let certificate = authority.issue(&request, ServerId(1), "127.0.0.1:1", DAY, issued_at);
    let own = OwnCertificate::new(&certificate.unwrap(), &key).unwrap();
    ServerTls::new(authority.certificate_pem(), own).unwrap()
}

#[derive(Default)]
struct Seen {
    /// Full and resumed handshakes.
    handshakes: Mutex<Vec<HandshakeKind>>,
    refused: AtomicU32,
}

/// A head that acknowledges everything; with `closes`, it closes each connection after its first append.
async fn serve(tls: Option<ServerTls>, closes: bool) -> (u16, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Seen::default());
    let shared = seen.clone();
    tokio::spawn(async move {
        let mut orders = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let Some(tls) = &tls else {
                let mut halves = plain(stream);
                let _ended = converse((&mut halves.0, &halves.1), &[], &mut orders, closes).await;
                continue;
            };
            if !begins_with_tls(&stream).await.unwrap_or(false) {
                let (mut read, write) = plain(stream);
                let code = Code::TlsRequired as u16;
                let message = Code::TlsRequired.explanation().to_string();
                send(&write, 0, Message::Goodbye { code, message });
                while read.discard().await {}
                continue;
            }
            match handshake(stream, tls.accept().unwrap()).await {
                Ok((mut read, write, rest)) => {
                    shared
                        .handshakes
                        .lock()
                        .unwrap()
                        .push(read.handshake_kind().unwrap());
                    let _ended = converse((&mut read, &write), &rest, &mut orders, closes).await;
                    write.close();
                }
                Err(_) => {
                    shared.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    (port, seen)
}

fn send(write: &WriteHalf, channel: u32, message: Message) {
    let mut outbox = Outbox::default();
    outbox.push(|out| message.encode(channel, None, out));
    assert!(outbox.try_write(write).unwrap());
}

async fn converse(
    (read, write): (&mut ReadHalf, &WriteHalf),
    rest: &[u8],
    orders: &mut u64,
    closes: bool,
) -> Result<(), quorate_transport::ReadFault> {
    let mut reader = FrameReader::with_rest(rest, limits::FRAME_BYTES_MAX);
    loop {
        let frame = reader.read_frame(read).await?;
        let answer = match Message::decode(&frame).unwrap() {
            Message::Hello { .. } => Message::HelloOk(HelloOk {
                version: quorate_types::versions::CLIENT.newest,
                server_id: 1,
                frame_bytes_max: limits::FRAME_BYTES_MAX,
                entry_bytes_max: limits::ENTRY_BYTES_MAX,
                batch_bytes_max: limits::BATCH_BYTES_MAX,
                batch_entries_max: limits::BATCH_ENTRIES_MAX,
            }),
            Message::Attach { .. } => Message::Attached(Attached {
                epoch: 1,
                role: 1,
                durability: 1,
                state: 1,
                window_batches: 8,
                last_index: 0,
                next_seq: *orders + 1,
                commit_offset: *orders,
                trim_offset: 0,
                rate_per_s: 1,
                head_address: String::new(),
            }),
            Message::Append(append) => {
                *orders = append.seq;
                send(
                    write,
                    frame.channel,
                    Message::Acked(vec![(append.seq, append.seq - 1)]),
                );
                if closes {
                    return Ok(());
                }
                continue;
            }
            _ => continue,
        };
        send(write, frame.channel, answer);
    }
}

fn handle(address: &str, ca_pem: Option<&str>) -> String {
    let mut handle = json!({
        "group_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f", "token": "t",
        "endpoints": [{"address": address, "role": "head"}],
    });
    if let Some(ca_pem) = ca_pem {
        handle["tls"] = json!({"required": true, "ca_pem": ca_pem});
    }
    handle.to_string()
}

async fn failure(handle: &str) -> Failure {
    let started = Instant::now();
    let Err(ConnectFailed::Connect(error)) = Client::connect(handle).await else {
        panic!("it was refused")
    };
    assert!(started.elapsed() < Duration::from_secs(5), "reported at once");
    error.0
}

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
fn a_trusted_server_is_used_and_reconnecting_is_cheaper() {
    run(async {
        let authority = Authority::generate();
        let (port, seen) = serve(Some(server_tls(&authority, SystemTime::now())), true).await;
        let address = format!("127.0.0.1:{port}");
        let handle = Handle::parse(&handle(&address, Some(authority.certificate_pem()))).unwrap();
        let client = Client::open(handle, Options::default());
        for offset in 0..3 {
            assert_eq!(client.append("x").await, Ok(offset));
        }
        let handshakes = seen.handshakes.lock().unwrap().clone();
        assert_eq!(handshakes.len(), 3);
        assert_eq!(handshakes[0], HandshakeKind::Full);
        assert_eq!(handshakes[2], HandshakeKind::Resumed);
    });
}

#[test]
fn nothing_is_sent_to_a_server_that_cannot_be_trusted() {
    run(async {
        let (ours, theirs) = (Authority::generate(), Authority::generate());
        let (port, seen) = serve(Some(server_tls(&theirs, SystemTime::now())), false).await;
        let address = format!("127.0.0.1:{port}");
        let wrong = failure(&handle(&address, Some(ours.certificate_pem()))).await;
        assert_eq!((wrong.code, wrong.is_retryable), (SERVER_UNTRUSTED, false));
        assert!(wrong.to_string().contains("not from the authority"), "{wrong}");
        assert!(
            wrong.to_string().contains(info(SERVER_UNTRUSTED).action),
            "{wrong}"
        );
        let host = failure(&handle(
            &format!("localhost:{port}"),
            Some(theirs.certificate_pem()),
        ))
        .await;
        assert!(host.to_string().contains("another host than localhost"), "{host}");
        // The server sees it a little later.
        while seen.refused.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(seen.handshakes.lock().unwrap().is_empty());

        let past = SystemTime::now() - 2 * DAY;
        let (port, _) = serve(Some(server_tls(&ours, past)), false).await;
        let expired = failure(&handle(
            &format!("127.0.0.1:{port}"),
            Some(ours.certificate_pem()),
        ))
        .await;
        assert!(expired.to_string().contains("expired"), "{expired}");
    });
}

#[test]
fn one_side_without_tls_is_distinguished_from_a_dead_one() {
    run(async {
        let authority = Authority::generate();
        let (port, _) = serve(Some(server_tls(&authority, SystemTime::now())), false).await;
        let reported = failure(&handle(&format!("127.0.0.1:{port}"), None)).await;
        assert!(reported.is(Code::TlsRequired), "{reported}");
        let (port, _) = serve(None, false).await;
        let handle = handle(&format!("127.0.0.1:{port}"), Some(authority.certificate_pem()));
        let options = Options {
            timeout: Duration::from_millis(500),
            ..Options::default()
        };
        let client = Client::open(Handle::parse(&handle).unwrap(), options);
        let error = client.append("x").await.unwrap_err();
        assert!(!error.is_unknown(), "{error}");
    });
}
