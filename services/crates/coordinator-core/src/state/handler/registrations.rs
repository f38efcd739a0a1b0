//! A server registers: it is vetted, and joins or is taken back. Its replicas are settled afterwards, by `returns`.

use quorate_types::ServerId;

use super::roster::Roster;
use super::vetting::Vetting;
use crate::command::{Proof, Refused, Registration};
use crate::state::table::{Groups, JoinTokens};

/// May note the use of a join token, and change servers through the roster; reads groups.
#[derive(Debug)]
pub struct Registrations<'a> {
    roster: Roster<'a>,
    tokens: &'a mut JoinTokens,
    groups: &'a Groups,
}

/// A server that was let in.
#[derive(Debug, Clone, Copy)]
pub enum Arrival {
    Joined(ServerId),
    Returned(Return),
}

/// A known server's return.
#[derive(Debug, Clone, Copy)]
pub struct Return {
    pub server: ServerId,
    pub disk: Disk,
    /// It has another address than before: its neighbours must find it elsewhere.
    pub moved: bool,
    pub was_alive: bool,
}

/// How the data that a server holds relates to the data that it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// Nothing was restarted: memory and disk are as before.
    SameProcess,
    /// A new process on the data folder of the former one.
    Kept,
    /// A new process on an older copy of the folder.
    Older,
}

impl<'a> Registrations<'a> {
    pub fn new(roster: Roster<'a>, tokens: &'a mut JoinTokens, groups: &'a Groups) -> Self {
        Self {
            roster,
            tokens,
            groups,
        }
    }

    pub fn register(&mut self, registration: &Registration) -> Result<Arrival, Refused> {
        self.vetting().vet(registration)?;
        match &registration.proof {
            Proof::JoinToken {
                digest,
                credential_digest,
            } => self
                .join(registration, digest, credential_digest)
                .map(Arrival::Joined),
            Proof::Credential(digest) => self.take_back(registration, digest).map(Arrival::Returned),
        }
    }

    /// With a join token: a new server. The same process may try again if the answer was lost.
    fn join(
        &mut self,
        registration: &Registration,
        digest: &str,
        credential: &str,
    ) -> Result<ServerId, Refused> {
        let vetting = self.vetting();
        let admitted = vetting.check_token(registration, digest)?;
        let known = admitted.again.or_else(|| vetting.abandoned(&registration.name));
        let id = known.unwrap_or_else(|| vetting.servers.next_id());
        self.tokens.note_use(digest, id, &registration.incarnation);
        self.roster.join(id, registration, credential, admitted.auxiliary);
        Ok(id)
    }

    /// With a credential: a known server, in the same process or in a new one.
    fn take_back(&mut self, registration: &Registration, digest: &str) -> Result<Return, Refused> {
        let vetting = self.vetting();
        let server = vetting.holder_of(digest)?;
        let before = &vetting.servers[&server];
        let back = Return {
            server,
            disk: disk_of(&before.incarnation, registration),
            moved: before.address != registration.address,
            was_alive: before.alive,
        };
        self.roster.take_back(server, registration);
        Ok(back)
    }

    fn vetting(&self) -> Vetting<'_> {
        Vetting {
            servers: self.roster.servers(),
            tokens: self.tokens,
            groups: self.groups,
            now_ms: self.roster.now_ms(),
        }
    }
}

fn disk_of(incarnation_before: &String, registration: &Registration) -> Disk {
    let ran_before = &registration.previous_incarnations;
    if *incarnation_before == registration.incarnation {
        Disk::SameProcess
    } else if ran_before.is_empty() || ran_before.contains(incarnation_before) {
        Disk::Kept
    } else {
        Disk::Older
    }
}
