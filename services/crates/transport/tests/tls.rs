//! Real sockets and handshakes: trust, refusals, and the order of bytes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quorate_certificates::{Authority, request};
use quorate_transport::tls::{OwnCertificate, ServerTls, client_config, client_connection};
use quorate_transport::{
    FrameReader, HandshakeError, Outbox, ReadFault, ReadHalf, WriteHalf, begins_with_tls, handshake, plain,
};
use quorate_types::ServerId;
use quorate_wire::client::{Append, Message};
use rustls::{CertificateError, Error};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(20);
const DAY: Duration = Duration::from_secs(86_400);

type Halves = (ReadHalf, WriteHalf);

struct Fleet {
    authority: Authority,
}

impl Fleet {
    fn new() -> Self {
        Self {
            authority: Authority::generate(),
        }
    }

    /// Certificate and key, good for `lifetime` from `now` on.
    fn issue(&self, server: u32, address: &str, now: SystemTime, lifetime: Duration) -> (String, String) {
        let key = request::new_key();
        let request = request::request(&key).unwrap();
        let issued = self
            .authority
            .issue(&request, ServerId(server), address, lifetime, now);
        (issued.unwrap(), key)
    }

    fn server(&self, server: u32) -> ServerTls {
        let (certificate, key) = self.issue(server, "127.0.0.1:1", SystemTime::now(), DAY);
        let own = OwnCertificate::new(&certificate, &key).unwrap();
        ServerTls::new(self.authority.certificate_pem(), own).unwrap()
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("in time") });
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dialled = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (dialled, listener.accept().await.unwrap().0)
}

type Shaken = Result<Halves, HandshakeError>;

/// The handshake at both ends: the dialling one, the accepting one.
async fn shake(
    dialling: impl Into<rustls::Connection>,
    accepting: impl Into<rustls::Connection>,
) -> (Shaken, Shaken) {
    let (near, far) = sockets().await;
    let halves = |(read, write, _)| (read, write);
    let (near, far) = tokio::join!(handshake(near, dialling), handshake(far, accepting));
    (near.map(halves), far.map(halves))
}

fn refusal(shaken: Shaken) -> Error {
    match shaken {
        Err(HandshakeError::Tls(error)) => error,
        Err(HandshakeError::Io(error)) => panic!("{error}"),
        Ok(_) => panic!("it was accepted"),
    }
}

fn append(seq: u64, len: usize) -> Message {
    let payload = Bytes::from(vec![seq as u8; len]);
    Message::Append(Append {
        seq,
        floor_index: 0,
        timeout_ms: 0,
        entry_count: 1,
        payload_crc: 0,
        expected_offset: u64::MAX,
        fencing_token: 0,
        payload,
    })
}

/// Sends frames of many sizes one way while the other end reads them.
async fn exchange((_, write): &Halves, (read, _): &mut Halves, sizes: &[usize]) {
    let writing = async {
        let mut outbox = Outbox::default();
        for (seq, len) in sizes.iter().enumerate() {
            let message = append(seq as u64, *len);
            outbox.push(|out| message.encode(1, None, out));
            while !outbox.try_write(write).unwrap() {
                write.writable().await.unwrap();
            }
        }
        assert_eq!(outbox.len(), 0);
    };
    let reading = async {
        let mut reader = FrameReader::new(64 << 20);
        for (seq, len) in sizes.iter().enumerate() {
            let frame = reader.read_frame(read).await.unwrap();
            let Message::Append(append) = Message::decode(&frame).unwrap() else {
                panic!("another message")
            };
            assert_eq!((append.seq, append.payload.len()), (seq as u64, *len));
            assert!(append.payload.iter().all(|byte| *byte == seq as u8));
        }
    };
    tokio::join!(writing, reading);
}

