//! Counts of events in a run, or in many.

use std::collections::BTreeMap;

use quorate_types::Code;

use crate::plan::Fault;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    pub seeds: u64,
    pub events: u64,
    pub simulated_us: u64,
    pub acks: u64,
    pub committed: u64,
    pub refusals: u64,
    pub sessions: u64,
    pub expired_sessions: u64,
    pub epochs: u64,
    pub promotions: u64,
    pub suspicions: u64,
    pub crashes: u64,
    pub torn_records: u64,
    pub damaged_records: u64,
    pub damaged_groups: u64,
    pub lies: u64,
    pub lost_groups: u64,
    pub drops: u64,
    pub truncations: u64,
    pub bases: u64,
    pub trims: u64,
    pub trims_by_age: u64,
    pub answers: u64,
    pub loads: u64,
    pub snapshots: u64,
    /// Terms of coordinators.
    pub terms: u64,
    pub coordinators_replaced: u64,
    pub unreachable_pairs: u64,
    pub slow: u64,
    pub hung: u64,
    pub drains: u64,
    pub drained: u64,
    pub drained_stops: u64,
    pub moves_asked: u64,
    pub forgotten: u64,
    pub resets: u64,
    pub logs_forgotten: u64,
    pub pages: u64,
    pub read_batches: u64,
    pub disk_pages: u64,
    pub throttled: u64,
    pub gaps: u64,
    pub isolated: u64,
    pub denied: u64,
    pub rotten_records: u64,
    pub damage_found: u64,
    pub repaired_by_peers: u64,
    pub rewritten: u64,
    pub copied_repaired: u64,
    pub unrepaired: u64,
    pub unreadable_pages: u64,
    pub restated: u64,
    pub owners_returned: u64,
    pub quarantined: u64,
    pub told_quarantined: u64,
    pub released: u64,
    pub restores_found: u64,
    pub roll_calls_ended: u64,
    pub restores_undecided: u64,
    pub faults: BTreeMap<Fault, u64>,
    /// In how many seeds a number was above zero, by its name. Empty for one run.
    reached: BTreeMap<&'static str, u64>,
}

impl Counts {
    pub fn fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    /// A client is refused something.
    pub fn refused(&mut self, code: u16) {
        let counter = match Code::from_u16(code) {
            Some(Code::Throttled | Code::Overloaded | Code::DeadlineExceeded) => &mut self.throttled,
            Some(Code::SequenceGap) => &mut self.gaps,
            Some(Code::CutOff) => &mut self.isolated,
            Some(Code::PermissionDenied | Code::TokenExpired) => &mut self.denied,
            _ => return,
        };
        *counter += 1;
    }

    /// Takes in the counts of one run.
    pub fn add(&mut self, other: &Counts) {
        for (name, n) in other.numbers() {
            *self.reached.entry(name).or_default() += u64::from(n > 0);
        }
        for ((_, mine), (_, theirs)) in self.numbers_mut().into_iter().zip(other.clone().numbers_mut()) {
            *mine += *theirs;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
    }

    /// The number of seeds that reached what the number of this name counts.
    pub fn seeds_with(&self, name: &str) -> u64 {
        self.reached.get(name).copied().unwrap_or(0)
    }

    /// By name, but for the faults.
    pub fn numbers(&self) -> Vec<(&'static str, u64)> {
        self.clone()
            .numbers_mut()
            .into_iter()
            .map(|(name, n)| (name, *n))
            .collect()
    }

    fn numbers_mut(&mut self) -> Vec<(&'static str, &mut u64)> {
        vec![
            ("seeds", &mut self.seeds),
            ("events", &mut self.events),
            ("simulated µs", &mut self.simulated_us),
            ("acks", &mut self.acks),
            ("committed batches", &mut self.committed),
            ("batches given up as refused", &mut self.refusals),
            ("sessions abandoned", &mut self.sessions),
            ("sessions expired", &mut self.expired_sessions),
            ("epochs", &mut self.epochs),
            ("learners promoted", &mut self.promotions),
            ("servers suspected", &mut self.suspicions),
            ("processes killed", &mut self.crashes),
            ("records lost unsynced", &mut self.torn_records),
            ("records damaged", &mut self.damaged_records),
            ("groups found damaged", &mut self.damaged_groups),
            ("logs of which a disk lost durable records", &mut self.lies),
            ("groups lost", &mut self.lost_groups),
            ("groups dropped", &mut self.drops),
            ("truncations", &mut self.truncations),
            ("bases written", &mut self.bases),
            ("trims written", &mut self.trims),
            ("trims by age", &mut self.trims_by_age),
            ("answers to STATUS and TRIM", &mut self.answers),
            ("loads", &mut self.loads),
            ("coordinator snapshots", &mut self.snapshots),
            ("coordinators replaced", &mut self.coordinators_replaced),
            ("coordinator terms", &mut self.terms),
            ("unreachable pairs", &mut self.unreachable_pairs),
            ("servers found slow", &mut self.slow),
            ("servers found hung", &mut self.hung),
            ("drains asked for", &mut self.drains),
            ("drains done", &mut self.drained),
            ("drained servers stopped", &mut self.drained_stops),
            ("moves asked for", &mut self.moves_asked),
            ("servers given up", &mut self.forgotten),
            ("groups reset", &mut self.resets),
            ("logs that servers forgot for others", &mut self.logs_forgotten),
            ("pages that readers got", &mut self.pages),
            ("batches in them", &mut self.read_batches),
            ("pages read from disk", &mut self.disk_pages),
            ("requests throttled, overloaded or too late", &mut self.throttled),
            ("batches behind a refused one", &mut self.gaps),
            ("requests refused by isolated heads", &mut self.isolated),
            ("requests without permission", &mut self.denied),
            ("records damaged while a server ran", &mut self.rotten_records),
            ("of these found by copiers", &mut self.damage_found),
            ("repaired by peers", &mut self.repaired_by_peers),
            ("written back", &mut self.rewritten),
            ("given to copiers", &mut self.copied_repaired),
            ("had by no replica", &mut self.unrepaired),
            ("pages that could not be read", &mut self.unreadable_pages),
            ("logs stated again", &mut self.restated),
            ("replicas in quarantine", &mut self.quarantined),
            ("servers told of a group's", &mut self.told_quarantined),
            ("releases asked for", &mut self.released),
            ("older copies found out", &mut self.restores_found),
            (
                "copies gone on with, until a server knew more",
                &mut self.restores_undecided,
            ),
            ("roll calls ended by operators", &mut self.roll_calls_ended),
            (
                "owners that wanted burst capacity back",
                &mut self.owners_returned,
            ),
        ]
    }
}
