//! The authority in its folder, and the contents of its certificates.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{Authority, IssueError, request};
use quorate_types::ServerId;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::*;

const LIFETIME: Duration = Duration::from_secs(3_600);

fn authority(folder: &Path) -> Authority {
    Authority::load_or_create(folder).unwrap()
}

fn names(pem: &str) -> Vec<String> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, certificate) = parse_x509_certificate(&der).unwrap();
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    names
        .value
        .general_names
        .iter()
        .map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_string(),
            GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
            other => panic!("{other}"),
        })
        .collect()
}

#[test]
fn it_is_made_once_and_its_key_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pin = authority(folder.path()).pin();
    assert_eq!(authority(folder.path()).pin(), pin);
    let key = folder.path().join("ca-key.pem");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // The first start crashed between key and certificate.
    std::fs::remove_file(folder.path().join("ca.pem")).unwrap();
    authority(folder.path());

    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Authority::load_or_create(folder.path())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("chmod 600"), "{error}");
    std::fs::remove_file(&key).unwrap();
    let error = Authority::load_or_create(folder.path())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("restore the two together"), "{error}");
}

#[test]
fn names_come_from_the_registration_and_not_from_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path());
    let key = KeyPair::generate().unwrap();
    let greedy = CertificateParams::new(vec![
        "server-9.quorate.internal".to_string(),
        "bank.example".into(),
    ]);
    let greedy = greedy.unwrap().serialize_request(&key).unwrap().pem().unwrap();
    let now = SystemTime::now();
    let issue = |address: &str| authority.issue(&greedy, ServerId(3), address, LIFETIME, now);

    let pem = issue("10.1.2.3:7000").unwrap();
    assert_eq!(names(&pem), ["server-3.quorate.internal", "[10, 1, 2, 3]"]);
    assert_eq!(names(&issue("node-3.example:7000").unwrap())[1], "node-3.example");
    assert_eq!(
        names(&issue("[::1]:7000").unwrap())[1],
        format!("{:?}", {
            let mut v6 = [0; 16];
            v6[15] = 1;
            v6
        })
    );
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert!(is_issued_to(&der, ServerId(3)) && !is_issued_to(&der, ServerId(9)));
    let (_, parsed) = parse_x509_certificate(&der).unwrap();
    assert!(!parsed.is_ca());
    let ends = request::not_after(&pem).unwrap();
    let late = now + LIFETIME;
    assert!(ends <= late && ends > late - Duration::from_secs(2));
    assert_eq!(request::lifetime(&pem).unwrap(), LIFETIME);
    assert_ne!(
        issue("10.1.2.3:7000").unwrap(),
        pem,
        "each has a number of its own"
    );

    for reserved in [
        "server-4.quorate.internal:1",
        "QUORATE.internal:1",
        "x.quorate.INTERNAL.:1",
    ] {
        assert!(matches!(issue(reserved), Err(IssueError::Reserved)), "{reserved}");
    }
    for wrong in ["", "nothing", ":1", "a b:1", "*.example:1", "-:x"] {
        assert!(matches!(issue(wrong), Err(IssueError::Host(_))), "{wrong}");
    }
}

#[test]
fn requests_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority(folder.path());
    let good = request::request(&request::new_key()).unwrap();
    // One base64 digit of the signature is changed.
    let at = good.len() - 50;
    let mut forged = good.clone().into_bytes();
    forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for wrong in ["", "nonsense", &forged, &"x".repeat(100_000)] {
        let issued = authority.issue(wrong, ServerId(1), "127.0.0.1:1", LIFETIME, SystemTime::now());
        assert!(matches!(issued, Err(IssueError::Request(_))), "{wrong:.40}");
    }
}
