//! Credentials are revoked: every server refuses their tokens from then on (`docs/internals/coordinator.md`).

use quorate_types::control::ToServer;
use quorate_types::limits::REVOCATIONS_MAX;
use quorate_types::revocation::Revocation;

use super::outbox::Outbox;
use crate::command::Reply;
use crate::state::table::{Revocations, Servers};

/// May add revocations, and nothing else.
#[derive(Debug)]
pub struct Revoking<'a> {
    revocations: &'a mut Revocations,
    servers: &'a Servers,
    out: Outbox<'a>,
}

impl<'a> Revoking<'a> {
    pub fn new(revocations: &'a mut Revocations, servers: &'a Servers, out: Outbox<'a>) -> Self {
        Self {
            revocations,
            servers,
            out,
        }
    }

    /// Takes all of them or none. Servers that are away hear of them when they register.
    pub fn revoke(&mut self, asked: &[Revocation]) {
        let now_s = self.out.now_ms() / 1_000;
        self.revocations.forget_expired(now_s);
        let is_new = |one: &&Revocation| one.until_s >= now_s && !self.revocations.has(one);
        let new: Vec<Revocation> = asked.iter().filter(is_new).copied().collect();
        if self.revocations.count() + new.len() > REVOCATIONS_MAX {
            let message =
                format!("{REVOCATIONS_MAX} credentials are revoked whose tokens have not expired yet.");
            let code = "too_many_revocations";
            return self.out.reply(Reply::Conflict { code, message });
        }
        for revocation in &new {
            self.revocations.add(*revocation);
        }
        if !new.is_empty() {
            for server in self.servers.values().filter(|server| server.alive) {
                let revocations = new.clone();
                self.out.send(server.server_id, ToServer::Revoked { revocations });
            }
        }
        self.out.reply(Reply::Done);
    }
}
