//! Trust of the data plane: TLS 1.3 only, one certificate authority (`docs/internals/links.md`).
//!
//! - [`client_config`]: a client, which trusts the handle's authority and proves itself by token
//! - [`ServerTls`]: a server, for its listener and for the links it dials; mutual between servers

use std::fmt;
use std::sync::{Arc, RwLock};

use quorate_types::ServerId;
use quorate_types::names::server_name;
use rustls::client::{ResolvesClientCert, Resumption, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SignatureScheme,
};

/// The error of a certificate or key that is malformed or does not fit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub String);

impl TlsError {
    fn new(what: &str, error: impl fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// ring, with the cheaper of two good ciphers first: AES-128-GCM is quicker than AES-256-GCM by a third.
pub fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// The certificates of a PEM text, at least one.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(|error| TlsError::new("not a certificate in PEM", error))?;
    if found.is_empty() {
        return Err(TlsError("there is no certificate in it".into()));
    }
    Ok(found)
}

/// The authority's certificates as the only trusted ones.
pub fn roots(ca_pem: &str) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca_pem)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::new("not a certificate of an authority", error))?;
    }
    Ok(Arc::new(roots))
}

/// For a client. Resumes sessions, up to a few for each server.
pub fn client_config(ca_pem: &str) -> Result<Arc<ClientConfig>, TlsError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| TlsError::new("TLS", error))?
        .with_root_certificates(roots(ca_pem)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A client's connection to `host`, a name or an IP address that the server's certificate must carry.
pub fn client_connection(config: &Arc<ClientConfig>, host: &str) -> Result<ClientConnection, TlsError> {
    let name = ServerName::try_from(host.to_string())
        .map_err(|error| TlsError::new(&format!("{host:?} cannot be in a certificate"), error))?;
    ClientConnection::new(config.clone(), name).map_err(|error| TlsError::new("TLS", error))
}

/// A server's certificate and key, replaced while connections go on: handshakes from then on use the new one.
#[derive(Debug)]
pub struct OwnCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl OwnCertificate {
    pub fn new(chain_pem: &str, key_pem: &str) -> Result<Arc<Self>, TlsError> {
        let key = certified_key(certificates(chain_pem)?, key_pem)?;
        Ok(Arc::new(Self {
            current: RwLock::new(Arc::new(key)),
        }))
    }

    pub fn replace(&self, chain_pem: &str, key_pem: &str) -> Result<(), TlsError> {
        let key = certified_key(certificates(chain_pem)?, key_pem)?;
        *self.current.write().expect("no holder of the lock panics") = Arc::new(key);
        Ok(())
    }

    fn get(&self) -> Arc<CertifiedKey> {
        self.current.read().expect("no holder of the lock panics").clone()
    }
}

/// Checks that the key fits the certificate.
fn certified_key(chain: Vec<CertificateDer<'static>>, key_pem: &str) -> Result<CertifiedKey, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
        .map_err(|error| TlsError::new("not a private key in PEM", error))?;
    CertifiedKey::from_der(chain, key, &provider())
        .map_err(|error| TlsError::new("certificate and key do not fit", error))
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

impl ResolvesClientCert for OwnCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A replica server's TLS configurations for its connections.
#[derive(Debug)]
pub struct ServerTls {
    own: Arc<OwnCertificate>,
    accepting: Arc<ServerConfig>,
    dialing: Arc<ClientConfig>,
    peers: Arc<dyn ClientCertVerifier>,
}

impl ServerTls {
    pub fn new(ca_pem: &str, own: Arc<OwnCertificate>) -> Result<Self, TlsError> {
        let tls = |error: rustls::Error| TlsError::new("TLS", error);
        let (roots, provider) = (roots(ca_pem)?, provider());
        let peers = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(|error| TlsError::new("TLS", error))?;
        let mut accepting = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_client_cert_verifier(peers.clone())
            .with_cert_resolver(own.clone());
        // Sealed tickets, whose keys rotate: no memory for clients that went away.
        accepting.ticketer = rustls::crypto::ring::Ticketer::new().map_err(tls)?;
        accepting.send_tls13_tickets = 1;
        accepting.ignore_client_order = true;
        let mut dialing = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(tls)?
            .with_root_certificates(roots)
            .with_client_cert_resolver(own.clone());
        // A link is opened rarely, and authenticates its peer each time.
        dialing.resumption = Resumption::disabled();
        Ok(Self {
            own,
            accepting: Arc::new(accepting),
            dialing: Arc::new(dialing),
            peers,
        })
    }

    pub fn own(&self) -> &OwnCertificate {
        &self.own
    }

    pub fn accept(&self) -> Result<ServerConnection, TlsError> {
        ServerConnection::new(self.accepting.clone()).map_err(|error| TlsError::new("TLS", error))
    }

    /// A connection on which only `server` may answer.
    pub fn dial(&self, server: ServerId) -> Result<ClientConnection, TlsError> {
        client_connection(&self.dialing, &server_name(server))
    }

    /// Whether the peer is `server`. Checks the dates again, for sessions that were resumed.
    pub fn check_peer(
        &self,
        presented: &[CertificateDer<'_>],
        server: ServerId,
    ) -> Result<(), rustls::Error> {
        let Some((own, intermediates)) = presented.split_first() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        self.peers
            .verify_client_cert(own, intermediates, UnixTime::now())?;
        is_issued_to(own, &server_name(server))
    }
}

/// Whether the certificate carries the name. Its trust was checked before.
pub fn is_issued_to(certificate: &CertificateDer<'_>, name: &str) -> Result<(), rustls::Error> {
    let name = ServerName::try_from(name).map_err(|_| rustls::Error::General("not a name".into()))?;
    verify_server_name(&ParsedCertificate::try_from(certificate)?, &name)
}
