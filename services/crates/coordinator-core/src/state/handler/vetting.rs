//! Registrations are vetted before anything is kept of them: a caller with neither a join token nor a credential shall
//! not fill the coordinator's disk.

use quorate_types::ServerId;
use quorate_types::control::RefuseCode;

use crate::command::{Proof, Refused, Registration};
use crate::state::table::{Groups, JoinTokens, Servers};

/// Reads servers, tokens and groups; changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Vetting<'a> {
    pub servers: &'a Servers,
    pub tokens: &'a JoinTokens,
    pub groups: &'a Groups,
    pub now_ms: u64,
}

/// A join token that admits the server.
#[derive(Debug, Clone, Copy)]
pub struct Admitted {
    /// The server that it admitted before, if this very process asks again.
    pub again: Option<ServerId>,
    pub auxiliary: bool,
}

impl Vetting<'_> {
    /// Whether the registration would be accepted.
    pub fn vet(&self, registration: &Registration) -> Result<(), Refused> {
        if let Some(problem) = registration.problem() {
            return refuse(RefuseCode::RegisterInvalid, problem);
        }
        match &registration.proof {
            Proof::JoinToken { digest, .. } => {
                let admitted = self.check_token(registration, digest)?;
                let own = admitted.again.or_else(|| self.abandoned(&registration.name));
                if own.is_none() {
                    self.name_is_free(&registration.name, None)?;
                }
                // By a token somebody vouches for a new machine, which may have the address of one that is no more,
                // once that one has failed.
                self.address_is_free(&registration.address, own)
            }
            Proof::Credential(digest) => {
                let id = self.holder_of(digest)?;
                self.name_is_free(&registration.name, Some(id))?;
                if self.servers[&id].region != registration.region {
                    let message = "a server cannot change its region: join it as a new one".into();
                    return refuse(RefuseCode::RegisterInvalid, message);
                }
                let had = &self.servers[&id].address;
                if had.eq_ignore_ascii_case(&registration.address) {
                    return Ok(());
                }
                self.address_is_free(&registration.address, Some(id))
            }
        }
    }

    pub fn holder_of(&self, credential_digest: &str) -> Result<ServerId, Refused> {
        self.servers.with_credential(credential_digest).ok_or_else(|| {
            let message = "this fleet does not know the credential; was the coordinator's data folder replaced, or \
                           the server given up with `forget`?";
            (RefuseCode::CredentialInvalid, message.into())
        })
    }

    /// Whether the token admits this server.
    pub fn check_token(&self, registration: &Registration, digest: &str) -> Result<Admitted, Refused> {
        let refused = |code, message: &str| Err((code, message.to_string()));
        let Some(token) = self.tokens.get(digest) else {
            return refused(
                RefuseCode::JoinTokenInvalid,
                "this fleet did not issue the join token",
            );
        };
        if let Some((server, incarnation)) = &token.used_by {
            let known = &self.servers[server];
            let is_same_process =
                *incarnation == registration.incarnation && known.incarnation == registration.incarnation;
            let is_same_server = known.name == registration.name && known.region == registration.region;
            if !is_same_process || !is_same_server {
                let message = "the join token has been used; a token works once: issue another";
                return refused(RefuseCode::JoinTokenUsed, message);
            }
        }
        if token.revoked {
            let message = "the join token was revoked: issue another";
            return refused(RefuseCode::JoinTokenInvalid, message);
        }
        if token.terms.expires_at_ms <= self.now_ms {
            let message = "the join token has expired: issue another";
            return refused(RefuseCode::JoinTokenExpired, message);
        }
        let bound_to = token.terms.name.as_ref();
        if bound_to.is_some_and(|name| *name != registration.name) {
            let message = "the join token was issued for a server of another name";
            return refused(RefuseCode::JoinTokenInvalid, message);
        }
        Ok(Admitted {
            again: token.used_by.as_ref().map(|(server, _)| *server),
            auxiliary: token.terms.auxiliary,
        })
    }

    /// A failed server of that name without replicas: it never got its credential, or was wiped. A new join token lets
    /// it start over under its name.
    pub fn abandoned(&self, name: &str) -> Option<ServerId> {
        let id = self.servers.named(name)?;
        (!self.servers.is_alive(id) && self.groups.count_on(id) == 0).then_some(id)
    }

    fn name_is_free(&self, name: &str, own: Option<ServerId>) -> Result<(), Refused> {
        match self.servers.named(name) {
            Some(other) if Some(other) != own => {
                let message = format!(
                    "another server is named {name:?}: choose a name of its own with --name, or, if that is this very \
                     machine and it never got its credential, have it given up with `forget` first"
                );
                refuse(RefuseCode::NameTaken, message)
            }
            _ => Ok(()),
        }
    }

    /// No server takes the address of one that is alive. Clients and peers would be sent to another process there, and
    /// two servers would get a certificate for its host.
    fn address_is_free(&self, address: &str, own: Option<ServerId>) -> Result<(), Refused> {
        let mut others =
            (self.servers.values()).filter(|server| server.alive && Some(server.server_id) != own);
        let holder = others.find(|server| server.address.eq_ignore_ascii_case(address));
        match holder {
            Some(holder) => {
                let name = &holder.name;
                let message = format!(
                    "server {name:?}, which is alive, has the address {address}: advertise another, or, if this one \
                     replaces it, try again when it has failed"
                );
                refuse(RefuseCode::RegisterInvalid, message)
            }
            None => Ok(()),
        }
    }
}

fn refuse(code: RefuseCode, message: String) -> Result<(), Refused> {
    Err((code, message))
}
