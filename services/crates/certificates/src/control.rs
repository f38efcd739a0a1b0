//! TLS of the control connection. The coordinator shows a certificate for its identity, whatever its address. A server
//! shows its own when it has one, and otherwise proves itself by its registration.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quorate_types::ServerId;
use quorate_types::names::{COORDINATOR_NAME, server_name};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::authority::Authority;
use crate::pin;

/// The lifetime of the coordinator's own certificate, which is renewed at half of it.
const COORDINATOR_LIFE: Duration = Duration::from_secs(30 * 86_400);

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The name to dial, whatever the address.
pub fn coordinator_name() -> ServerName<'static> {
    ServerName::try_from(COORDINATOR_NAME).expect("a constant that is a name")
}

/// The configuration of the control listener.
pub fn server_config(authority: Arc<Authority>) -> Result<ServerConfig, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(authority.certificate())?, provider())
        .allow_unauthenticated()
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let own = OwnCertificate::of(authority);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(own);
    // Servers prove themselves each time.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of the HTTP listener. Callers prove themselves by a token.
pub fn http_config(authority: Arc<Authority>) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(OwnCertificate::of(authority));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A server's knowledge of its coordinator.
pub enum Trust {
    /// The authority's certificate, kept since it joined.
    Authority(String),
    /// The authority's fingerprint, from a join token.
    Pin(String),
}

/// The configuration of a server's control connection; `own` is its certificate and key, in PEM.
pub fn client_config(trust: &Trust, own: Option<(&str, &str)>) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13])?;
    let wrong = |error: rustls::pki_types::pem::Error| Error::General(error.to_string());
    let builder = match trust {
        Trust::Authority(pem) => {
            let authority = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(wrong)?;
            builder.with_root_certificates(roots(&authority)?)
        }
        Trust::Pin(pin) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { pin: pin.clone() })),
    };
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(wrong)?;
            builder.with_client_auth_cert(chain.map_err(wrong)?, key)?
        }
    };
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// The certificate with this fingerprint, among those that the coordinator has shown.
pub fn find_pinned<'a, 'c>(shown: &'a [CertificateDer<'c>], pin: &str) -> Option<&'a CertificateDer<'c>> {
    shown
        .iter()
        .find(|certificate| pin::fingerprint(certificate) == pin)
}

/// Whether a certificate, whose signature was checked before, is this server's.
pub fn is_issued_to(certificate: &CertificateDer<'_>, server: ServerId) -> bool {
    let Ok(name) = ServerName::try_from(server_name(server)) else {
        return false;
    };
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

pub(crate) fn roots(authority: &CertificateDer<'_>) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone().into_owned())?;
    Ok(Arc::new(roots))
}

/// The coordinator's certificate, renewed when half of its lifetime is over.
struct OwnCertificate {
    authority: Arc<Authority>,
    current: Mutex<(Arc<CertifiedKey>, SystemTime)>,
}

impl OwnCertificate {
    fn of(authority: Arc<Authority>) -> Arc<Self> {
        Arc::new(Self {
            current: Mutex::new(made(&authority, SystemTime::now())),
            authority,
        })
    }
}

impl std::fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnCertificate").finish_non_exhaustive()
    }
}

fn made(authority: &Authority, now: SystemTime) -> (Arc<CertifiedKey>, SystemTime) {
    let (chain, key) = authority.coordinator(COORDINATOR_LIFE, now);
    let key = CertifiedKey::from_der(chain, key, &provider()).expect("the key was made for the certificate");
    (Arc::new(key), now + COORDINATOR_LIFE / 2)
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut current = self.current.lock().expect("no holder of the lock panics");
        let now = SystemTime::now();
        if now >= current.1 {
            *current = made(&self.authority, now);
        }
        Some(current.0.clone())
    }
}

/// Trusts the authority whose certificate in the shown chain has the fingerprint, and certificates issued by it.
#[derive(Debug)]
struct Pinned {
    pin: String,
}

/// The coordinator is not the one of the join token.
#[derive(Debug, thiserror::Error)]
#[error(
    "this is not the coordinator that issued the join token: none of its certificates has the fingerprint {0}; \
     check --coordinator, or issue a new join token"
)]
pub struct WrongPin(String);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let authority = find_pinned(intermediates, &self.pin).ok_or_else(|| {
            let wrong = OtherError(Arc::new(WrongPin(self.pin.clone())));
            Error::InvalidCertificate(CertificateError::Other(wrong))
        })?;
        WebPkiServerVerifier::builder_with_provider(roots(authority)?, provider())
            .build()
            .map_err(|error| Error::General(error.to_string()))?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not supported".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
