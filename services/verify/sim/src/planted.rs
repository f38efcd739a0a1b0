//! The checker can fail: each planted bug is caught within some number of seeds.

use quorate_types::planted::{Bug, plant};

use crate::plan::Profile;
use crate::runner::{self, Failure, Seeds};

/// The profile in which a bug is looked for, and the number of seeds in which it must be found.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    pub bug: Bug,
    /// A bug that is on, too: the harm of the other does not show without it.
    pub beside: Option<Bug>,
    pub profile: Profile,
    pub first_seed: u64,
    pub seeds_max: u64,
}

/// A bug that was caught.
#[derive(Debug, Clone)]
pub struct Catch {
    pub search: Search,
    /// The seed that caught it, and the failure; `None`: it was not caught.
    pub caught: Option<(u64, Failure)>,
}

/// All of them. A bug that the general profile finds late or never is looked for where it matters.
pub fn searches() -> Vec<Search> {
    let of = |bug: &Bug| {
        let profile = match bug {
            Bug::FloorIgnored => Profile::Sessions,
            Bug::ReturnedLeads => Profile::Lies,
            Bug::ClockNotCompared | Bug::DoubtedStampTaken => Profile::Clocks,
            Bug::SessionsLostAtTrim | Bug::NoNewAgreement => Profile::Trims,
            Bug::TruncationNotWritten | Bug::TruncationNotWaitedFor => Profile::Cuts,
            Bug::AttachedBeforeRing | Bug::OldCompletionsTaken => Profile::Cuts,
            Bug::DropNotWaitedFor => Profile::Beginnings,
            Bug::StaleTail | Bug::EpochUnchecked => Profile::Heads,
            Bug::TornRecordTaken | Bug::DamageTruncated => Profile::Disks,
            Bug::CatchUpOneShort | Bug::LearnerNotWaitedFor | Bug::StalePromotion => Profile::Learners,
            Bug::ActsBeforeLog => Profile::Coordinator,
            Bug::PlaceIgnored | Bug::PlaceForgotten | Bug::RollCallSkipped | Bug::DigestIgnored => {
                Profile::Restores
            }
            Bug::FormerOwnerAppends | Bug::FormerOwnerOrders | Bug::QueueOutlivesHead => Profile::Queues,
            Bug::RefusedOvertaken | Bug::RetryRefusedOutright => Profile::Queues,
            Bug::FormerLogServed | Bug::CreditIgnored => Profile::Readers,
            Bug::RepairUnchecked => Profile::Repairs,
            Bug::IsolatedHeadAttaches | Bug::UnknownRefusedOutright => Profile::Heads,
            Bug::HangUnnoticed | Bug::PauseCountsAsHang | Bug::HungLetIn => Profile::Hangs,
            Bug::SharedHangEvicts | Bug::HungOneStays => Profile::Hangs,
            Bug::MovedAtOnce => Profile::Operators,
            _ => Profile::Any,
        };
        Search {
            bug: *bug,
            beside: beside(*bug),
            profile,
            first_seed: first_seed(*bug),
            seeds_max: SEEDS_MAX,
        }
    };
    Bug::ALL.iter().map(of).collect()
}

/// The search for bugs that few seeds show begins a little before one that does. Each change of the plans of fleets moves it.
fn first_seed(bug: Bug) -> u64 {
    match bug {
        Bug::DropNotWaitedFor => 4_800,
        Bug::OldCompletionsTaken => 2_100,
        Bug::StaleTail => 400,
        Bug::PauseCountsAsHang => 800,
        Bug::DigestIgnored => 270,
        Bug::FormerLogServed => 600,
        _ => 1,
    }
}

/// The first line of defence, where the bug is in a second one.
fn beside(bug: Bug) -> Option<Bug> {
    match bug {
        Bug::DigestIgnored => Some(Bug::PlaceIgnored),
        _ => None,
    }
}

/// Bugs whose harm needs so many things to go wrong at once that some thousand seeds do not show it. Unit tests do, and
/// `make sim PLANTED=1` looks for them too. Peers that a replica asks have the same batch, but for moments in rare cases.
pub const RARE: &[Bug] = &[Bug::RepairUnchecked];

/// Bugs that take longer are better looked for in a narrower profile.
const SEEDS_MAX: u64 = 3_000;

/// Runs seeds with the bug until one breaks a property that holds without it.
pub fn search(search: Search) -> Catch {
    let mut seeds = Seeds {
        first: search.first_seed,
        count: search.seeds_max,
        profile: search.profile,
        failures_max: 1,
    };
    loop {
        let report = runner::run(seeds, || plant([Some(search.bug), search.beside]), |_, _| {});
        let Some(failure) = report.failures.into_iter().next() else {
            return Catch { search, caught: None };
        };
        // A seed that fails without the bug is no evidence.
        if search.is_clean_without(failure.seed) {
            return Catch {
                search,
                caught: Some((failure.seed, failure)),
            };
        }
        seeds.count -= failure.seed + 1 - seeds.first;
        seeds.first = failure.seed + 1;
    }
}

impl Search {
    fn is_clean_without(&self, seed: u64) -> bool {
        plant([self.beside, None]);
        let outcome = runner::run_one(seed, self.profile);
        plant([None; 2]);
        outcome.is_ok()
    }
}

/// One line of the table in `docs/internals/simulator.md`.
pub fn line(catch: &Catch) -> String {
    let bug = match catch.search.beside {
        Some(beside) => format!("{:?}, beside {beside:?}", catch.search.bug),
        None => format!("{:?}", catch.search.bug),
    };
    let (seed, reason) = match &catch.caught {
        Some((seed, failure)) => {
            let words: Vec<&str> = failure.reason.split_whitespace().collect();
            (seed.to_string(), words.join(" ").chars().take(90).collect())
        }
        None => ("none".to_string(), String::new()),
    };
    format!("| {bug} | {} | {seed} | {reason} |", catch.search.profile.name())
}
