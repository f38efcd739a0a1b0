//! Credentials of servers: the ones they show are checked; certificates and peer tokens are made for them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{FleetKeys, pin};
use quorate_types::ServerId;
use quorate_types::control::Register;
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;
use tracing::{info, warn};

use super::clock::unix_ms;
use crate::exit::Failure;
use crate::shell::secrets::{PrivateKeys, digest, random_secret};
use quorate_coordinator_core::command::{FleetSecrets, Proof};
use quorate_coordinator_core::engine::{Candidate, CertificateOrder, Engine};
use quorate_coordinator_core::ids::ConnectionId;

pub struct Credentials {
    fleet_keys: FleetKeys,
    data_dir: PathBuf,
    /// The lifetime of servers' certificates.
    certificate_lifetime: Duration,
    /// The keys as the state has them. None: it has none yet.
    sealed: Option<FleetSecrets>,
    /// Older ones could not be opened.
    is_behind: bool,
    /// They are encrypted with a key that is being replaced.
    is_outdated: bool,
    /// The same keys, open.
    keys: watch::Sender<Option<Arc<PrivateKeys>>>,
}

impl Credentials {
    /// With the fleet's keys for others, once they are known.
    pub fn new(
        fleet_keys: FleetKeys,
        data_dir: PathBuf,
        certificate_lifetime: Duration,
    ) -> (Self, watch::Receiver<Option<Arc<PrivateKeys>>>) {
        let (keys, known) = watch::channel(None);
        let own = Self {
            fleet_keys,
            data_dir,
            certificate_lifetime,
            sealed: None,
            is_behind: false,
            is_outdated: false,
            keys,
        };
        (own, known)
    }

    /// Opens the keys that are agreed, if they are others than before. Says whether others went before them in this log.
    /// A coordinator needs them to lead: the log of another may end before they were encrypted with the key that it has.
    pub fn follow(&mut self, secrets: &FleetSecrets, leads: bool) -> Result<bool, Failure> {
        if self.sealed.as_ref() == Some(secrets) {
            return Ok(false);
        }
        let (keys, is_current) = match PrivateKeys::open(&self.fleet_keys, secrets) {
            Ok(opened) => opened,
            Err(_) if !leads => {
                self.is_behind = true;
                return Ok(false);
            }
            Err(failure) => return Err(failure),
        };
        keys.show_authority(&self.data_dir)?;
        PrivateKeys::remove_files(&self.data_dir)?;
        if self.is_outdated && is_current {
            info!("the fleet's private keys are encrypted with its new key");
        }
        let was_there = self.sealed.replace(secrets.clone()).is_some();
        self.is_outdated = !is_current;
        self.keys.send_replace(Some(Arc::new(keys)));
        Ok(was_there || std::mem::take(&mut self.is_behind))
    }

    /// The keys encrypted with the fleet's key in use, if they are encrypted with another.
    pub fn sealed_again(&self) -> Option<FleetSecrets> {
        self.is_outdated.then(|| self.keys().seal(&self.fleet_keys))
    }

    fn keys(&self) -> Arc<PrivateKeys> {
        let keys = self.keys.borrow().clone();
        keys.expect("a leader's state has keys, and they were opened")
    }

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
            self.keys()
                .authority
                .issue(request, nobody, &register.address, self.certificate_lifetime, now)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub fn issue(&self, order: &CertificateOrder) -> Option<String> {
        let (server, address, lifetime) = (order.server, &order.address, self.certificate_lifetime);
        let now = SystemTime::now();
        match self
            .keys()
            .authority
            .issue(&order.request_pem, server, address, lifetime, now)
        {
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
        self.keys().peer_key.token(server, unix_ms() / 1_000)
    }
}

/// Whether the certificate, which is the authority's, belongs to a server that was given up since.
fn is_given_up(engine: &Engine, shown: &CertificateDer<'static>) -> bool {
    let servers = engine.state().servers.values();
    let mut given_up = servers.filter(|server| server.is_given_up());
    given_up.any(|server| is_issued_to(shown, server.server_id))
}
