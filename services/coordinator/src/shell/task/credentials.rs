//! Credentials of servers: the ones they show are checked; certificates and peer tokens are made for them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{Authority, pin};
use quorate_types::ServerId;
use quorate_types::control::Register;
use rustls::pki_types::CertificateDer;
use tracing::{info, warn};

use super::clock::unix_ms;
use crate::shell::secrets::{PeerKey, digest, random_secret};
use quorate_coordinator_core::command::Proof;
use quorate_coordinator_core::engine::{Candidate, CertificateOrder, Engine};
use quorate_coordinator_core::ids::ConnectionId;

/// Fixed for the life of the process.
pub struct Credentials {
    pub peer_key: PeerKey,
    pub authority: Arc<Authority>,
    /// The lifetime of servers' certificates.
    pub certificate_lifetime: Duration,
}

impl Credentials {
    /// A server that asks the engine to be let in, with a fresh credential in case it is.
    pub fn candidate(
        &self,
        engine: &Engine,
        (connection, from): (ConnectionId, IpAddr),
        register: Register,
        shown: Option<&CertificateDer<'static>>,
    ) -> Candidate {
        let credential = random_secret("qsc_");
        let proof = match (&register.join_token, &register.credential) {
            (Some(token), None) => Some(Proof::JoinToken {
                digest: digest(pin::split(token).0),
                credential_digest: digest(&credential),
            }),
            (None, Some(known)) => Some(Proof::Credential(digest(known))),
            _ => None,
        };
        let mut candidate = Candidate {
            connection,
            from,
            proof,
            credential,
            certificates: Ok(()),
            is_certified: shown.is_some_and(|shown| !is_given_up(engine, shown)),
            register,
        };
        // The check makes a signature on trial: only servers that have proved something are worth it.
        if engine.is_welcome(&candidate, unix_ms()) {
            candidate.certificates = self.check_certificates(engine, &candidate.register, shown);
        }
        candidate
    }

    /// Checks before any change that a certificate shown is the server's own, and that one asked for can be issued.
    fn check_certificates(
        &self,
        engine: &Engine,
        register: &Register,
        shown: Option<&CertificateDer<'static>>,
    ) -> Result<(), String> {
        if let Some(shown) = shown {
            let digest = register.credential.as_deref().map(digest);
            let known = digest.and_then(|digest| {
                let mut servers = engine.state().servers.values();
                servers.find(|server| server.credential_digest == digest)
            });
            if !known.is_some_and(|known| is_issued_to(shown, known.server_id)) {
                return Err("the certificate that the server shows is not its own".into());
            }
        }
        if let Some(request) = &register.certificate_request_pem {
            let (nobody, now) = (ServerId(0), SystemTime::now());
            self.authority
                .issue(request, nobody, &register.address, self.certificate_lifetime, now)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub fn issue(&self, order: &CertificateOrder) -> Option<String> {
        let (server, address, lifetime) = (order.server, &order.address, self.certificate_lifetime);
        let now = SystemTime::now();
        match (self.authority).issue(&order.request_pem, server, address, lifetime, now) {
            Ok(certificate) => {
                info!(
                    server_id = server.0,
                    address,
                    life_s = lifetime.as_secs(),
                    "certificate issued"
                );
                Some(certificate)
            }
            Err(error) => {
                warn!(server_id = server.0, %error, "no certificate was issued to a server");
                None
            }
        }
    }

    pub fn peer_token(&self, server: ServerId) -> String {
        self.peer_key.token(server, unix_ms() / 1_000)
    }
}

/// Whether the certificate, which is the authority's, belongs to a server that was given up since.
fn is_given_up(engine: &Engine, shown: &CertificateDer<'static>) -> bool {
    let servers = engine.state().servers.values();
    let mut given_up = servers.filter(|server| server.is_given_up());
    given_up.any(|server| is_issued_to(shown, server.server_id))
}
