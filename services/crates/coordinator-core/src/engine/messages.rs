//! Servers' messages on their connections.

use quorate_types::ServerId;
use quorate_types::control::{Heartbeat, ToCoordinator, ToServer};

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
            ToCoordinator::Register(_) => self.sequencer.close(connection),
            ToCoordinator::Heartbeat(heartbeat) => self.heartbeat(connection, server, heartbeat),
            ToCoordinator::RenewCertificate { request_pem } => {
                if let Some(order) = certificate_order(self.sequencer.state(), server, request_pem) {
                    self.sequencer.push(Outgoing::Certificate { connection, order });
                }
            }
            ToCoordinator::Applied { .. }
            | ToCoordinator::LearnerCaughtUp { .. }
            | ToCoordinator::Dropped { .. } => {
                let command = reports::proposal(self.sequencer.state(), server, &message);
                self.sequencer.propose(self.now, command);
            }
        }
    }

    fn heartbeat(&mut self, connection: ConnectionId, server: ServerId, heartbeat: Heartbeat) {
        let now_ms = self.now.ms;
        let sequencer = &mut *self.sequencer;
        if !sequencer.planner().extend_lease(server, connection, now_ms) {
            return sequencer.close(connection);
        }
        let ack = ToServer::HeartbeatAck {
            seq: heartbeat.seq,
            unix_ms: Some(self.now.unix_ms),
        };
        sequencer.send(connection, ack);
        let fault = reports::storage_fault(sequencer.state(), server, heartbeat.storage_fault);
        sequencer.propose(self.now, fault);
        let offsets = reports::offsets(sequencer.state(), server, &heartbeat.groups);
        sequencer.propose(self.now, offsets);
        let (planner, state) = sequencer.planning();
        let unreachable = planner.hear(state, server, &heartbeat.unreachable, &heartbeat.slow, now_ms);
        sequencer.propose(self.now, unreachable);
        if sequencer.connections().begin_reconciling(connection, now_ms) {
            for message in sequencer.state().corrections(server, &heartbeat.groups) {
                sequencer.send(connection, message);
            }
        }
    }
}
