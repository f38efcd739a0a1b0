//! Servers' messages on their connections.

use quorate_types::ServerId;
use quorate_types::control::{Heartbeat, ToCoordinator, ToServer};

use super::evidence;
use super::io::{Now, Outgoing};
use super::registrar::certificate_order;
use super::sequencer::Sequencer;
use crate::ids::ConnectionId;
use crate::planner::reports;

/// May propose what the planner makes of a message, and answer on its connection.
#[derive(Debug)]
pub struct Messages<'a> {
    sequencer: &'a mut Sequencer,
    now: Now,
}

impl<'a> Messages<'a> {
    pub fn new(sequencer: &'a mut Sequencer, now: Now) -> Self {
        Self { sequencer, now }
    }

    /// Messages on a connection that is no server's present one are ignored.
    pub fn message(&mut self, connection: ConnectionId, message: ToCoordinator) {
        let Some(server) = self.sequencer.connections().server_on(connection) else {
            return;
        };
        match message {
            ToCoordinator::Register(_) | ToCoordinator::Held { .. } => self.sequencer.close(connection),
            ToCoordinator::Heartbeat(heartbeat) => self.heartbeat(connection, server, heartbeat),
            ToCoordinator::RenewCertificate { request_pem } => {
                if let Some(order) = certificate_order(self.sequencer.state(), server, request_pem) {
                    self.sequencer.push(Outgoing::Certificate { connection, order });
                }
            }
            ToCoordinator::Applied {
                group_id,
                epoch,
                digest,
            } => {
                let state = self.sequencer.state();
                if let Some(behind) = evidence::in_applied(state, server, (group_id, epoch), digest) {
                    return self.sequencer.find_behind(behind);
                }
                let command = reports::proposal(state, server, &message);
                self.sequencer.propose(self.now, command);
            }
            ToCoordinator::Sharing(report) => {
                let sharing = Outgoing::Sharing {
                    connection,
                    server,
                    report,
                };
                self.sequencer.push(sharing);
            }
            ToCoordinator::Flows(report) => {
                let flows = Outgoing::Flows {
                    connection,
                    server,
                    report,
                };
                self.sequencer.push(flows);
            }
            ToCoordinator::LearnerCaughtUp { .. }
            | ToCoordinator::Dropped { .. }
            | ToCoordinator::LayoutSealed { .. } => {
                let command = reports::proposal(self.sequencer.state(), server, &message);
                self.sequencer.propose(self.now, command);
            }
        }
    }

    fn heartbeat(&mut self, connection: ConnectionId, server: ServerId, heartbeat: Heartbeat) {
        let now_ms = self.now.ms;
        let sequencer = &mut *self.sequencer;
        if let Some(behind) = evidence::in_heartbeat(sequencer.state(), server, &heartbeat.groups) {
            return sequencer.find_behind(behind);
        }
        if !sequencer.planner().extend_lease(server, connection, now_ms) {
            return sequencer.close(connection);
        }
        let changes = heartbeat.changes.as_ref();
        let agrees = sequencer.heard().take(server, &heartbeat.groups, changes);
        let ack = ToServer::HeartbeatAck {
            seq: heartbeat.seq,
            repeat: !agrees,
            unix_ms: Some(self.now.unix_ms),
        };
        sequencer.send(connection, ack);
        let fault = reports::storage_fault(sequencer.state(), server, heartbeat.storage_fault);
        sequencer.propose(self.now, fault);
        let estimated = reports::estimated(sequencer.state(), server, heartbeat.estimated.as_deref());
        sequencer.propose(self.now, estimated);
        sequencer
            .connections()
            .hear_estimate(connection, heartbeat.estimated.map(|one| *one));
        let offsets = reports::offsets(sequencer.state(), server, &heartbeat.groups);
        sequencer.propose(self.now, offsets);
        let quarantined = reports::quarantined(sequencer.state(), server, &heartbeat.quarantined);
        sequencer.propose(self.now, quarantined);
        let (planner, state) = sequencer.planning();
        planner.hear_hang(server, heartbeat.hung_ms, now_ms);
        let unreachable = planner.hear(state, server, &heartbeat.unreachable, &heartbeat.slow, now_ms);
        sequencer.propose(self.now, unreachable);
        let is_whole = sequencer.heard().whole(server).is_some();
        if is_whole && sequencer.connections().begin_reconciling(connection, now_ms) {
            let mut missed = sequencer.corrections(server);
            missed.extend(reports::quarantines_to_tell(
                sequencer.state(),
                &heartbeat.quarantined,
            ));
            for message in missed {
                sequencer.send(connection, message);
            }
        }
    }
}
