//! Servers are let in, or refused. Nothing of an unauthenticated connection reaches the log.

use std::net::IpAddr;

use quorate_types::control::{RefuseCode, ToServer, Welcome};
use quorate_types::{ServerId, Versions, versions};
use serde_json::Value;

use super::connections::Told;
use super::evidence::holder_of;
use super::io::{Candidate, CertificateOrder, Note, Now, Outgoing, Settings};
use super::refusals::Refusals;
use super::roll_call::RollCall;
use super::sequencer::Sequencer;
use crate::command::{Command, Effect, Mismatched, Refused, Registration};
use crate::ids::ConnectionId;
use crate::state::CoordinatorState;

/// Characters of a name that are noted though nothing was proved.
const UNPROVED_NAME_CHARS: usize = 64;

/// May propose a registration, bind its connection, and count refusals.
#[derive(Debug)]
pub struct Registrar<'a> {
    sequencer: &'a mut Sequencer,
    refusals: &'a mut Refusals,
    settings: &'a Settings,
    now: Now,
}

/// A server that was let in, by its own words.
struct Accepted {
    connection: ConnectionId,
    server: ServerId,
    name: String,
    /// Its new one, when it joined.
    credential: Option<String>,
    request_pem: Option<String>,
    versions: Versions,
}

impl<'a> Registrar<'a> {
    pub fn new(
        sequencer: &'a mut Sequencer,
        refusals: &'a mut Refusals,
        settings: &'a Settings,
        now: Now,
    ) -> Self {
        Self {
            sequencer,
            refusals,
            settings,
            now,
        }
    }

    /// Takes in a candidate while the roll call runs: one that would be let in waits for its end.
    pub fn hear(&mut self, candidate: Candidate, roll_call: &mut RollCall) {
        if self.vet(candidate.clone()).is_err() {
            return self.register(candidate);
        }
        if let Some(server) = holder_of(self.sequencer.state(), &candidate) {
            roll_call.hear(server, self.now);
        }
        self.sequencer
            .connections()
            .open(candidate.connection, Told::of(&candidate.register), self.now.ms);
        if let Some(earlier) = roll_call.hold(candidate) {
            self.sequencer.close(earlier);
        }
    }

    pub fn register(&mut self, candidate: Candidate) {
        let (connection, from) = (candidate.connection, candidate.from);
        let (name, credential) = (candidate.register.name.clone(), candidate.credential.clone());
        let request_pem = candidate.register.certificate_request_pem.clone();
        let (hung_ms, is_of_this_log) = (candidate.register.hung_ms, self.is_of_this_log(&candidate));
        let holder = holder_of(self.sequencer.state(), &candidate);
        let (versions, told) = (candidate.register.versions, Told::of(&candidate.register));
        let now_ms = self.now.ms;
        self.sequencer.connections().open(connection, told, now_ms);
        let registration = match self.vet(candidate) {
            Ok(registration) => registration,
            Err((RefuseCode::CredentialInvalid, _)) if !is_of_this_log => {
                return self.put_off(connection, from, &name);
            }
            Err(refused) => return self.reject(connection, from, &name, refused),
        };
        if holder.is_some_and(|server| self.is_kept_out(server, hung_ms)) {
            // No refusal: that would end the server, which is to try again.
            return self.sequencer.close(connection);
        }
        let command = Command::Register(Box::new(registration));
        for effect in self.sequencer.apply(self.now, command) {
            match effect {
                Effect::Accept { server, joined } => self.accept(Accepted {
                    connection,
                    server,
                    name: name.clone(),
                    credential: joined.then(|| credential.clone()),
                    request_pem: request_pem.clone(),
                    versions,
                }),
                Effect::Refuse { code, message } => self.refuse(connection, &name, (code, message)),
                other => self.sequencer.carry_out(other),
            }
        }
    }

    fn vet(&self, candidate: Candidate) -> Result<Registration, Refused> {
        let (spoken, fleet) = (candidate.register.versions, candidate.register.fleet_versions);
        let registration = registration_of(candidate)?;
        let state = self.sequencer.state();
        // A stranger learns nothing of the fleet.
        state.vet(&registration, self.now.unix_ms)?;
        speaks_as_the_fleet(spoken, fleet, state.fleet_version)?;
        Ok(registration)
    }

    /// Whether the candidate was told of nothing that this log lacks. Otherwise an older copy of a log that knows it may be
    /// in its place.
    fn is_of_this_log(&self, candidate: &Candidate) -> bool {
        let history = &self.sequencer.state().history;
        candidate
            .register
            .place
            .is_none_or(|place| history.contains(place))
    }

    /// No refusal: that would end the server, which may hold the last replica of a group. It tries again.
    fn put_off(&mut self, connection: ConnectionId, from: IpAddr, name: &str) {
        if self.refusals.may_answer(from, self.now.ms) {
            let name = name.chars().take(UNPROVED_NAME_CHARS).collect();
            self.sequencer.note(Note::OfAnotherLog { name });
        }
        self.sequencer.close(connection);
    }