#[test]
fn frames_of_every_size_arrive_in_order_both_ways() {
    run(async {
        let fleet = Fleet::new();
        let server = fleet.server(1);
        let config = client_config(fleet.authority.certificate_pem()).unwrap();
        let client = client_connection(&config, "127.0.0.1").unwrap();
        let (near, far) = shake(client, server.accept().unwrap()).await;
        let (mut near, mut far) = (near.unwrap(), far.unwrap());
        assert!(far.0.is_tls() && far.0.peer_certificates().is_empty());
        let sizes = [
            0,
            1,
            100,
            1_024,
            1_025,
            16_384,
            65_536,
            70_000,
            4 << 20,
            3,
            8 << 20,
            17,
        ];
        exchange(&near, &mut far, &sizes).await;
        exchange(&far, &mut near, &sizes).await;
        // The halves survive a change of threads.
        let far = far.0.detach(far.1).unwrap();
        let mut far = std::thread::spawn(move || far).join().unwrap().attach().unwrap();
        exchange(&near, &mut far, &[5, 100_000]).await;
        near.1.close();
        drop(near);
        let ended = FrameReader::new(1 << 20).read_frame(&mut far.0).await;
        assert!(matches!(ended, Err(ReadFault::Closed)));
    });
}

#[test]
fn bytes_that_the_socket_does_not_accept_wait_in_the_outbox() {
    run(async {
        let fleet = Fleet::new();
        let server = fleet.server(1);
        let config = client_config(fleet.authority.certificate_pem()).unwrap();
        let client = client_connection(&config, "127.0.0.1").unwrap();
        let (near, far) = shake(client, server.accept().unwrap()).await;
        let (near, mut far) = (near.unwrap(), far.unwrap());
        let mut outbox = Outbox::default();
        let mut pushed = 0;
        // The reader does not read: kernel buffers and a little ciphertext fill up, no more.
        while outbox.try_write(&near.1).unwrap() {
            outbox.push_bytes(Bytes::from(vec![7; 1 << 20]));
            pushed += 1 << 20;
            assert!(pushed < 64 << 20, "the kernel takes no end of bytes");
        }
        let before = outbox.len();
        outbox.push_bytes(Bytes::from(vec![7; 32 << 20]));
        assert!(!outbox.try_write(&near.1).unwrap());
        assert!(outbox.len() >= before + (31 << 20), "nothing more is taken in");
        let reading = async { while far.0.discard().await {} };
        let writing = async {
            while !outbox.try_write(&near.1).unwrap() {
                near.1.writable().await.unwrap();
            }
            near.1.close();
            drop(near);
        };
        tokio::join!(reading, writing);
    });
}

#[test]
fn a_client_trusts_one_authority_for_the_host_it_dials() {
    run(async {
        let (fleet, other) = (Fleet::new(), Fleet::new());
        let server = fleet.server(1);
        let dial = |fleet: &Fleet, host: &str| {
            let config = client_config(fleet.authority.certificate_pem()).unwrap();
            client_connection(&config, host).unwrap()
        };
        let (near, far) = shake(dial(&other, "127.0.0.1"), server.accept().unwrap()).await;
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(refusal(near), unknown);
        assert!(far.is_err(), "the server hears of it");
        for host in ["127.0.0.2", "localhost"] {
            let (near, _) = shake(dial(&fleet, host), server.accept().unwrap()).await;
            let error = refusal(near).to_string();
            assert!(error.contains("not valid for name"), "{error}");
        }
        let past = SystemTime::now() - Duration::from_secs(60);
        let (certificate, key) = fleet.issue(1, "127.0.0.1:1", past, Duration::from_secs(30));
        server.own().replace(&certificate, &key).unwrap();
        let (near, _) = shake(dial(&fleet, "127.0.0.1"), server.accept().unwrap()).await;
        let error = refusal(near);
        assert!(
            matches!(
                error,
                Error::InvalidCertificate(CertificateError::ExpiredContext { .. })
            ),
            "{error}"
        );
        assert!(client_config("nonsense").is_err());
    });
}

