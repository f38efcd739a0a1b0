//! The first test: one seed twice gives one trace, in one process and in several.

use std::process::Command;

use quorate_sim::plan::Profile;
use quorate_sim::runner::run_one;

#[test]
fn same_seed_same_trace() {
    for seed in [1, 2, 3, 4, 5, 1_000_003] {
        let run = |seed| run_one(seed, Profile::Any).expect("passes");
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed} ran differently the second time");
        assert_ne!(
            first.trace_hash,
            run(seed + 1).trace_hash,
            "the trace depends on the seed"
        );
    }
}

#[test]
fn same_seed_same_trace_in_another_process() {
    let last_line = |seed: &str, profile: &str| {
        let mut replay = Command::new(env!("CARGO_BIN_EXE_quorate-sim"));
        let output = replay
            .args(["replay", seed, "--profile", profile, "--events", "0"])
            .output();
        let printed = String::from_utf8(output.expect("it runs").stdout).expect("text");
        printed.lines().last().expect("it says how it ended").to_string()
    };
    for (seed, profile) in [
        ("2", "any"),
        ("3", "sessions"),
        ("5", "sessions"),
        ("7", "readers"),
        ("11", "queues"),
    ] {
        let first = last_line(seed, profile);
        assert!(first.contains("is clean, trace"), "{first}");
        for _ in 0..2 {
            assert_eq!(
                first,
                last_line(seed, profile),
                "the order of some map is in the trace"
            );
        }
    }
}