    /// Whether a known server hangs. It keeps its places that it still has, and takes them up when the hang ends.
    fn is_kept_out(&mut self, server: ServerId, hung_ms: u64) -> bool {
        let now_ms = self.now.ms;
        let (planner, state) = self.sequencer.planning();
        planner.hear_hang(server, hung_ms, now_ms);
        let is_kept_out = planner.keeps_out(state, server, now_ms);
        if is_kept_out {
            self.sequencer.note(Note::KeptOut { server, hung_ms });
        }
        is_kept_out
    }

    fn accept(&mut self, accepted: Accepted) {
        let (connection, server) = (accepted.connection, accepted.server);
        let name = accepted.name;
        self.sequencer.note(Note::Registered { server, name });
        self.note_mismatch(server);
        if let Some(old) = self.sequencer.connections().bind(connection, server) {
            self.sequencer.close(old);
        }
        self.sequencer.heard().forget(server);
        let now_ms = self.now.ms;
        self.sequencer.planner().connected(server, connection, now_ms);
        let state = self.sequencer.state();
        let secrets = state.secrets.as_deref();
        let welcome = Welcome {
            server_id: server,
            credential: accepted.credential,
            heartbeat_ms: self.settings.heartbeat_ms,
            lease_ms: self.settings.leases.lease_ms,
            client_keys: self.settings.client_keys.clone(),
            revoked: state.revocations.iter().collect(),
            peer_keys: secrets.map_or(Value::Null, |secrets| secrets.peer_keys.clone()),
            peer_token: String::new(),
            promised_share: Some(state.profile.safety_factor),
            certificate_pem: None,
            takes_changes: true,
            takes_sharing: true,
            takes_flows: true,
            unix_ms: Some(self.now.unix_ms),
            term: None,
            version: versions::CONTROL.agree(accepted.versions).expect("it was vetted"),
            fleet_version: state.fleet_version,
        };
        let certificate = (accepted.request_pem).and_then(|pem| certificate_order(state, server, pem));
        self.sequencer.push(Outgoing::Welcome {
            connection,
            welcome,
            certificate,
        });
    }

    fn note_mismatch(&mut self, server: ServerId) {
        let state = self.sequencer.state();
        let registered = state.servers.get(&server);
        if let Some(how) = registered.and_then(|registered| state.mismatch(registered)) {
            let is_refused = state.policy.mismatched == Mismatched::Refused;
            self.sequencer.note(Note::Mismatched {
                server,
                how,
                is_refused,
            });
        }
    }

    /// Refuses a candidate that has proved nothing: its name is as it came.
    fn reject(&mut self, connection: ConnectionId, from: IpAddr, name: &str, refused: Refused) {
        if self.refusals.may_answer(from, self.now.ms) {
            let name: String = name.chars().take(UNPROVED_NAME_CHARS).collect();
            self.refuse(connection, &name, refused);
        } else {
            self.sequencer.close(connection);
        }
    }

    fn refuse(&mut self, connection: ConnectionId, name: &str, (code, message): (RefuseCode, String)) {
        self.sequencer.note(Note::Refused {
            name: name.to_string(),
            code,
            message: message.clone(),
        });
        self.sequencer
            .send(connection, ToServer::Refuse { code, message });
        self.sequencer.close(connection);
    }
}

/// A certificate for a server, under the address that it registered with.
pub fn certificate_order(
    state: &CoordinatorState,
    server: ServerId,
    request_pem: String,
) -> Option<CertificateOrder> {
    let address = state.servers.get(&server)?.address.clone();
    Some(CertificateOrder {
        server,
        address,
        request_pem,
    })
}

/// Whether a server's release can be part of the fleet at its present version.
fn speaks_as_the_fleet(spoken: Versions, fleet: Versions, fleet_version: u16) -> Result<(), Refused> {
    let refused = |message| Err((RefuseCode::RegisterInvalid, message));
    if versions::CONTROL.agree(spoken).is_none() {
        return refused(format!(
            "this coordinator speaks {} of the control connection, and the server {spoken}: releases apart from one \
             another are no fleet; install one that is next to the coordinator's",
            versions::CONTROL
        ));
    }
    if !fleet.has(fleet_version) {
        let next = match fleet.newest < fleet_version {
            true => "install a newer release on the server",
            false => "raise the fleet's version first (quorate-coordinator fleet-version --raise)",
        };
        return refused(format!(
            "the fleet has version {fleet_version}, and this server's release reads {fleet}: {next}"
        ));
    }
    Ok(())
}

/// The registration that a candidate asks for.
pub fn registration_of(candidate: Candidate) -> Result<Registration, Refused> {
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
        room: register.room,
        failure_domain: register.failure_domain,
        region: register.region,
        held: register.held,
        previous_incarnations: register.previous_incarnations,
        version: register.version,
        machine: register.machine,
    })
}
