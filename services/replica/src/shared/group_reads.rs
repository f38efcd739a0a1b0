//! Reads of one group on this server: their cost, and whether those that are reserved leave in time.
//!
//! Connections of all shards read a group, so this is shared. It is locked once or twice for each page.

use std::sync::Mutex;

use quorate_qos::{PageTicket, ReadReservation};
use quorate_types::Micros;
use quorate_types::cost::ReadBudget;
use quorate_types::limits::SLA_READ_LATE_MS;

const LATE_US: Micros = SLA_READ_LATE_MS * 1_000;

/// Entries within the reservation that left, since the group came here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwedReads {
    pub entries: u64,
    /// The part that left more than [`SLA_READ_LATE_MS`] after the reservation had let them pass.
    pub late_entries: u64,
}

#[derive(Debug, Default)]
pub struct GroupReads(Mutex<Reads>);

#[derive(Debug, Default)]
struct Reads {
    budget: Option<ReadBudget>,
    /// `None` where no reads are reserved.
    reservation: Option<ReadReservation>,
    owed: OwedReads,
    /// As last counted for the server's metrics.
    metered: OwedReads,
}

impl GroupReads {
    pub fn set(&self, budget: Option<&ReadBudget>, now: Micros) {
        let mut reads = self.0.lock().expect("reads");
        reads.budget = budget.copied();
        let reserved = budget.filter(|budget| budget.rate_per_s > 0);
        match (&mut reads.reservation, reserved) {
            (Some(reservation), Some(budget)) => reservation.set_budget(budget, now),
            (reservation, reserved) => {
                *reservation = reserved.map(|budget| ReadReservation::new(budget, now));
            }
        }
    }

    /// A page can leave: its cost in thousandths of tokens, and its place in the reservation. `None`: the group's
    /// configuration does not say what reads cost.
    pub fn ready(&self, now: Micros, entries: u64, bytes: u64) -> Option<([u64; 3], Option<PageTicket>)> {
        let mut reads = self.0.lock().expect("reads");
        let cost = reads.budget.as_ref()?.page_milli(entries, bytes);
        let reservation = reads.reservation.as_mut();
        Some((
            cost,
            reservation.and_then(|reservation| reservation.ready(now, cost)),
        ))
    }

    /// Tokens of the part of a page that is read from the disk first.
    pub fn disk_cost(&self, entries: u64, bytes: u64) -> Option<[u64; 3]> {
        let budget = self.0.lock().expect("reads").budget;
        Some(budget?.from_disk_milli(entries, bytes))
    }

    /// The page leaves.
    pub fn leaves(&self, now: Micros, page: PageTicket, entries: u64) {
        let mut reads = self.0.lock().expect("reads");
        let waited_us = reads
            .reservation
            .as_mut()
            .and_then(|reservation| reservation.leaves(now, page));
        if let Some(waited_us) = waited_us {
            reads.owed.entries += entries;
            reads.owed.late_entries += if waited_us > LATE_US { entries } else { 0 };
        }
    }

    /// The page's reader is gone.
    pub fn forget(&self, page: PageTicket) {
        if let Some(reservation) = &mut self.0.lock().expect("reads").reservation {
            reservation.forget(page);
        }
    }

    /// Since the group came here, and since the last call.
    pub fn take_owed(&self) -> (OwedReads, OwedReads) {
        let mut reads = self.0.lock().expect("reads");
        let owed = reads.owed;
        let metered = std::mem::replace(&mut reads.metered, owed);
        let since = OwedReads {
            entries: owed.entries - metered.entries,
            late_entries: owed.late_entries - metered.late_entries,
        };
        (owed, since)
    }

    /// Reserved for reads here, in thousandths of tokens each second.
    pub fn reserved_milli(&self) -> [u64; 3] {
        let budget = self.0.lock().expect("reads").budget;
        budget.map_or([0; 3], |budget| budget.reserved_milli)
    }
}
