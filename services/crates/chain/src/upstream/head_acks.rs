//! Acknowledging to the head what this replica has.

use quorate_types::ServerId;
use quorate_wire::peer;

use crate::acknowledged::Acknowledged;
use crate::command::ReplicaCommand;

/// Acknowledgements to the head: sent when they say more than the last one.
#[derive(Debug, Default)]
pub(crate) struct HeadAcks {
    last: Option<peer::ChainAck>,
}

impl HeadAcks {
    /// In a new epoch, or on a new connection to the head, all is acknowledged again.
    pub fn begin(&mut self) {
        self.last = None;
    }

    pub fn send(
        &mut self,
        head: Option<ServerId>,
        has: Acknowledged,
        has_fault: bool,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let before = self.last.unwrap_or_default();
        let ack = peer::ChainAck {
            acknowledged_index: before.acknowledged_index.max(has.index),
            storage_fault: has_fault,
            trim_index: before.trim_index.max(has.trim_index),
            ring_pass: before.ring_pass.max(has.pass),
        };
        let Some(to) = head.filter(|_| self.last != Some(ack)) else {
            return;
        };
        self.last = Some(ack);
        out.push(ReplicaCommand::Send {
            to,
            message: peer::Message::ChainAck(ack),
        });
    }
}
