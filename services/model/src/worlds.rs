//! The worlds that are explored: small ones with every test, large ones by `make model`.

use crate::bounds::{Bounds, Durability};

/// Faults that a world may see.
pub struct Faults {
    pub crashes: u8,
    pub breaks: u8,
    pub wrong_suspicions: u8,
}

/// A chain of `degree` and as many spares as `servers` has more.
pub fn world(
    name: &'static str,
    durability: Durability,
    (servers, degree): (u8, usize),
    (sessions, epochs): (u8, u8),
    faults: Faults,
) -> Bounds {
    Bounds {
        name,
        servers,
        degree,
        min_replicas: 1 + degree / 2 - usize::from(degree == 2),
        durability,
        sessions,
        epochs,
        crashes: faults.crashes,
        breaks: faults.breaks,
        wrong_suspicions: faults.wrong_suspicions,
        bug: None,
    }
}

/// `crashes` of processes, links that `breaks`, suspicions of the living.
pub fn faults(crashes: u8, breaks: u8, wrong_suspicions: u8) -> Faults {
    Faults {
        crashes,
        breaks,
        wrong_suspicions,
    }
}

/// Explored with every test run, in seconds.
pub fn quick() -> Vec<Bounds> {
    vec![]
}

/// Explored by `make model`, in minutes.
pub fn large() -> Vec<Bounds> {
    vec![]
}
