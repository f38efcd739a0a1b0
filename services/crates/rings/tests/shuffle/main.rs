//! Worlds of two sides, one for each seed: `RINGS_SEEDS=20000 cargo test -p quorate-rings --test shuffle`.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use quorate_figures::Figures;
use quorate_types::planted::{Bug, plant};

/// Within a test's time.
const SEEDS: u64 = 120;
const GOAL: f64 = 20_000.0;
const PLANTED: &str = "planted";
const PLANTED_SEEDS_MAX: u64 = 400;

#[test]
fn a_seed_leads_to_the_same_world_again() {
    assert_eq!(world::run(7), world::run(7));
}

#[test]
fn each_stream_arrives_whole_and_in_order() {
    let asked = std::env::var("RINGS_SEEDS").ok();
    let seeds = asked.map_or(SEEDS, |text| text.parse().expect("RINGS_SEEDS is a number"));
    let mut all = world::Counts::default();
    for seed in 0..seeds {
        let run = catch_unwind(AssertUnwindSafe(|| world::run(seed)));
        let counts = run.unwrap_or_else(|problem| panic!("seed {seed}: {}", text(&*problem)));
        all.bytes += counts.bytes;
        all.records += counts.records;
        all.wakes += counts.wakes;
        all.breaks += counts.breaks;
        all.stale_faults += counts.stale_faults;
    }
    println!("{seeds} seeds: {all:?}");
    if let Ok(folder) = std::env::var("RINGS_FIGURES") {
        let figures = Figures::new(
            Path::new(&folder),
            format!("RINGS_SEEDS={seeds} cargo test -p quorate-rings --test shuffle"),
        );
        let written = figures.write("ofi_shuffle_seeds_clean", seeds as f64, "seeds", Some(GOAL));
        written.expect("the folder can be written");
    }
    assert!(all.bytes > 0 && all.records > 0 && all.wakes > 0 && all.breaks > 0 && all.stale_faults > 0);
}

#[test]
fn each_planted_bug_is_caught() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |problem| {
        if thread::current().name() != Some(PLANTED) {
            say(problem);
        }
    }));
    for bug in Bug::RINGS {
        let search = thread::Builder::new().name(PLANTED.into()).spawn(move || {
            plant([Some(*bug), None]);
            (0..PLANTED_SEEDS_MAX).find(|seed| catch_unwind(AssertUnwindSafe(|| world::run(*seed))).is_err())
        });
        let seed = search.expect("a thread").join().expect("panics are caught");
        println!("{bug:?}: seed {seed:?}");
        assert!(seed.is_some(), "{bug:?} is not caught");
    }
}

fn text(problem: &(dyn std::any::Any + Send)) -> &str {
    let text = problem.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| problem.downcast_ref::<&str>().copied())
        .unwrap_or("no words")
}
