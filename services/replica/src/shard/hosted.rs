//! A group on this shard: the pure core, and what the shell keeps beside it.

use std::sync::Arc;

use quorate_group::Group;
use quorate_group_log::GroupLogs;
use quorate_journal::Lsn;
use quorate_recovery::record::{KIND_BASE, KIND_BATCH};
use quorate_recovery::{Durable, Place, Places};
use quorate_types::{GroupId, Index, ServerId};

use crate::journal_port::Placed;

pub struct Hosted {
    pub core: Group,
    pub records: Records,
    pub is_dirty: bool,
    /// It was stepped since its last report for the heartbeat.
    pub is_stepped: bool,
    /// Its commit notice is pending ([`super::wakeups::Wakeups`]).
    pub is_notice_pending: bool,
    /// The successor for which it waits, in that link's list: there is no room on it.
    pub held_on: Option<ServerId>,
}

impl Hosted {
    pub fn new(core: Group, places: Places) -> Self {
        let records = Records {
            places,
            bases: Vec::new(),
        };
        Self {
            core,
            records,
            is_dirty: false,
            is_stepped: true,
            is_notice_pending: false,
            held_on: None,
        }
    }
}

/// The places of a group's records.
pub struct Records {
    pub places: Places,
    /// Bases given to the journal and not yet durable. One index may be there twice.
    bases: Vec<(Index, Lsn)>,
}

impl Records {
    /// The log is reset: on disk it is another group's from here on.
    pub fn forget(&mut self) {
        self.places = Places::default();
        self.bases.clear();
    }

    /// The journal said where a record will lie.
    pub fn placed(&mut self, placed: Placed) {
        let Placed {
            durable,
            lsn,
            location,
        } = placed;
        match durable.kind {
            KIND_BASE => self.bases.push((durable.index, lsn)),
            KIND_BATCH => self.places.note(durable.index, lsn, Place::Journal(location)),
            _ => {}
        }
    }

    /// The journal said that a record is durable. Behind a durable base nothing older is needed.
    pub fn durable(
        &mut self,
        group_id: GroupId,
        durable: &Durable,
        logs: impl Fn() -> Option<Arc<GroupLogs>>,
    ) {
        if durable.kind != KIND_BASE {
            return;
        }
        for (index, lsn) in self.bases.extract_if(.., |(index, _)| *index <= durable.index) {
            self.places.forget_through(index);
            self.places.base = Some((index, lsn));
            if let Some(logs) = logs() {
                logs.trim(group_id, index, lsn);
            }
        }
    }
}
