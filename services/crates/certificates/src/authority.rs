//! The coordinator's certificate authority: one key, made at its first start, which never leaves its folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
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

const KEY_FILE: &str = "ca-key.pem";
const CERTIFICATE_FILE: &str = "ca.pem";
/// Longer than any fleet runs. There is no rotation yet, so the authority must not end by surprise.
const AUTHORITY_LIFE: Duration = Duration::from_secs(20 * 365 * 86_400);
/// Certificates begin this much in the past, so that a server whose clock is behind can still register. A thief of the
/// key gains nothing from it, since the key is new.
pub(crate) const CLOCK_BEHIND_MAX: Duration = Duration::from_secs(86_400);
/// A request is one key and one signature, which fit many times.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The folder's key or certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct AuthorityError {
    path: PathBuf,
    problem: String,
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
    /// Reads `ca-key.pem` (0600) and `ca.pem` in the folder, and creates missing ones.
    pub fn load_or_create(data_dir: &Path) -> Result<Self, AuthorityError> {
        let (key_path, path) = (data_dir.join(KEY_FILE), data_dir.join(CERTIFICATE_FILE));
        let key = load_or_create_key(&key_path).map_err(|problem| AuthorityError {
            path: key_path,
            problem,
        })?;
        Self::with_key(key, &path).map_err(|problem| AuthorityError { path, problem })
    }

    /// An authority without files.
    pub(crate) fn in_memory(key: KeyPair) -> Result<Self, String> {
        let certificate_pem = self_signed(&key)?;
        Self::of(key, certificate_pem)
    }

    fn with_key(key: KeyPair, path: &Path) -> Result<Self, String> {
        let certificate_pem = match std::fs::read_to_string(path) {
            Ok(pem) => pem,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let pem = self_signed(&key)?;
                write_file(path, &pem, 0o644).map_err(|error| error.to_string())?;
                pem
            }
            Err(error) => return Err(error.to_string()),
        };
        Self::of(key, certificate_pem)
    }

    fn of(key: KeyPair, certificate_pem: String) -> Result<Self, String> {
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
            .map_err(|error| format!("not a certificate: {error}"))?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate).map_err(|error| error.to_string())?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(format!(
                "does not belong to the key in {KEY_FILE}: restore the two together"
            ));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|error| format!("not an authority's certificate: {error}"))?;
        Ok(Self {
            issuer,
            certificate,
            certificate_pem,
        })
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

fn self_signed(key: &KeyPair) -> Result<String, String> {
    // Each authority has its own name, so that those of two fleets are never confused.
    let id = &pin::fingerprint(&key.subject_public_key_info())[..8];
    let mut parameters = certificate(&format!("Quorate fleet {id}"), SystemTime::now(), AUTHORITY_LIFE);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = parameters.self_signed(key).map_err(|error| error.to_string())?;
    Ok(certificate.pem())
}

/// A random number: the same key is certified many times, and serial numbers must differ.
fn serial() -> SerialNumber {
    let mut bytes: [u8; 16] = rand::random();
    // The number is positive, and has no leading zero.
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}

fn load_or_create_key(path: &Path) -> Result<KeyPair, String> {
    match std::fs::read_to_string(path) {
        Ok(pem) => {
            let mode = std::fs::metadata(path)
                .map_err(|error| error.to_string())?
                .permissions()
                .mode();
            if mode & 0o077 != 0 {
                return Err(format!(
                    "mode {:04o} lets others read it: chmod 600 it",
                    mode & 0o777
                ));
            }
            KeyPair::from_pem(&pem).map_err(|error| format!("not a private key: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = KeyPair::generate().map_err(|error| error.to_string())?;
            write_file(path, &key.serialize_pem(), 0o600).map_err(|error| error.to_string())?;
            Ok(key)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a new file beside the old one and renames it, so that a crash leaves one of them whole.
pub(crate) fn write_file(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let beside = path.with_extension("pem.new");
    // A file left by a crash may have another mode.
    if let Err(error) = std::fs::remove_file(&beside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
