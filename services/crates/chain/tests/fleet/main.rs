//! A whole fleet around one group, from one seed: links that delay and break, servers that crash, stop and
//! lose their disks, a coordinator that learns the truth late, clients that retry and give up.
//!
//! - `plan`: what a seed decides; `world`: time and events; `server`, `disk`, `link`, `master`, `client`: the parts
//! - `ledger`: what was ever committed, and what clients were told; `invariants`: one property per file
//!
//! A failing seed prints itself. Replay: `FLEET_SEED=n cargo test --release -p quorate-chain --test fleet one_seed
//! -- --nocapture`, with `FLEET_TRACE=1` for every event. `FLEET_SEEDS=n` sets how many are tried.

mod client;
mod disk;
mod faults;
mod invariants;
mod ledger;
mod link;
mod master;
mod plan;
mod server;
mod trace;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use world::{Outcome, World};

const SEEDS: u64 = 4_000;

fn run(seed: u64) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| World::new(seed).run())).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
            .unwrap_or_default()
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().expect("a number"))
}

#[test]
fn same_seed_same_trace() {
    for seed in [1, 2, 3, 4, 1_000_003] {
        let (first, second) = (run(seed), run(seed));
        let (first, second) = (first.expect("passes"), second.expect("passes"));
        assert_eq!(first, second, "seed {seed} ran differently the second time");
        assert_ne!(
            first.trace_hash,
            run(seed + 1).expect("passes").trace_hash,
            "the trace depends on the seed"
        );
    }
}

#[test]
fn one_seed() {
    let Some(seed) = number("FLEET_SEED") else { return };
    println!("{:?}", World::new(seed).run());
}

#[test]
fn every_seed_keeps_the_invariants() {
    let first = number("FLEET_FIRST").unwrap_or(1);
    let end = first + number("FLEET_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    let total = Mutex::new(Outcome::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failures.lock().expect("failures").len() >= 10 {
                        return;
                    }
                    match run(seed) {
                        Ok(outcome) => total.lock().expect("total").add(&outcome),
                        Err(reason) => failures.lock().expect("failures").push((seed, reason)),
                    }
                }
            });
        }
    });
    let _default_hook_is_back = std::panic::take_hook();
    let mut failures = failures.into_inner().expect("failures");
    failures.sort();
    println!("{:?}", total.into_inner().expect("total"));
    for (seed, reason) in &failures {
        println!("seed {seed}: {reason}");
        println!(
            "  replay: FLEET_SEED={seed} cargo test --release -p quorate-chain --test fleet one_seed -- --nocapture"
        );
    }
    assert!(
        failures.is_empty(),
        "{} seeds failed, first {}",
        failures.len(),
        failures[0].0
    );
}
