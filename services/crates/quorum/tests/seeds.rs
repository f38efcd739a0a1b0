//! Worlds of coordinators, one for each seed: `QUORUM_SEEDS=10000 cargo test -p quorate-quorum --test seeds`.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use quorate_figures::Figures;
use quorate_types::planted::{Bug, plant};
use world::Profile;

/// Within a test's time.
const SEEDS: u64 = 150;
const PLANTED: &str = "planted";
const PLANTED_SEEDS_MAX: u64 = 4_000;
const PLANTED_GOAL: f64 = 10.0;

fn seeds(default: u64) -> u64 {
    let asked = std::env::var("QUORUM_SEEDS").ok();
    asked.map_or(default, |text| text.parse().expect("QUORUM_SEEDS is a number"))
}

#[test]
fn a_seed_leads_to_the_same_world_again() {
    assert_eq!(world::run(Profile::Any, 7), world::run(Profile::Any, 7));
}

#[test]
fn agreed_entries_stay_and_reads_are_never_stale() {
    let (mut restores, mut terms, mut reads, mut members) = (0, 0, 0, 0);
    for seed in 0..seeds(SEEDS) {
        let run = catch_unwind(AssertUnwindSafe(|| world::run(profile_of(seed), seed)));
        let counts = run.unwrap_or_else(|problem| panic!("seed {seed}: {}", text(&*problem)));
        restores += counts.restores;
        terms += counts.terms;
        reads += counts.reads;
        members += counts.members;
    }
    assert!(restores > 0 && terms > 0 && reads > 0 && members > 0);
    println!("{restores} snapshots installed, {terms} terms, {reads} reads, {members} members");
}

#[test]
fn each_planted_bug_is_caught() {
    // Their worlds are meant to fail, and say nothing.
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |problem| {
        if thread::current().name() != Some(PLANTED) {
            say(problem);
        }
    }));
    let caught: Vec<(Bug, Option<u64>)> = thread::scope(|scope| {
        let search = |bug: &Bug| {
            let (bug, builder) = (*bug, thread::Builder::new().name(PLANTED.to_string()));
            (
                bug,
                builder
                    .spawn_scoped(scope, move || caught_by(bug))
                    .expect("a thread"),
            )
        };
        let searches: Vec<_> = Bug::QUORUM.iter().map(search).collect();
        let ended = searches
            .into_iter()
            .map(|(bug, search)| (bug, search.join().expect("panics are caught")));
        ended.collect()
    });
    caught
        .iter()
        .for_each(|(bug, seed)| println!("{bug:?}: seed {seed:?}"));
    let missed: Vec<&Bug> = caught
        .iter()
        .filter(|(_, seed)| seed.is_none())
        .map(|(bug, _)| bug)
        .collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
    if let Ok(folder) = std::env::var("QUORUM_FIGURES") {
        let figures = Figures::new(Path::new(&folder), "make sim PLANTED=1".into());
        let written = figures.write(
            "quorum_planted_bugs_caught",
            caught.len() as f64,
            "bugs",
            Some(PLANTED_GOAL),
        );
        written.expect("the folder can be written");
    }
}

/// The first seed that catches the bug. Bugs are planted in one thread each.
fn caught_by(bug: Bug) -> Option<u64> {
    plant([Some(bug), None]);
    let profile = where_it_shows(bug);
    (0..PLANTED_SEEDS_MAX).find(|seed| catch_unwind(AssertUnwindSafe(|| world::run(profile, *seed))).is_err())
}

fn profile_of(seed: u64) -> Profile {
    [
        Profile::Any,
        Profile::Elections,
        Profile::Terms,
        Profile::Snapshots,
    ][seed as usize % 4]
}

/// The profile in which a bug is looked for.
fn where_it_shows(bug: Bug) -> Profile {
    match bug {
        Bug::QuorumVoteNotWritten | Bug::QuorumVotesTwice => Profile::Elections,
        Bug::QuorumOldTermCommitted => Profile::Terms,
        Bug::QuorumSnapshotCutsLog => Profile::Snapshots,
        _ => Profile::Any,
    }
}

fn text(problem: &(dyn std::any::Any + Send)) -> String {
    let said = problem.downcast_ref::<String>().cloned();
    said.or_else(|| problem.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_default()
}
