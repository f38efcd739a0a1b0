//! The fleet's certificate authority: one key, made at the fleet's beginning.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use quorate_types::ServerId;
use quorate_types::names::{COORDINATOR_NAME, IDENTITY_DOMAIN, host_of, server_name};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use time::OffsetDateTime;

use crate::pin;

/// Longer than any fleet runs. There is no rotation yet, so the authority must not end by surprise.
const AUTHORITY_LIFE: Duration = Duration::from_secs(20 * 365 * 86_400);
/// Certificates begin this much in the past, so that a server whose clock is behind can still register. A thief of the
/// key gains nothing from it, since the key is new.
pub(crate) const CLOCK_BEHIND_MAX: Duration = Duration::from_secs(86_400);
/// A request is one key and one signature, which fit many times.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// Key and certificate are no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("not a private key: {0}")]
    Key(String),
    #[error("not an authority's certificate: {0}")]
    Certificate(String),
    #[error("the certificate does not belong to the key: restore the two together")]
    Apart,
}

/// The request is at fault: no certificate is issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("the certificate request is invalid: {0}")]
    Request(String),
    #[error("the address {0:?} has no host that a certificate can carry; use host:port with --advertise")]
    Host(String),
    #[error("hosts in {IDENTITY_DOMAIN} cannot be advertised: certificates use that domain for identities")]
    Reserved,
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    certificate_pem: String,
}

impl Authority {
    /// A new one.
    pub fn generate() -> Self {
        Self::of_key(KeyPair::generate().expect("the system gives randomness"))
    }

    /// Reads one that was made before: its key and its certificate, PEM.
    pub fn of_pem(key_pem: &str, certificate_pem: &str) -> Result<Self, AuthorityError> {
        let key = KeyPair::from_pem(key_pem).map_err(|error| AuthorityError::Key(error.to_string()))?;
        Self::of(key, certificate_pem.to_string())
    }

    /// The key with a certificate made now.
    pub(crate) fn of_key(key: KeyPair) -> Self {
        let certificate_pem = self_signed(&key).expect("a key signs its own certificate");
        Self::of(key, certificate_pem).expect("it was made for the key")
    }

    fn of(key: KeyPair, certificate_pem: String) -> Result<Self, AuthorityError> {
        let wrong = |problem: String| AuthorityError::Certificate(problem);
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
            .map_err(|error| wrong(error.to_string()))?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate).map_err(|error| wrong(error.to_string()))?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(AuthorityError::Apart);
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            issuer,
            certificate,
            certificate_pem,
        })
    }

    /// The private key, PEM: to be kept encrypted.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The certificate that clients and servers trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// SHA-256 of the certificate, as 64 hex digits.
    pub fn pin(&self) -> String {
        pin::fingerprint(&self.certificate)
    }

    /// Issues a certificate for a server's key, with its identity and the host that it advertises. Only the key of the
    /// request counts: its names are ignored.
    pub fn issue(
        &self,
        request_pem: &str,
        server: ServerId,
        address: &str,
        lifetime: Duration,
        now: SystemTime,
    ) -> Result<String, IssueError> {
        if request_pem.len() > REQUEST_BYTES_MAX {
            return Err(IssueError::Request("it is too long".into()));
        }
        let request = CertificateSigningRequestParams::from_pem(request_pem)
            .map_err(|error| IssueError::Request(error.to_string()))?;
        let host = host_of(address).ok_or_else(|| IssueError::Host(address.to_string()))?;
        let mut parameters = leaf(&server_name(server), now, lifetime);
        parameters.subject_alt_names.push(host_name(host)?);
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let issued = parameters
            .signed_by(&request.public_key, &self.issuer)
            .map_err(|error| IssueError::Request(error.to_string()))?;
        Ok(issued.pem())
    }

    /// Makes a fresh key with a certificate for the coordinator itself, followed by the authority's certificate. A server
    /// that knows only the pin compares it with the latter.
    pub fn coordinator(
        &self,
        lifetime: Duration,
        now: SystemTime,
    ) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        self.own(vec![ExtendedKeyUsagePurpose::ServerAuth], lifetime, now)
    }

    /// The same for both ends of a link between coordinators, for as long as the process runs.
    pub(crate) fn member(&self, now: SystemTime) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        self.own(usages, AUTHORITY_LIFE, now)
    }

    fn own(
        &self,
        usages: Vec<ExtendedKeyUsagePurpose>,
        lifetime: Duration,
        now: SystemTime,
    ) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().expect("the system gives randomness");
        let mut parameters = leaf(COORDINATOR_NAME, now, lifetime);
        parameters.extended_key_usages = usages;
        let issued = parameters
            .signed_by(&key, &self.issuer)
            .expect("the authority's key signs");
        (vec![issued.der().clone(), self.certificate.clone()], key.into())
    }
}

fn leaf(identity: &str, now: SystemTime, lifetime: Duration) -> CertificateParams {
    let name = identity.try_into().expect("identities are ASCII");
    let mut parameters = certificate(identity, now, lifetime);
    parameters.subject_alt_names = vec![SanType::DnsName(name)];
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.use_authority_key_identifier_extension = true;
    parameters
}

fn certificate(name: &str, now: SystemTime, lifetime: Duration) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.not_before = OffsetDateTime::from(now - CLOCK_BEHIND_MAX);
    parameters.not_after = OffsetDateTime::from(now + lifetime);
    parameters.serial_number = Some(serial());
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

fn host_name(host: &str) -> Result<SanType, IssueError> {
    let wrong = || IssueError::Host(host.to_string());
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(ip));
    }
    let lower = host.trim_end_matches('.').to_ascii_lowercase();
    if lower == IDENTITY_DOMAIN || lower.ends_with(&format!(".{IDENTITY_DOMAIN}")) {
        return Err(IssueError::Reserved);
    }
    match ServerName::try_from(host) {
        Ok(ServerName::DnsName(_)) => Ok(SanType::DnsName(host.try_into().map_err(|_| wrong())?)),
        _ => Err(wrong()),
    }
}

fn self_signed(key: &KeyPair) -> Result<String, rcgen::Error> {
    // Each authority has its own name, so that those of two fleets are never confused.
    let id = &pin::fingerprint(&key.subject_public_key_info())[..8];
    let mut parameters = certificate(&format!("Quorate fleet {id}"), SystemTime::now(), AUTHORITY_LIFE);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(parameters.self_signed(key)?.pem())
}

/// A random number: the same key is certified many times, and serial numbers must differ.
fn serial() -> SerialNumber {
    let mut bytes: [u8; 16] = rand::random();
    // The number is positive, and has no leading zero.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}
