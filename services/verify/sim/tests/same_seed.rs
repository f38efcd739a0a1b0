//! The first test: one seed twice gives one trace.

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
