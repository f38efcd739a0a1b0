//! The server's journal: records are written and synced; the disk fails and works again.

use quorate_chain::ReplicaEvent;
use quorate_recovery::GroupRecord;
use rand::Rng;

use crate::schedule::What;
use crate::world::World;

impl World {
    pub(super) fn write(&mut self, s: usize, entry: GroupRecord) {
        self.servers[s].disk.submit(entry);
        self.start_sync(s);
    }

    pub fn start_sync(&mut self, s: usize) {
        let server = &mut self.servers[s];
        if server.disk.syncing > 0 || !server.disk.has_pending() || server.disk_fault {
            return;
        }
        server.disk.begin_sync(&mut self.rng);
        let (incarnation, factor) = (server.incarnation, server.sync_factor);
        let at = self.now + self.rng.random_range(20..=self.plan.sync_us_max) * factor;
        self.at(
            at,
            What::Synced {
                server: s,
                incarnation,
            },
        );
    }

    pub fn synced(&mut self, s: usize) {
        if self.servers[s].disk_fault {
            // It never returns, or not before there is room.
            self.servers[s].disk.syncing = 0;
            return;
        }
        let durable = self.servers[s]
            .disk
            .complete(self.plan.completions_are_merged, &mut self.rng);
        self.start_sync(s);
        for durable in durable {
            if let Some(event) = durable.event() {
                self.step_replica(s, durable.group_id, event);
            }
        }
    }

    pub fn set_disk_fault(&mut self, s: usize, fault: bool) {
        self.servers[s].disk_fault = fault;
        for group_id in self.servers[s].group_ids() {
            self.step_replica(s, group_id, ReplicaEvent::StorageFault(fault));
        }
        self.start_sync(s);
    }

    pub fn disk_works(&mut self, s: usize, incarnation: u64) {
        if self.servers[s].incarnation != incarnation || !self.servers[s].disk_fault {
            return;
        }
        if self.servers[s].fails_until.is_some() {
            // A journal that failed takes nothing more before its process is restarted; what it holds in memory
            // of other groups goes with it.
            let in_memory = self.servers[s].in_memory_groups_are_spare(self, s);
            if in_memory {
                self.crash(s);
            } else {
                let at = self.now + 100_000;
                self.at(
                    at,
                    What::DiskWorks {
                        server: s,
                        incarnation,
                    },
                );
            }
            return;
        }
        self.set_disk_fault(s, false);
    }
}

impl super::Server {
    fn in_memory_groups_are_spare(&self, world: &World, s: usize) -> bool {
        world.is_healing || world.in_memory_groups(s).iter().all(|g| world.may_lose(s, *g))
    }
}
