//! The exchange with the coordinators, which compute rates for the whole fleet: reports up, rates down.
//!
//! Told rates are good for as long as a grant. A server that is told none for so long shares by the algorithm among servers.

use std::collections::BTreeMap;

use quorate_types::Micros;
use quorate_types::control::{SharedRate, SharingReport, SharingWant};

use super::Exchange;
use super::command::ExchangeCommand;
use crate::problem::GroupEpoch;

impl Exchange {
    /// Takes rates of a round, or some of them, and the interval that other servers have begun. Another coordinator may begin
    /// with lower rounds. Round 0 has no rates yet.
    pub fn tell(&mut self, now: Micros, round: u64, interval: u64, rates: &[SharedRate]) {
        self.intervals.follow(now, interval);
        if rates.is_empty() && round == self.told.round {
            return; // only the interval is new
        }
        let told = &mut self.told;
        if told.round != round {
            told.round = round;
            told.per_s.clear();
            told.until = now + self.settings.lapse_us();
        }
        if round == 0 {
            told.until = 0;
        }
        for rate in rates {
            let key = (rate.group_id, rate.epoch);
            told.per_s.insert(key, rate.per_s);
            self.commitments.in_use(key, rate.interval, rate.using);
        }
        let told = self.told_by_tenant();
        if let Some(part) = &mut self.part {
            part.tell(told);
        }
    }

    pub(super) fn told_by_tenant(&self) -> BTreeMap<usize, u64> {
        let tenant = |(key, per_s): (&GroupEpoch, &u64)| Some((*self.loads.numbers.get(key)?, *per_s));
        self.told.per_s.iter().filter_map(tenant).collect()
    }

    /// The report of the interval that has begun. Nothing is free while commitments of the previous process may be in use.
    pub(super) fn report(&self, now: Micros) -> ExchangeCommand {
        let want = |load: &super::GroupLoad| {
            let using = self.grants.of(&load.key).map(|grant| grant.interval);
            let extra_per_s = self.wanted(load);
            self.concerns_others(load).then_some(SharingWant {
                group_id: load.key.0,
                epoch: load.key.1,
                extra_per_s,
                using,
            })
        };
        let free = if now >= self.silent_until {
            self.free()
        } else {
            [0; 3]
        };
        ExchangeCommand::Report(SharingReport {
            interval: self.intervals.number,
            interval_us: self.settings.interval_us,
            free,
            wants: self.loads.own().filter_map(want).collect(),
        })
    }
}
