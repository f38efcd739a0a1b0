//! What people ask of the coordinator, through the API: join tokens and groups. Whoever got no answer asks again.

use quorate_coordinator::state::command::{Command, JoinTokenTerms};
use quorate_types::{GroupId, Sla};
use uuid::Uuid;

use crate::world::World;

impl World {
    /// Somebody asks for these groups.
    pub fn admit(&mut self, slas: Vec<(GroupId, Sla)>) {
        self.coordinator.to_admit = slas;
    }

    /// What is still to be asked, with each tick.
    pub(super) fn ask_coordinator(&mut self) {
        for digest in std::mem::take(&mut self.coordinator.invitations) {
            let token = JoinTokenTerms {
                expires_at_ms: u64::MAX / 2,
                name: None,
                auxiliary: false,
            };
            self.command(Command::IssueJoinToken { digest, token });
        }
        let joined = self.coordinator.state().servers.len();
        if joined >= self.servers.len() && !self.coordinator.to_admit.is_empty() {
            for (group_id, sla) in self.coordinator.to_admit.clone() {
                self.command(Command::Admit {
                    group_id,
                    project_id: Uuid::from_u128(1),
                    sla,
                });
            }
            self.forget_admitted();
        }
    }

    /// What was asked of the coordinator and is not in its state.
    pub(super) fn ask_again(&mut self) {
        let slas = self.plan_slas();
        self.admit(slas);
        self.forget_admitted();
        for s in 0..self.servers.len() {
            if self.servers[s].id.is_none() {
                self.invite(s);
            }
        }
    }

    fn forget_admitted(&mut self) {
        let groups = &self.coordinator.engine.state().groups;
        self.coordinator
            .to_admit
            .retain(|(id, _)| !groups.contains_key(id));
    }
}
