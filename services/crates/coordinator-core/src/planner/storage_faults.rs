//! Storage faults that last: their servers' persistent replicas are to leave them.
//!
//! A full disk is often emptied within seconds, by a trim or by an operator, and moving replicas costs more than that. When
//! more than half of the live servers have a fault, none is left for it ([`super::shared_cause`]): there is nowhere to go.

use std::collections::BTreeMap;

use quorate_types::ServerId;
use quorate_types::limits::STORAGE_FAULT_LASTS_MS;

use super::shared_cause;
use crate::command::Command;
use crate::state::CoordinatorState;

/// Times are milliseconds of a clock that never goes back. They are not durable: after a restart of the coordinator a
/// fault counts from then on.
#[derive(Debug, Default)]
pub struct StorageFaults {
    since: BTreeMap<ServerId, u64>,
}

impl StorageFaults {
    /// The commands that are due by now. To be called every few ten milliseconds; an applied command is not repeated.
    pub fn due(&mut self, state: &CoordinatorState, now_ms: u64) -> Vec<Command> {
        let has_new_fault = |id: &ServerId| {
            let server = state.servers.get(id);
            server.is_some_and(|server| server.alive && server.storage_fault.is_some() && !server.fault_lasts)
        };
        self.since.retain(|id, _| has_new_fault(id));
        let has_fault = |id: &ServerId| state.is_alive(*id) && state.servers[id].storage_fault.is_some();
        let is_shared = shared_cause::is_shared(state, state.servers.keys().copied().filter(has_fault));
        let mut commands = Vec::new();
        for id in state.servers.keys().filter(|id| has_new_fault(id)) {
            let since_ms = *self.since.entry(*id).or_insert(now_ms);
            if now_ms - since_ms >= STORAGE_FAULT_LASTS_MS && !is_shared {
                commands.push(Command::StorageFaultLasts { server: *id });
            }
        }
        commands
    }
}
