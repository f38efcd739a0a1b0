//! The cost of TLS: processor time of a handshake, full and resumed, and of a gigabyte, both ends together.
//!
//! `cargo run --release -p quorate-transport --example tls_bench`

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quorate_certificates::{Authority, request};
use quorate_transport::tls::{OwnCertificate, ServerTls, client_config, client_connection};
use quorate_transport::{Outbox, ReadHalf, WriteHalf, handshake, plain};
use quorate_types::ServerId;
use tokio::net::{TcpListener, TcpStream};

const HANDSHAKES: u32 = 1_000;
const BYTES: usize = 1 << 30;
const PAYLOAD_BYTES: usize = 64 << 10;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let authority = Authority::generate();
        let server = server(&authority);
        println!(
            "{:<22} {:>10.0} µs",
            "full handshake",
            shake(&authority, &server, false).await
        );
        println!(
            "{:<22} {:>10.0} µs",
            "resumed handshake",
            shake(&authority, &server, true).await
        );
        let (dialled, accepted) = sockets().await;
        let (near, far) = (plain(dialled), plain(accepted));
        println!(
            "{:<22} {:>10.3} s of CPU",
            "1 GiB without TLS",
            stream(near, far).await
        );
        let (near, far) = connect(&authority, &server).await;
        println!(
            "{:<22} {:>10.3} s of CPU",
            "1 GiB with TLS",
            stream(near, far).await
        );
    });
}

fn server(authority: &Authority) -> ServerTls {
    let key = request::new_key();
    let request = request::request(&key).expect("a key makes a request");
    let lifetime = Duration::from_secs(3_600);
    let issued = authority.issue(&request, ServerId(1), "127.0.0.1:1", lifetime, SystemTime::now());
    let own = OwnCertificate::new(&issued.expect("a good request"), &key).expect("a pair");
    ServerTls::new(authority.certificate_pem(), own).expect("an authority")
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let dialled = TcpStream::connect(address).await.expect("a listener");
    (dialled, listener.accept().await.expect("a client").0)
}

type Halves = (ReadHalf, WriteHalf);

async fn connect(authority: &Authority, server: &ServerTls) -> (Halves, Halves) {
    let config = client_config(authority.certificate_pem()).expect("an authority");
    let client = client_connection(&config, "127.0.0.1").expect("a host");
    let (dialled, accepted) = sockets().await;
    let accepting = server.accept().expect("a server");
    let (near, far) = tokio::join!(handshake(dialled, client), handshake(accepted, accepting));
    let (near, far) = (near.expect("trust"), far.expect("trust"));
    ((near.0, near.1), (far.0, far.1))
}

/// Microseconds of CPU for one, both ends.
async fn shake(authority: &Authority, server: &ServerTls, resumes: bool) -> f64 {
    let config = client_config(authority.certificate_pem()).expect("an authority");
    let before = cpu_s();
    for _ in 0..HANDSHAKES {
        let config = if resumes {
            config.clone()
        } else {
            client_config(authority.certificate_pem()).expect("an authority")
        };
        let client = client_connection(&config, "127.0.0.1").expect("a host");
        let (dialled, accepted) = sockets().await;
        let accepting = server.accept().expect("a server");
        let (near, far) = tokio::join!(handshake(dialled, client), handshake(accepted, accepting));
        let (mut near, far) = (near.expect("trust"), far.expect("trust"));
        // The ticket comes with the first bytes.
        let mut outbox = Outbox::default();
        outbox.push_bytes(Bytes::from_static(b"x"));
        assert!(outbox.try_write(&far.1).expect("a peer"));
        assert!(near.0.discard().await);
    }
    (cpu_s() - before) * 1e6 / f64::from(HANDSHAKES)
}

async fn stream((_near_read, write): Halves, (mut read, _far_write): Halves) -> f64 {
    let before = cpu_s();
    let writing = async {
        let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
        let mut outbox = Outbox::default();
        for _ in 0..BYTES / PAYLOAD_BYTES {
            outbox.push_bytes(payload.clone());
            while !outbox.try_write(&write).expect("a peer") {
                write.writable().await.expect("a peer");
            }
        }
        drop(write);
    };
    let reading = async { while read.discard().await {} };
    tokio::join!(writing, reading);
    cpu_s() - before
}

/// Processor time of this process, to a hundredth of a second.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}