#[test]
fn peers_prove_to_each_other_which_server_they_are() {
    run(async {
        let (fleet, other) = (Fleet::new(), Fleet::new());
        let (one, two) = (fleet.server(1), fleet.server(2));
        let (near, far) = shake(one.dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        near.unwrap();
        let shown = far.unwrap().0.peer_certificates();
        assert_eq!(two.check_peer(&shown, ServerId(1)), Ok(()));
        assert!(
            two.check_peer(&shown, ServerId(2)).is_err(),
            "a hello as another server"
        );
        assert!(two.check_peer(&shown, ServerId(11)).is_err());
        assert!(
            two.check_peer(&[], ServerId(1)).is_err(),
            "no certificate, as clients"
        );
        assert!(other.server(2).check_peer(&shown, ServerId(1)).is_err());

        // Another server answers at the address.
        let (near, _) = shake(one.dial(ServerId(3)).unwrap(), two.accept().unwrap()).await;
        assert!(refusal(near).to_string().contains("not valid for name"));
        // A server of another fleet dials: it does not trust us, nor we it.
        let (near, _) = shake(other.server(1).dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        refusal(near);

        // An expired certificate is refused by whoever is dialled.
        let past = SystemTime::now() - Duration::from_secs(60);
        let (certificate, key) = fleet.issue(1, "127.0.0.1:1", past, Duration::from_secs(30));
        one.own().replace(&certificate, &key).unwrap();
        let (_, far) = shake(one.dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        assert!(refusal(far).to_string().contains("expired"));
    });
}

#[test]
fn a_renewed_certificate_is_used_at_once_and_closes_nothing() {
    run(async {
        let fleet = Fleet::new();
        let (one, two) = (Arc::new(fleet.server(1)), fleet.server(2));
        let (near, far) = shake(one.dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        let (near, mut far) = (near.unwrap(), far.unwrap());
        let before = far.0.peer_certificates();
        let (certificate, key) = fleet.issue(1, "127.0.0.1:1", SystemTime::now(), DAY);
        one.own().replace(&certificate, &key).unwrap();
        exchange(&near, &mut far, &[1, 50_000]).await;
        let (again, far) = shake(one.dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        again.unwrap();
        assert_ne!(far.unwrap().0.peer_certificates(), before);
        // A key that is not the certificate's is an error now, and the old pair stays in use.
        assert!(one.own().replace(&certificate, &request::new_key()).is_err());
        let (again, _) = shake(one.dial(ServerId(2)).unwrap(), two.accept().unwrap()).await;
        again.unwrap();
    });
}

#[test]
fn tls_is_distinguished_from_plain_handshakes_of_every_length() {
    run(async {
        for len in 0..=64 {
            let (mut near, far) = sockets().await;
            let hello = Message::Hello {
                versions: quorate_types::versions::CLIENT,
                client: "x".repeat(len),
            };
            let bytes = hello.to_bytes(0, None);
            // They may also come one by one. A name of 13 bytes makes the first one 0x16.
            let (first, rest) = bytes.split_at(1 + len % 3);
            near.write_all(first).await.unwrap();
            let (tls, ()) = tokio::join!(begins_with_tls(&far), async {
                tokio::task::yield_now().await;
                near.write_all(rest).await.unwrap();
            });
            assert!(!tls.unwrap(), "a name of {len} bytes");
            let (mut read, _write) = plain(far);
            let frame = FrameReader::new(65_535).read_frame(&mut read).await.unwrap();
            assert_eq!(Message::decode(&frame).unwrap(), hello);
        }
        let fleet = Fleet::new();
        let config = client_config(fleet.authority.certificate_pem()).unwrap();
        let (near, far) = sockets().await;
        let client = client_connection(&config, "127.0.0.1").unwrap();
        let dialling = tokio::spawn(handshake(near, client));
        assert!(begins_with_tls(&far).await.unwrap());
        dialling.abort();
        let (near, far) = sockets().await;
        drop(near);
        assert!(begins_with_tls(&far).await.is_err());
    });
}
