//! A shard: one thread that owns some of the server's groups, connections and links, and all their state.
//!
//! Tasks of the shard's runtime (readers, timers, the inbox) borrow the [`Shard`] for one synchronous step
//! at a time and never across an await. What a step makes dirty is carried out by one flush task, which the
//! runtime runs after all readers that were ready: so one round serves many groups, and each socket gets
//! one vectored write (`docs/internals/replica.md`).

pub mod clients;
pub mod crossing;
pub mod fair;
pub mod group;
pub mod io;
pub mod lending;
pub mod links;
#[cfg(test)]
mod lone_shard;
pub mod reads;
pub mod repair;
pub mod run;
pub mod serve;
pub mod slow;
pub mod stretch;
pub mod traced;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use quorate_chain::{ClientRef, Event, Replica};
use quorate_journal::Lsn;
use quorate_replica_log::{Entry, Places};
use quorate_telemetry::usage::Sample;
use quorate_transport::Detached;
use quorate_types::control::GroupReport;
use quorate_types::ids::IdMap;
use quorate_types::{Epoch, GroupConfig, GroupId, ServerId};
use quorate_wire::{TraceContext, client, peer};
use tokio::sync::oneshot;

use crate::shard::crossing::Backlog;
use crate::shard::group::Group;
use crate::shard::io::Io;
use crate::shared::Slot;
use crate::usage::{self, ShardSample};
use quorate_tokens::Permission;

/// What reaches a shard from other threads.
///
/// The channel is unbounded; what goes through it is bounded where it begins: by windows of clients and
/// peers, by the journal's buffer, by one message for each epoch, by the backlog of each client ([`crossing`]).
pub enum ShardMessage {
    Configure(GroupConfig),
    /// Of a group that is in a later epoch here, it means nothing.
    Drop {
        group_id: GroupId,
        epoch: Epoch,
    },
    /// Nothing of the group is left anywhere; its clients shall hear so.
    Lost(GroupId),
    Recovered {
        group_id: GroupId,
        replica: Box<Replica>,
        places: Places,
        /// It may lack what had been durable.
        is_damaged: bool,
    },
    Journal(quorate_journal::Event),
    /// A client's connection whose HELLO was read; `rest` was read beyond it.
    Client {
        stream: Detached,
        rest: Bytes,
        slot: Slot,
    },
    /// A link opened by a peer, or by this server's dialer.
    Link {
        server: ServerId,
        stream: Detached,
        rest: Bytes,
    },
    /// Open a link to this peer and keep it, while any group needs it.
    Dial(ServerId),
    LinkUp(ServerId),
    LinkDown(ServerId),
    /// For a group of this shard, from a link of another.
    FromPeer {
        from: ServerId,
        envelope: peer::Envelope,
    },
    /// For a link of this shard, from a group of another.
    ToPeer {
        to: ServerId,
        envelope: peer::Envelope,
    },
    /// For a group of this shard, from a connection of another; `weight` was added to the connection's backlog.
    FromClient {
        group_id: GroupId,
        client: ClientRef,
        request: ClientRequest,
        backlog: Arc<Backlog>,
        weight: usize,
    },
    /// To a connection of this shard: the group, of another, did not take the channel; `number` is its ATTACH's.
    NotAttached {
        client: ClientRef,
        number: u64,
    },
    /// For a connection of this shard, from a group of another; `weight` was added to the connection's backlog.
    ToClient {
        client: ClientRef,
        message: client::Message,
        weight: usize,
    },
    /// A connection of this shard costs another too much.
    Cut {
        connection: u64,
    },
    Sample(oneshot::Sender<ShardSample>),
    /// Of the task that shares out what is free.
    Lending(lending::Request),
    /// Records that lie in their group's log now.
    Moved {
        group_id: GroupId,
        records: Vec<(Lsn, quorate_group_log::Place)>,
    },
    /// Records that cannot be read from the journal when they are to be copied.
    LostInJournal {
        lsns: Range<Lsn>,
        answer: std::sync::mpsc::Sender<quorate_group_log::Answer>,
    },
    /// A record of a group's log that the scrubber cannot read.
    DamagedInLog {
        group_id: GroupId,
        place: quorate_group_log::Place,
        answer: std::sync::mpsc::Sender<bool>,
    },
    /// Records that said where a log begins or ends were lost: this group's, or some group's.
    Restate(Option<GroupId>),
    /// A batch that a peer asked for was read, or not.
    Fetched {
        to: ServerId,
        envelope: peer::Envelope,
    },
    Stop,
}

