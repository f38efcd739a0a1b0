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
    use Durability::{InMemory, Persistent};
    vec![
        world(
            "memory lost and learnt again",
            InMemory,
            (3, 2),
            (1, 5),
            faults(2, 0, 0),
        ),
        world("two appends", InMemory, (3, 2), (2, 3), faults(1, 0, 0)),
        world("the living suspected", InMemory, (3, 3), (1, 4), faults(0, 0, 1)),
        world("disks", Persistent, (3, 2), (1, 3), faults(2, 0, 0)),
        world("disks and links", Persistent, (2, 2), (2, 3), faults(1, 1, 0)),
        world("three disks", Persistent, (3, 3), (1, 2), faults(1, 0, 0)),
    ]
}

/// Explored by `make model`, in minutes.
pub fn large() -> Vec<Bounds> {
    use Durability::{InMemory, Persistent};
    let mut worlds = quick();
    worlds.extend([
        world(
            "memory and links, suspected",
            InMemory,
            (3, 2),
            (2, 3),
            faults(0, 1, 1),
        ),
        world("memory, all fail", InMemory, (3, 3), (1, 3), faults(3, 0, 0)),
        world("disks, two appends", Persistent, (3, 2), (2, 3), faults(1, 0, 0)),
        world("three disks, longer", Persistent, (3, 3), (1, 3), faults(1, 0, 0)),
    ]);
    worlds
}

/// Larger ones, for a machine with time and memory: several million states each, and more.
pub fn longer() -> Vec<Bounds> {
    use Durability::{InMemory, Persistent};
    vec![
        world(
            "memory, two appends, suspected",
            InMemory,
            (3, 3),
            (2, 4),
            faults(0, 0, 1),
        ),
        world(
            "disks, three replicas",
            Persistent,
            (3, 3),
            (1, 3),
            faults(2, 0, 0),
        ),
        world(
            "disks, all fail twice",
            Persistent,
            (2, 2),
            (2, 4),
            faults(3, 0, 0),
        ),
        world("disks, suspected", Persistent, (3, 2), (1, 4), faults(1, 0, 1)),
        world("memory, a spare", InMemory, (4, 3), (1, 3), faults(1, 0, 1)),
    ]
}
