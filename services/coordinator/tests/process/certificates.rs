//! Certificates over the control connection of the real binary: pins, issuing, renewal, owners.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use rcgen::KeyPair;

use crate::stage::{Coordinator, Server, arguments, eventually, register, run_to_end};
use quorate_certificates::control::{Trust, is_issued_to};
use quorate_certificates::{Authority, FleetKeys, pin, request};
use quorate_types::ServerId;
use quorate_types::control::{RefuseCode, Register, ToCoordinator, ToServer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const PATIENCE: Duration = Duration::from_secs(10);

/// Joins, asking for a certificate: the server, its key, its certificate.
fn join(coordinator: &Coordinator, name: &str) -> (Server, String, String) {
    let key = request::new_key();
    let server = Server::connect(
        coordinator,
        Register {
            join_token: Some(coordinator.join_token()),
            certificate_request_pem: Some(request::request(&key).unwrap()),
            ..register(name)
        },
    )
    .welcomed();
    let certificate = server.welcome.as_ref().unwrap().certificate_pem.clone().unwrap();
    (server, key, certificate)
}

fn is_of(certificate: &str, server: ServerId) -> bool {
    is_issued_to(
        &CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap(),
        server,
    )
}

fn refusal(mut server: Server) -> (RefuseCode, String) {
    match server.receive(PATIENCE) {
        Some(ToServer::Refuse { code, message }) => (code, message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_pin_of_a_join_token_is_the_authority_and_no_other_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let token = coordinator.join_token();
    let (_, pin) = pin::split(&token);
    let (_, ca) = coordinator.call("GET", "/v1/ca", None);
    assert_eq!(pin, ca["sha256"].as_str());
    let shake_hands = |trust: Trust| {
        let mut stream = coordinator.dial(&trust, None);
        stream.write_all(&[0]).map_err(|error| error.to_string())
    };
    shake_hands(Trust::Pin(pin.unwrap().into())).unwrap();
    shake_hands(Trust::Authority(ca["ca_pem"].as_str().unwrap().into())).unwrap();
    let wrong = shake_hands(Trust::Pin(pin::fingerprint(b"another"))).unwrap_err();
    assert!(wrong.contains("WrongPin"), "{wrong}");

    let elsewhere = tempfile::tempdir().unwrap();
    let other = Coordinator::start(elsewhere.path());
    let wrong = shake_hands(other.trust()).unwrap_err();
    assert!(wrong.contains("UnknownIssuer"), "{wrong}");

    // The authority stays the same for ever, and its key is nowhere to be read.
    let log = std::fs::read(coordinator.data_dir.join("coordinator.log")).unwrap();
    let has = |words: &[u8]| log.windows(words.len()).any(|part| part == words);
    assert!(has(b"BEGIN CERTIFICATE") && !has(b"PRIVATE KEY"));
    let key = coordinator.data_dir.join("fleet.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    coordinator.kill();
    let coordinator = Coordinator::start(folder.path());
    coordinator.trust();
    assert_eq!(coordinator.call("GET", "/v1/ca", None).1, ca);
}

#[test]
fn keys_that_an_earlier_release_left_in_the_folder_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let authority = Authority::generate();
    let peer_key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    std::fs::write(data.join("ca-key.pem"), authority.key_pem()).unwrap();
    std::fs::write(data.join("ca.pem"), authority.certificate_pem()).unwrap();
    std::fs::write(data.join("peer-token-key.pem"), peer_key.serialize_pem()).unwrap();
    let coordinator = Coordinator::start(folder.path());
    eventually("keys in the state", || {
        let left = |name| data.join(name).exists();
        (!left("ca-key.pem") && !left("peer-token-key.pem")).then_some(())
    });
    let ca = coordinator.call("GET", "/v1/ca", None).1;
    assert_eq!(ca["sha256"].as_str().unwrap(), authority.pin());
    Server::join(&coordinator, "s1");
}

#[test]
fn callers_trust_the_authority_by_https_and_others_see_the_token_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let (status, health) = coordinator.call_tls("GET", "/v1/health");
    assert_eq!((status, &health["status"]), (200, &serde_json::json!("ok")));
}

#[test]
fn another_fleets_key_opens_nothing_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    Server::join(&coordinator, "s1");
    assert_eq!(coordinator.terminate(), 0);
    let (data, other) = (folder.path().join("data"), folder.path().join("other.key"));
    let log = std::fs::read(data.join("coordinator.log")).unwrap();
    FleetKeys::create(&other).unwrap();
    let mut wrong = arguments(folder.path());
    wrong.extend(["--fleet-key-file".into(), other.display().to_string()]);
    let (code, said) = run_to_end(&wrong);
    assert!(
        code == 2 && said.contains("docs/operating/fleet-key.md"),
        "{code} {said}"
    );
    // Without its key it does not begin with another.
    let own = data.join("fleet.key");
    std::fs::rename(&own, folder.path().join("kept.key")).unwrap();
    let (code, said) = run_to_end(&arguments(folder.path()));
    assert!(code == 2 && said.contains("--fleet-key-file"), "{code} {said}");
    assert!(!own.exists());
    assert_eq!(std::fs::read(data.join("coordinator.log")).unwrap(), log);

    // A command gives it as well; one that fails is named.
    let kept = folder.path().join("kept.key");
    let command = format!("cat {}", kept.display());
    let coordinator = Coordinator::start_with(folder.path(), &["--fleet-key-command", &command]);
    coordinator.trust();
    coordinator.kill();
    for (command, expected) in [
        ("echo no", "line 1 is no fleet's key"),
        ("echo away >&2; exit 3", "away"),
    ] {
        let mut failing = arguments(folder.path());
        failing.extend(["--fleet-key-command".into(), command.into()]);
        let (code, said) = run_to_end(&failing);
        assert!(code == 2 && said.contains(expected), "{code} {said}");
    }
}

#[test]
fn plaintext_on_the_control_port_gets_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut stream = std::net::TcpStream::connect(&coordinator.control).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"\0\0\0\x02{}").unwrap();
    let mut answer = Vec::new();
    let _ended = stream.read_to_end(&mut answer);
    assert!(
        !answer.windows(6).any(|part| part == b"refuse"),
        "an alert at most"
    );
    assert_eq!(coordinator.call("GET", "/v1/health", None).0, 200);
}

