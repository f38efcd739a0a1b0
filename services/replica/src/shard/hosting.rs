//! Groups that come to the shard, leave it, or are in quarantine there.

use quorate_chain::{Replica, ReplicaEvent};
use quorate_group::{Event, Group, Outputs, Release, Standing};
use quorate_recovery::Places;
use quorate_types::control::ToCoordinator;
use quorate_types::{Epoch, GroupConfig, GroupId};

use super::Shard;
use super::hosted::Hosted;
use super::quarantine::guard;
use crate::clock;
use crate::messages::{ClientMessage, Hosting, ShardMessage};

impl Shard {
    pub(super) fn hosting(&mut self, message: Hosting) {
        match message {
            Hosting::Configure(config) => self.configure(*config),
            Hosting::Drop { group_id, epoch } => self.drop_group(group_id, epoch),
            Hosting::Deposed { group_id, by } => {
                self.replica_event(group_id, ReplicaEvent::Deposed { by });
            }
            Hosting::Quarantined { group_id, epoch } => {
                self.quarantines.be_whole(group_id, epoch);
            }
            Hosting::Lost(group_id) => {
                self.lost.insert(group_id);
            }
            Hosting::Recovered {
                group_id,
                replica,
                places,
                is_damaged,
            } => {
                self.recovered(group_id, *replica, places, is_damaged);
            }
        }
    }

    fn new_hosting(&mut self) -> u64 {
        self.next_hosting += 1;
        self.next_hosting
    }

    pub fn configure(&mut self, config: GroupConfig) {
        let group_id = config.group_id;
        match self.quarantines.configure(&config) {
            Standing::Free => {}
            Standing::Stays => return,
            Standing::Ended => {
                self.shared().coordinator.end_quarantine(group_id);
                self.drop_data(group_id);
            }
        }
        self.lost.remove(&group_id);
        self.shared().note_config(&config);
        if !self.groups.contains_key(&group_id) {
            let is_dropping = self.executor.disk.port.is_dropping(group_id);
            let (me, hosting) = (self.shared().server_id(), self.new_hosting());
            let core = Group::new(
                group_id,
                me,
                config.durability,
                is_dropping,
                hosting,
                clock::now_us(),
            );
            self.groups.insert(group_id, Hosted::new(core, Places::default()));
        }
        self.event(group_id, Event::Configure(Box::new(config)));
        // A group that comes while the disk is full was not there when the fault was reported.
        if self.shared().coordinator.has_storage_fault() {
            self.replica_event(group_id, ReplicaEvent::StorageFault(true));
        }
    }

    pub(super) fn recovered(
        &mut self,
        group_id: GroupId,
        replica: Replica,
        places: Places,
        is_damaged: bool,
    ) {
        let (me, hosting, now) = (self.shared().server_id(), self.new_hosting(), clock::now_us());
        let core = Group::recovered(group_id, me, replica, is_damaged, hosting, now, &mut self.outputs);
        let mut hosted = Hosted::new(core, places);
        self.executor
            .carry_out(group_id, &mut hosted, &mut self.outputs, now);
        if is_damaged {
            self.flush_wake.wake_again();
        }
        self.groups.insert(group_id, hosted);
    }

    /// Forgets a group and, once the journal has the note, its data.
    pub(super) fn drop_group(&mut self, group_id: GroupId, epoch: Epoch) {
        let hosted = self.groups.get(&group_id);
        let hosted = hosted.map(|hosted| hosted.core.replica().epoch());
        let here = hosted.or_else(|| self.quarantines.epoch_of(group_id));
        if let Some(here) = here.filter(|here| *here > epoch) {
            return tracing::info!(%group_id, epoch, here, "the drop is of an earlier epoch: the group stays");
        }
        self.lost.remove(&group_id);
        self.event(group_id, Event::Leave);
        self.prepare_turn();
        let was_quarantined = self.quarantines.end(group_id);
        let hosted = self.groups.remove(&group_id);
        if hosted.is_some() || was_quarantined {
            self.drop_data(group_id);
        }
        if let Some(mut hosted) = hosted {
            // A group that goes needs no quarantine. A group in doubt gives no last sample.
            let samples = guard(|| hosted.core.take_samples(&self.turn));
            let mut samples = samples.unwrap_or_default();
            self.shared().group_costs.take_owed_reads(&mut samples);
            self.parted.extend(samples);
        }
        self.forget_reports(group_id);
        let shared = self.shared();
        shared.coordinator.end_quarantine(group_id);
        let epoch = Some(epoch);
        shared
            .coordinator
            .send(ToCoordinator::Dropped { group_id, epoch });
    }

    fn drop_data(&mut self, group_id: GroupId) {
        self.executor.disk.write_dropped(group_id);
        self.flush_wake.wake_again();
    }

    fn forget_reports(&self, group_id: GroupId) {
        let shared = self.shared();
        shared.peers.forget(group_id);
        shared.group_costs.forget(group_id);
        shared.coordinator.forget_group(group_id);
    }
}

/// Quarantine.
impl Shard {
    /// An assertion stopped the group's replica: its state and the outputs of its last step are dropped, as if it had
    /// crashed before them. Its data on disk stays.
    pub(super) fn quarantine(&mut self, group_id: GroupId, reason: &str) {
        self.outputs = Outputs::default();
        let Some(mut hosted) = self.groups.remove(&group_id) else {
            return;
        };
        let released = self.quarantines.begin(&mut hosted.core, reason, &mut self.turn);
        for release in released {
            self.release(group_id, release);
        }
    }

    fn release(&mut self, group_id: GroupId, release: Release) {
        match release {
            Release::Copiers => self.executor.disk.release_copiers_of(group_id),
            Release::Reports => self.forget_reports(group_id),
            Release::Clients => {
                let message = || ShardMessage::Client(ClientMessage::Quarantined { group_id });
                self.shared().shards.broadcast(message);
            }
            Release::Listed(replica) => {
                let (epoch, reason) = (replica.epoch, &replica.reason);
                tracing::error!(%group_id, epoch, reason, "an assertion stopped a group's replica; it is in quarantine");
                self.shared().coordinator.begin_quarantine(replica);
            }
        }
    }
}
