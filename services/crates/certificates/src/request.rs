//! A server's side: its key, which never leaves it, the request for a certificate, and when that ends.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::authority::write_file;

/// A new private key, in PEM.
pub fn new_key() -> String {
    KeyPair::generate()
        .expect("the system gives randomness")
        .serialize_pem()
}

/// A request with the key's public half, signed with it, in PEM. It names nobody: names are the authority's matter.
pub fn request(key_pem: &str) -> Result<String, String> {
    let key = KeyPair::from_pem(key_pem).map_err(|error| format!("not a private key: {error}"))?;
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    let request = parameters
        .serialize_request(&key)
        .map_err(|error| error.to_string())?;
    request.pem().map_err(|error| error.to_string())
}

/// When the first certificate of a PEM text ends.
pub fn not_after(certificate_pem: &str) -> Result<SystemTime, String> {
    let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
        .map_err(|error| format!("not a certificate: {error}"))?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate)
        .map_err(|error| format!("not a certificate: {error}"))?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// A certificate in DER as PEM.
pub fn to_pem(certificate: &CertificateDer<'_>) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.to_vec()))
}

/// Writes a file for its owner alone, wholly or not at all.
pub fn save(path: &Path, text: &str) -> io::Result<()> {
    write_file(path, text, 0o600)
}
