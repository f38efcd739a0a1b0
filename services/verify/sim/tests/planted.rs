//! The checker can fail: every planted bug is caught.
#![cfg(debug_assertions)]

use quorate_sim::planted::{RARE, line, search, searches};
use quorate_sim::runner;

#[test]
fn every_planted_bug_is_caught() {
    runner::quiet_panics();
    let expected = searches()
        .into_iter()
        .filter(|search| !RARE.contains(&search.bug));
    let catches: Vec<_> = expected.map(search).collect();
    let _default_hook_is_back = std::panic::take_hook();
    for catch in &catches {
        println!("{}", line(catch));
    }
    let missed: Vec<_> = catches
        .iter()
        .filter(|c| c.caught.is_none())
        .map(|c| c.search.bug)
        .collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
