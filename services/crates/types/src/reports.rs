//! A server's reports of its groups, sent as changes: the coordinator's copy of them follows heartbeat by heartbeat.
//!
//! Both sides keep a sum of what was sent. They compare it with each heartbeat, so a lost change shows within one. The
//! server then sends everything again, in pieces of [`REPORTS_PER_HEARTBEAT_MAX`].

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use crate::config::GroupId;
use crate::control::{GroupReport, ReportChanges, ReportSum};
use crate::ids::IdMap;
use crate::limits::REPORTS_PER_HEARTBEAT_MAX;

impl GroupReport {
    /// The same in every release: servers and coordinators of different releases compare sums of it. It covers the
    /// fields that every release has.
    pub fn digest(&self) -> u64 {
        let (high, low) = self.group_id.0.as_u64_pair();
        let role_and_state = (self.role as u64) << 8 | self.state as u64;
        let fields = [
            high,
            low,
            self.epoch,
            role_and_state,
            self.last_index,
            self.commit_offset,
        ];
        fields.into_iter().fold(0x9E37_79B9_7F4A_7C15, mixed)
    }
}

/// One step of a multiplicative hash, with the finaliser of SplitMix64.
fn mixed(digest: u64, field: u64) -> u64 {
    let mut mixed = (digest ^ field).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^= mixed >> 27;
    mixed = mixed.wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl ReportSum {
    pub fn add(&mut self, digest: u64) {
        self.groups += 1;
        self.digest = self.digest.wrapping_add(digest);
    }

    pub fn remove(&mut self, digest: u64) {
        self.groups -= 1;
        self.digest = self.digest.wrapping_sub(digest);
    }
}

/// The server's side: the latest reports, and which of them the coordinator has.
#[derive(Debug, Clone, Default)]
pub struct ReportBook {
    known: IdMap<GroupId, Known>,
    /// Groups whose latest report was not sent, in the order in which they changed: none waits for more than all others.
    /// A group that left and came again may be there twice.
    changed: VecDeque<GroupId>,
    /// Sent groups that are here no more.
    gone: Vec<GroupId>,
    begins: bool,
    sent: ReportSum,
    /// Heartbeats up to this number were sent before all began anew: the coordinator's wish for that is met.
    begun_after: u64,
}

#[derive(Debug, Clone)]
struct Known {
    latest: GroupReport,
    /// The digest of the report that was sent.
    sent: Option<u64>,
    is_changed: bool,
}

impl ReportBook {
    /// Takes in a group's report.
    pub fn note(&mut self, report: GroupReport) {
        let group_id = report.group_id;
        match self.known.entry(group_id) {
            Entry::Vacant(place) => {
                place.insert(Known {
                    latest: report,
                    sent: None,
                    is_changed: true,
                });
            }
            Entry::Occupied(mut place) => {
                let known = place.get_mut();
                if known.latest == report {
                    return;
                }
                known.latest = report;
                if std::mem::replace(&mut known.is_changed, true) {
                    return;
                }
            }
        }
        self.changed.push_back(group_id);
    }

    /// The group is here no more.
    pub fn forget(&mut self, group_id: GroupId) {
        let Some(known) = self.known.remove(&group_id) else {
            return;
        };
        if let Some(digest) = known.sent {
            self.sent.remove(digest);
            self.gone.push(group_id);
        }
    }

    /// The coordinator answered heartbeat `seq`, and perhaps has other reports than that said; `sent` is the last one's
    /// number. Answers to those that were under way mean the same loss.
    pub fn answered(&mut self, seq: u64, repeat: bool, sent: u64) {
        if repeat && seq > self.begun_after {
            self.begin();
            self.begun_after = sent;
        }
    }

    /// The coordinator knows nothing: the connection is new.
    pub fn connected(&mut self) {
        self.begin();
        self.begun_after = 0;
    }

    fn begin(&mut self) {
        self.gone.clear();
        self.begins = true;
        self.sent = ReportSum::default();
        self.changed = self.known.keys().copied().collect();
        for known in self.known.values_mut() {
            (known.sent, known.is_changed) = (None, true);
        }
    }

    /// The next heartbeat's groups. They count as sent: a heartbeat that does not arrive ends its connection.
    pub fn take(&mut self) -> (Vec<GroupReport>, ReportChanges) {
        let room = REPORTS_PER_HEARTBEAT_MAX.saturating_sub(self.gone.len());
        let count = self.changed.len().min(room);
        let mut reports = Vec::with_capacity(count);
        for group_id in self.changed.drain(..count) {
            let known = self.known.get_mut(&group_id);
            let Some(known) = known.filter(|known| known.is_changed) else {
                continue;
            };
            known.is_changed = false;
            let digest = known.latest.digest();
            if let Some(before) = known.sent.replace(digest) {
                self.sent.remove(before);
            }
            self.sent.add(digest);
            reports.push(known.latest.clone());
        }
        let changes = ReportChanges {
            begins: std::mem::take(&mut self.begins),
            continues: self.known.len() as u64 > self.sent.groups,
            gone: std::mem::take(&mut self.gone),
            sum: self.sent,
        };
        (reports, changes)
    }

    /// All groups, for a coordinator that takes no changes.
    pub fn all(&self) -> Vec<GroupReport> {
        self.known.values().map(|known| known.latest.clone()).collect()
    }
}
