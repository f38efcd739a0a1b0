//! What servers say on their connections; what changes nothing is kept from the log.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use quorate_types::control::{Heartbeat, ToCoordinator, ToServer};
use quorate_types::planted::{self, Bug};

use super::{Engine, Now, Outgoing};
use crate::leases::ConnectionId;
use crate::state::command::Command;
use crate::state::group::Group;

/// What a server reports may be a heartbeat behind what it was just sent.
const RECONCILE_EVERY_MS: u64 = 2_000;

impl Engine {
    pub(super) fn message(&mut self, now: Now, connection: ConnectionId, message: ToCoordinator) {
        let Some(server) = self.connections.get(&connection).and_then(|known| known.server) else {
            return;
        };
        if self.connection_of.get(&server) != Some(&connection) {
            return;
        }
        match message {
            ToCoordinator::Register(_) => self.close(connection),
            ToCoordinator::Heartbeat(heartbeat) => self.heartbeat(now, connection, server, heartbeat),
            ToCoordinator::RenewCertificate { request_pem } => {
                if let Some(order) = self.order_certificate(server, request_pem) {
                    self.batch
                        .outgoing
                        .push(Outgoing::Certificate { connection, order });
                }
            }
            ToCoordinator::Applied { group_id, epoch } => {
                // Only the first chain's word changes anything, or that of one which was down; the log is spared the
                // rest.
                let matters = |group: &Group| group.awaits_applied(epoch);
                if self.state.groups.get(&group_id).is_some_and(matters) {
                    let command = Command::Applied {
                        server,
                        group_id,
                        epoch,
                    };
                    self.apply_and_act(now, command);
                }
            }
            ToCoordinator::LearnerCaughtUp {
                group_id,
                epoch,
                learner,
            } => {
                let current = |group: &Group| {
                    (group.epoch == epoch || planted::on(Bug::StalePromotion))
                        && group.learner == Some(learner)
                };
                if self.state.groups.get(&group_id).is_some_and(current) {
                    let command = Command::LearnerCaughtUp {
                        server,
                        group_id,
                        epoch,
                        learner,
                    };
                    self.apply_and_act(now, command);
                }
            }
            ToCoordinator::Dropped { group_id } => {
                if self.state.servers[&server].to_drop.contains_key(&group_id) {
                    self.apply_and_act(now, Command::Dropped { server, group_id });
                }
            }
        }
    }

    fn heartbeat(&mut self, now: Now, connection: ConnectionId, server: ServerId, heartbeat: Heartbeat) {
        if !self.leases.heartbeat(server, connection, now.ms) {
            return self.close(connection);
        }
        self.send(connection, ToServer::HeartbeatAck { seq: heartbeat.seq });
        let fault = heartbeat.storage_fault;
        if self.state.servers[&server].storage_fault != fault {
            self.apply_and_act(now, Command::StorageFault { server, fault });
        }
        for (group_id, commit_offset) in self.state.offsets_due(server, &heartbeat.groups) {
            let command = Command::OffsetsReached {
                group_id,
                commit_offset,
            };
            self.apply_and_act(now, command);
        }
        self.suspicions
            .heartbeat(server, &heartbeat.unreachable, &heartbeat.slow, now.ms);
        let reported: BTreeSet<ServerId> = heartbeat.unreachable.into_iter().collect();
        self.unreachable
            .retain(|(from, peer)| *from != server || reported.contains(peer));
        for peer in reported {
            if self.state.is_alive(peer) && self.unreachable.insert((server, peer)) {
                self.apply_and_act(now, Command::PeerUnreachable { server, peer });
            }
        }
        let Some(known) = self.connections.get_mut(&connection) else {
            return;
        };
        if now.ms.saturating_sub(known.reconciled_ms) >= RECONCILE_EVERY_MS {
            known.reconciled_ms = now.ms;
            for message in self.state.corrections(server, &heartbeat.groups) {
                self.send(connection, message);
            }
        }
    }
}