/// What a client wants of a group.
pub enum ClientRequest {
    Attach {
        /// Tells it from others of its connection.
        number: u64,
        session: u64,
        permission: Permission,
    },
    Message {
        message: client::Message,
        trace: Option<TraceContext>,
    },
    /// The channel was detached, or its connection is gone.
    Gone,
}

pub struct Shard {
    pub groups: IdMap<GroupId, Group>,
    pub io: Io,
    /// Last samples of groups that left, until they are asked for.
    pub parted: Vec<Sample>,
    /// Groups that were here and are lost.
    pub lost: HashSet<GroupId>,
}

impl Shard {
    /// Runs `act` on the group, if it is here, and has it flushed in this round.
    pub fn with_group(&mut self, group_id: GroupId, act: impl FnOnce(&mut Group, &mut Io)) -> bool {
        let Some(group) = self.groups.get_mut(&group_id) else {
            return false;
        };
        act(group, &mut self.io);
        group.mark(&mut self.io);
        true
    }

    pub fn event(&mut self, group_id: GroupId, event: Event) {
        self.with_group(group_id, |group, io| group.step(io, event));
    }

    pub fn configure(&mut self, config: GroupConfig) {
        let group_id = config.group_id;
        self.lost.remove(&group_id);
        self.io.note_peers(&config);
        self.io.shared.set_terms(&config);
        let me = self.io.shared.server_id();
        let now = crate::clock::now_us();
        self.groups.entry(group_id).or_insert_with(|| {
            let mut replica = Replica::new(me, config.durability);
            if self.io.journal.is_dropping(group_id) {
                replica.stand_behind_drop();
            }
            Group::new(group_id, replica, Places::default(), self.io.new_life(), now)
        });
        self.with_group(group_id, |group, io| group.configure(io, config));
        // A group that comes while the disk is full was not there when that was told.
        if self
            .io
            .shared
            .storage_fault
            .lock()
            .expect("storage fault")
            .is_some()
        {
            self.event(group_id, Event::StorageFault(true));
        }
    }

    pub fn recovered(&mut self, group_id: GroupId, replica: Replica, places: Places, is_damaged: bool) {
        let now = crate::clock::now_us();
        let mut group = Group::new(group_id, replica, places, self.io.new_life(), now);
        if is_damaged {
            // Before anything else of the group: whoever reads the disk again must not go by what was lost.
            let last_index = group.replica.log().last_index();
            self.io.journal.write(Entry::mended(group_id, last_index, true));
            self.io.wake.notify_one();
        }
        group.is_damaged = is_damaged;
        self.groups.insert(group_id, group);
    }

    fn moved(&mut self, group_id: GroupId, records: &[(Lsn, quorate_group_log::Place)]) {
        if let Some(group) = self.groups.get_mut(&group_id) {
            group.places.moved(records);
        }
    }

    pub fn restate(&mut self, group_id: Option<GroupId>) {
        let ids: Vec<GroupId> = group_id.map_or_else(|| self.groups.keys().copied().collect(), |id| vec![id]);
        for id in ids {
            self.with_group(id, |group, io| group.restate(io));
        }
    }

    /// Forgets a group and, once the journal has the note, its data.
    pub fn drop_group(&mut self, group_id: GroupId, epoch: Epoch) {
        let here = self
            .groups
            .get(&group_id)
            .map_or(0, |group| group.replica.epoch());
        if here > epoch {
            return tracing::info!(%group_id, epoch, here, "told to drop what came back since: it stays");
        }
        self.lost.remove(&group_id);
        if let Some(mut group) = self.groups.remove(&group_id) {
            group.abandon(&mut self.io);
            self.parted.append(&mut group.cuts);
            self.parted.extend(usage::sample(&mut group));
            self.io.journal.write(Entry::dropped(group_id));
            self.io.wake.notify_one();
        }
        self.io.forget_peers_of(group_id);
        self.io.shared.terms.lock().expect("terms").remove(&group_id);
        self.io.shared.reports.lock().expect("reports").remove(&group_id);
        self.io
            .shared
            .tell_coordinator(quorate_types::control::ToCoordinator::Dropped { group_id });
    }