#[test]
fn certificates_are_issued_and_renewed_for_the_server_that_asks() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start_with(folder.path(), &["--certificate-life-s", "4"]);
    let (mut server, key, first) = join(&coordinator, "s1");
    let (id, other) = (server.id(), ServerId(77));
    assert!(is_of(&first, id) && !is_of(&first, other));
    let left = request::not_after(&first)
        .unwrap()
        .duration_since(SystemTime::now());
    assert!(left.unwrap() <= Duration::from_secs(4));

    let request_pem = request::request(&key).unwrap();
    server.send(&ToCoordinator::RenewCertificate { request_pem });
    let second = loop {
        match server.receive(PATIENCE).expect("a certificate") {
            ToServer::Certificate { certificate_pem } => break certificate_pem,
            _ => continue,
        }
    };
    assert!(is_of(&second, id) && second != first);
    // A request that cannot be granted costs the answer alone.
    let request_pem = "nonsense".to_string();
    server.send(&ToCoordinator::RenewCertificate { request_pem });
    server.live();

    // With its certificate it may come back, and gets a new one each time.
    let credential = server.welcome.as_ref().unwrap().credential.clone();
    let back = Register {
        credential: credential.clone(),
        certificate_request_pem: Some(request::request(&key).unwrap()),
        ..register("s1")
    };
    let again = Server::connect_showing(&coordinator, back.clone(), Some((&second, &key))).welcomed();
    assert!(again.welcome.unwrap().certificate_pem.is_some());

    // An expired certificate is refused; the credential alone is accepted.
    // Dates are whole seconds, and the last one still counts.
    std::thread::sleep(Duration::from_millis(5_100));
    let mut late = Server::connect_showing(&coordinator, back.clone(), Some((&second, &key)));
    assert_eq!(late.receive(PATIENCE), None, "the connection ends");
    let renewed = Server::connect(&coordinator, back).welcomed().welcome.unwrap();
    let good = request::not_after(&renewed.certificate_pem.unwrap()).unwrap();
    assert!(good > SystemTime::now());
}

#[test]
fn a_certificate_counts_for_its_own_server_only() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let (first, _, _) = join(&coordinator, "s1");
    let (_second, key, certificate) = join(&coordinator, "s2");
    let as_first = Register {
        credential: first.welcome.as_ref().unwrap().credential.clone(),
        ..register("s1")
    };
    let stolen = Server::connect_showing(&coordinator, as_first, Some((&certificate, &key)));
    let (code, message) = refusal(stolen);
    assert_eq!(code, RefuseCode::RegisterInvalid);
    assert!(message.contains("not its own"), "{message}");

    // A bad request is refused before anything is changed: the token is still good afterwards.
    let token = coordinator.join_token();
    let asking = |address: &str, request_pem: &str| Register {
        join_token: Some(token.clone()),
        address: address.into(),
        certificate_request_pem: Some(request_pem.into()),
        ..register("s3")
    };
    let good = request::request(&request::new_key()).unwrap();
    // An unauthenticated server is refused as such: nothing is signed to check its request.
    let stranger = Register {
        join_token: Some("qjt_guess".into()),
        ..asking("127.0.0.1:7999", "nonsense")
    };
    let (code, message) = refusal(Server::connect(&coordinator, stranger));
    assert_eq!(code, RefuseCode::JoinTokenInvalid, "{message}");
    for (address, request_pem, words) in [
        (
            "server-1.quorate.internal:7000",
            good.as_str(),
            "cannot be advertised",
        ),
        (
            "Coordinator.Quorate.Internal:7000",
            good.as_str(),
            "cannot be advertised",
        ),
        ("127.0.0.1:7999", "nonsense", "certificate request"),
    ] {
        let (code, message) = refusal(Server::connect(&coordinator, asking(address, request_pem)));
        assert_eq!(code, RefuseCode::RegisterInvalid);
        assert!(message.contains(words), "{message}");
    }
    Server::connect(&coordinator, asking("127.0.0.1:7999", &good)).welcomed();
}
