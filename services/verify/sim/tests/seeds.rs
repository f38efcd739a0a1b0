//! Every seed keeps every property. More of them: `make sim SEEDS=n FIRST=seed`.

use quorate_sim::plan::Profile;
use quorate_sim::runner::{self, Seeds};

fn run(first: u64, count: u64, profile: Profile) {
    runner::quiet_panics();
    let seeds = Seeds {
        first,
        count,
        profile,
        failures_max: 5,
    };
    let report = runner::run(seeds, || {}, |_, _| {});
    let _default_hook_is_back = std::panic::take_hook();
    let Some(first) = report.failures.first() else {
        return println!("{:?}", report.counts);
    };
    for failure in &report.failures {
        println!(
            "seed {}: {}\n  replay: {}",
            failure.seed,
            failure.reason,
            failure.command()
        );
    }
    let (_, lines) = runner::replay(first.seed, first.profile, 80);
    runner::print_lines(&lines);
    panic!("{} seeds failed, first {}", report.failures.len(), first.seed);
}

/// Rare ones, that found something once (`docs/internals/simulator.md`).
#[test]
fn seeds_that_failed_before_are_clean() {
    let any = [
        1_323, 8_789, 17_327, 28_292, 29_033, 41_696, 57_588, 1_218_899, 1_243_327, 1_250_998,
    ];
    for seed in any {
        run(seed, 1, Profile::Any);
    }
    for seed in [117, 314] {
        run(seed, 1, Profile::Disks);
    }
    for seed in [595, 1_103, 1_650] {
        run(seed, 1, Profile::Learners);
    }
}

#[test]
fn every_seed_keeps_every_property() {
    run(1, 1_000, Profile::Any);
    for (_, profile) in Profile::ALL
        .iter()
        .filter(|(_, profile)| *profile != Profile::Any)
    {
        run(1, 50, *profile);
    }
}