    pub fn storage_fault(&mut self, fault: bool) {
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            self.event(id, Event::StorageFault(fault));
        }
    }

    pub fn links_changed(&mut self, server: ServerId, up: bool) {
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            let event = if up {
                Event::LinkUp { server }
            } else {
                Event::LinkDown { server }
            };
            self.event(id, event);
        }
    }

    /// Every so often: time-outs of the protocol, reports for the heartbeat, journal space to release.
    pub fn tick(&mut self) {
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        let (now, wall_us) = (crate::clock::now_us(), crate::clock::wall_us());
        let is_silent = self.io.shared.is_coordinator_silent(now);
        for id in ids {
            self.with_group(id, |group, io| {
                group.account_time(now);
                group.step(io, Event::CoordinatorSilent(is_silent));
                group.step(io, Event::Tick { wall_us });
                group.turn_away(io);
                group.advance_repairs(io);
            });
        }
        let is_persistent =
            |group: &Group| group.replica.durability() == quorate_types::Durability::Persistent;
        self.io.journal.may_hold_up = self.groups.values().all(is_persistent);
        self.report_slow(now);
        let reports: Vec<GroupReport> = self.groups.values().filter_map(Group::report).collect();
        let mut shared = self.io.shared.reports.lock().expect("reports");
        for report in reports {
            shared.insert(report.group_id, report);
        }
    }

    /// Tells successors what no batch has carried to them.
    pub fn tell_late(&mut self) {
        for group_id in std::mem::take(&mut self.io.owing) {
            let Some(group) = self.groups.get_mut(&group_id) else {
                continue;
            };
            group.is_owing = false;
            if group.replica.owes_notice() {
                group.step(&mut self.io, Event::NoticeDue);
                group.mark(&mut self.io);
            }
        }
    }

    /// One round: everything that was made dirty is carried out.
    pub fn flush(&mut self) {
        // What it makes dirty it writes itself.
        self.io.is_flushing = true;
        self.io.begin_turn();
        for group_id in std::mem::take(&mut self.io.released) {
            if let Some(group) = self.groups.get_mut(&group_id) {
                group.is_held = false;
                group.mark(&mut self.io);
            }
        }
        let mut dirty = std::mem::take(&mut self.io.dirty_groups);
        let is_alone = dirty.len() <= 1;
        for group_id in dirty.drain(..) {
            if let Some(group) = self.groups.get_mut(&group_id) {
                group.is_dirty = false;
                group.flush(&mut self.io);
            }
        }
        // Nothing was pushed meanwhile: a flush makes no group dirty. The allocation is kept.
        assert!(self.io.dirty_groups.is_empty(), "a flush makes no group dirty");
        self.io.dirty_groups = dirty;
        self.io.end_turn();
        self.submit_to_journal();
        let is_held = self.io.sync_hold.holds(self.io.journal.placed_bytes());
        // A sync in this thread holds up what else the shard does; not the batch's way down the chain.
        let is_here = is_alone && !is_held && self.io.journal.suits_here();
        if !is_here && !is_held {
            self.io.journal.commit();
        }
        self.io.write_dirty();
        if is_here {
            self.io.journal.commit_here();
        }
        self.io.is_flushing = false;
    }

    fn submit_to_journal(&mut self) {
        let (placed, refusal) = self.io.journal.submit();
        for placed in placed {
            if let Some(group) = self.groups.get_mut(&placed.durable.group_id) {
                group.placed(placed);
            }
        }
        use quorate_journal::SubmitError;
        match refusal {
            None | Some(SubmitError::Busy | SubmitError::Closing) => {}
            Some(error) => self.io.storage_refused(&error.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
