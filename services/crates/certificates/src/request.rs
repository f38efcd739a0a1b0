//! A server's side: its key, which never leaves it, its request for a certificate, and the certificate's end.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::authority::CLOCK_BEHIND_MAX;
use crate::whole_file;

/// A new private key, in PEM.
pub fn new_key() -> String {
    KeyPair::generate()
        .expect("the system gives randomness")
        .serialize_pem()
}

/// A request with the key's public half, signed with it, in PEM. It has no name: the authority chooses names.
pub fn request(key_pem: &str) -> Result<String, String> {
    let key = KeyPair::from_pem(key_pem).map_err(|error| format!("not a private key: {error}"))?;
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    let request = parameters
        .serialize_request(&key)
        .map_err(|error| error.to_string())?;
    request.pem().map_err(|error| error.to_string())
}

/// The end of the first certificate in a PEM text.
pub fn not_after(certificate_pem: &str) -> Result<SystemTime, String> {
    let (_, ends_s) = validity(certificate_pem)?;
    let seconds = u64::try_from(ends_s).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The time it was issued for. It begins earlier than that, for servers whose clocks are behind.
pub fn lifetime(certificate_pem: &str) -> Result<Duration, String> {
    let (begins_s, ends_s) = validity(certificate_pem)?;
    let seconds = u64::try_from(ends_s - begins_s).unwrap_or(0);
    Ok(Duration::from_secs(seconds).saturating_sub(CLOCK_BEHIND_MAX))
}

/// Begin and end, in seconds since 1970.
fn validity(certificate_pem: &str) -> Result<(i64, i64), String> {
    let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
        .map_err(|error| format!("not a certificate: {error}"))?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate)
        .map_err(|error| format!("not a certificate: {error}"))?;
    let validity = parsed.validity();
    Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// A certificate in DER as PEM.
pub fn to_pem(certificate: &CertificateDer<'_>) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.to_vec()))
}

/// Writes a file for its owner alone, wholly or not at all.
pub fn save(path: &Path, text: &str) -> io::Result<()> {
    whole_file::replace(path, text, 0o600)
}
