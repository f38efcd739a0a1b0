//! Connections of the HTTP interface: TLS 1.3 with a certificate of the fleet's authority. Callers on the same machine may do
//! without.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quorate_certificates::control::http_config;
use quorate_types::limits::{HELLO_TIMEOUT_MS, HTTP_CONNECTIONS_MAX};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tracing::{debug, warn};

use crate::shell::secrets::PrivateKeys;

/// The first byte of a TLS handshake. No HTTP request begins with it.
const HANDSHAKE: u8 = 0x16;
/// Connections that are ready and not yet served.
const READY_MAX: usize = 16;
const TLS_NEEDED: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\r\n\
    {\"type\":\"urn:quorate:problem:tls_needed\",\"title\":\"This port speaks TLS\",\"status\":400,\"code\":\"tls_needed\",\
    \"detail\":\"Call it by https, and trust the fleet's authority: ca.pem in the data folder of a coordinator.\",\
    \"errors\":[]}\n";

type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// For [`axum::serve`].
pub struct Connections {
    ready: mpsc::Receiver<(Stream, SocketAddr)>,
    local: io::Result<SocketAddr>,
}

impl Connections {
    /// `takes_plaintext`: from other machines, too.
    pub fn of(
        listener: TcpListener,
        keys: watch::Receiver<Option<Arc<PrivateKeys>>>,
        takes_plaintext: bool,
    ) -> Self {
        let (give, ready) = mpsc::channel(READY_MAX);
        let local = listener.local_addr();
        let acceptance = Acceptance {
            keys,
            takes_plaintext,
            give,
        };
        tokio::spawn(acceptance.run(listener));
        Self { ready, local }
    }
}

impl axum::serve::Listener for Connections {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The process ends.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.local {
            Ok(local) => Ok(*local),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

#[derive(Clone)]
struct Acceptance {
    keys: watch::Receiver<Option<Arc<PrivateKeys>>>,
    takes_plaintext: bool,
    give: mpsc::Sender<(Stream, SocketAddr)>,
}

impl Acceptance {
    async fn run(self, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(HTTP_CONNECTIONS_MAX));
        // Made once: the authority never changes.
        let mut acceptor = None;
        loop {
            let slot = slots.clone().acquire_owned().await.expect("it is never closed");
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "accepting an HTTP connection failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            if acceptor.is_none() {
                let keys = self.keys.borrow().clone();
                let config = keys.map(|keys| http_config(keys.authority.clone()).expect("keys were checked"));
                acceptor = config.map(|config| TlsAcceptor::from(Arc::new(config)));
            }
            let (own, acceptor) = (self.clone(), acceptor.clone());
            tokio::spawn(async move {
                if let Err(reason) = own.prepare(stream, peer, acceptor, slot).await {
                    debug!(%peer, reason, "an HTTP connection came to nothing");
                }
            });
        }
    }

    /// Takes one connection to where requests can be read. `_slot` bounds those that are on the way.
    async fn prepare(
        self,
        mut stream: TcpStream,
        peer: SocketAddr,
        acceptor: Option<TlsAcceptor>,
        _slot: OwnedSemaphorePermit,
    ) -> Result<(), String> {
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let limit = Duration::from_millis(HELLO_TIMEOUT_MS);
        let mut first = [0];
        let peeked = tokio::time::timeout(limit, stream.peek(&mut first)).await;
        let peeked = peeked.map_err(|_| "nothing came in time".to_string())?;
        let is_tls = peeked.map_err(|e| e.to_string())? == 1 && first[0] == HANDSHAKE;
        let ready = if is_tls {
            let acceptor = acceptor.ok_or("the fleet's keys are not known yet")?;
            let shaken = tokio::time::timeout(limit, acceptor.accept(stream)).await;
            let shaken = shaken.map_err(|_| "no TLS handshake in time".to_string())?;
            Either::Right(Box::new(shaken.map_err(|e| e.to_string())?))
        } else if peer.ip().is_loopback() || self.takes_plaintext {
            Either::Left(stream)
        } else {
            let said = tokio::time::timeout(limit, stream.write_all(TLS_NEEDED.as_bytes())).await;
            return said.map_err(|e| e.to_string())?.map_err(|e| e.to_string());
        };
        let given = self.give.send((ready, peer)).await;
        given.map_err(|_| "stopping".to_string())
    }
}
