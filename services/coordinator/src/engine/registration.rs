//! Servers are let in, or not. Nothing of a stranger's reaches the log.

use std::net::IpAddr;

use quorate_types::ServerId;
use quorate_types::control::{RefuseCode, ToServer, Welcome};

use super::{Candidate, CertificateOrder, Connection, Engine, Note, Now, Outgoing};
use crate::leases::ConnectionId;
use crate::state::Refused;
use crate::state::command::{Command, Effect, Registration};
use crate::state::placement::Foreign;

/// What of a name that proved nothing is noted, in characters.
const STRANGERS_NAME_CHARS: usize = 64;

impl Engine {
    pub(super) fn register(&mut self, now: Now, candidate: Candidate) {
        let (connection, from) = (candidate.connection, candidate.from);
        let (name, credential) = (candidate.register.name.clone(), candidate.credential.clone());
        let request_pem = candidate.register.certificate_request_pem.clone();
        let known = Connection {
            server: None,
            reconciled_ms: now.ms,
        };
        self.connections.insert(connection, known);
        let vetted = registration_of(candidate).and_then(|registration| {
            self.state.vet(&registration, now.unix_ms)?;
            Ok(registration)
        });
        let registration = match vetted {
            Ok(registration) => registration,
            Err(refused) => return self.reject(now, connection, from, &name, refused),
        };
        for effect in self.apply(now, Command::Register(Box::new(registration))) {
            match effect {
                Effect::Accept { server, joined } => {
                    let credential = joined.then(|| credential.clone());
                    self.accept(now, connection, server, &name, credential, request_pem.clone());
                }
                Effect::Refuse { code, message } => self.refuse(connection, &name, code, message),
                other => self.act(other),
            }
        }
    }

    /// Whether the coordinator would let it in, if its certificates are right.
    pub fn is_welcome(&self, candidate: &Candidate, unix_ms: u64) -> bool {
        let registration = registration_of(candidate.clone());
        registration.is_ok_and(|registration| self.state.vet(&registration, unix_ms).is_ok())
    }

    fn accept(
        &mut self,
        now: Now,
        connection: ConnectionId,
        server: ServerId,
        name: &str,
        credential: Option<String>,
        request_pem: Option<String>,
    ) {
        let name = name.to_string();
        self.batch.notes.push(Note::Registered { server, name });
        let registered = self.state.servers.get(&server);
        if let Some(how) = registered.and_then(|registered| self.state.foreign(registered)) {
            let is_refused = self.state.placement.foreign == Foreign::Refused;
            self.batch.notes.push(Note::Foreign {
                server,
                how,
                is_refused,
            });
        }
        if let Some(old) = self.connection_of.insert(server, connection) {
            self.close(old);
        }
        self.leases.connected(server, connection, now.ms);
        if let Some(known) = self.connections.get_mut(&connection) {
            known.server = Some(server);
        }
        let welcome = Welcome {
            server_id: server,
            credential,
            heartbeat_ms: self.settings.heartbeat_ms,
            lease_ms: self.settings.leases.lease_ms,
            client_keys: self.settings.client_keys.clone(),
            peer_keys: self.settings.peer_keys.clone(),
            peer_token: String::new(),
            promised_share: Some(self.state.profile.safety_factor),
            certificate_pem: None,
        };
        let certificate = request_pem.and_then(|request_pem| self.order_certificate(server, request_pem));
        self.batch.outgoing.push(Outgoing::Welcome {
            connection,
            welcome,
            certificate,
        });
    }

    pub(super) fn order_certificate(
        &self,
        server: ServerId,
        request_pem: String,
    ) -> Option<CertificateOrder> {
        let address = self.state.servers.get(&server)?.address.clone();
        Some(CertificateOrder {
            server,
            address,
            request_pem,
        })
    }

    /// Refuses somebody who has proved nothing: the name is as it came.
    fn reject(&mut self, now: Now, connection: ConnectionId, from: IpAddr, name: &str, refused: Refused) {
        if self.refusals.may_answer(from, now.ms) {
            let name: String = name.chars().take(STRANGERS_NAME_CHARS).collect();
            self.refuse(connection, &name, refused.0, refused.1);
        } else {
            self.close(connection);
        }
    }

    fn refuse(&mut self, connection: ConnectionId, name: &str, code: RefuseCode, message: String) {
        self.batch.notes.push(Note::Refused {
            name: name.to_string(),
            code,
            message: message.clone(),
        });
        self.send(connection, ToServer::Refuse { code, message });
        self.close(connection);
    }
}

fn registration_of(candidate: Candidate) -> Result<Registration, Refused> {
    let invalid = |message| (RefuseCode::RegisterInvalid, message);
    candidate.certificates.map_err(invalid)?;
    let neither = || invalid("register needs either a join_token or a credential".to_string());
    let proof = candidate.proof.ok_or_else(neither)?;
    let register = candidate.register;
    Ok(Registration {
        proof,
        name: register.name,
        address: register.address,
        incarnation: register.incarnation,
        capacity: register.capacity,
        failure_domain: register.failure_domain,
        region: register.region,
        held: register.held,
        previous_incarnations: register.previous_incarnations,
        version: register.version,
        machine: register.machine,
    })
}
