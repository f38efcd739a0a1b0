//! The authority, and the contents of its certificates.

use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{Authority, AuthorityError, IssueError, request};
use quorate_types::ServerId;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::*;

const LIFETIME: Duration = Duration::from_secs(3_600);

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
fn it_is_read_as_it_was_made_and_only_with_its_own_certificate() {
    let made = Authority::generate();
    let read = Authority::of_pem(&made.key_pem(), made.certificate_pem()).unwrap();
    assert_eq!(read.pin(), made.pin());
    let other = Authority::generate();
    let apart = Authority::of_pem(&made.key_pem(), other.certificate_pem());
    assert!(matches!(apart, Err(AuthorityError::Apart)));
    let not_a_key = Authority::of_pem("nonsense", made.certificate_pem());
    assert!(matches!(not_a_key, Err(AuthorityError::Key(_))));
    let no_certificate = Authority::of_pem(&made.key_pem(), "nonsense");
    assert!(matches!(no_certificate, Err(AuthorityError::Certificate(_))));
}

#[test]
fn names_come_from_the_registration_and_not_from_the_request() {
    let authority = Authority::generate();
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
    let authority = Authority::generate();
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
