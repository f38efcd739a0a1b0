//! What a seed decides before anything happens.

use quorate_types::{Durability, Micros};
use rand::Rng;
use rand::rngs::SmallRng;

#[derive(Debug, Clone)]
pub struct Plan {
    pub durability: Durability,
    pub servers: usize,
    pub degree: usize,
    pub min_replicas: usize,
    pub clients: usize,
    pub batches_per_client: u32,
    pub window: usize,
    /// How readily a client gives up what a head says not to hold.
    pub gives_up: f64,
    pub payload_bytes_max: u32,
    pub retention_bytes: u64,
    pub link_delay_us_max: Micros,
    pub sync_us_max: Micros,
    /// How often the fleet is disturbed.
    pub fault_every_us: Micros,
    pub horizon_us: Micros,
    /// The journal's port tells only the last record of each run of one kind.
    pub completions_are_merged: bool,
    /// What a learner may be sent at each tick; `None`: all that its window takes.
    pub catchup_bytes: Option<u64>,
    /// How often a client asks for the status, or to trim.
    pub asks: f64,
    pub retention_age_s: Option<u64>,
    /// The shell takes several events before it flushes.
    pub flush_at_once: f64,
}

impl Plan {
    pub fn draw(rng: &mut SmallRng) -> Self {
        let durability = if rng.random_bool(0.4) {
            Durability::InMemory
        } else {
            Durability::Persistent
        };
        let degree = *pick(rng, &[1, 2, 2, 3, 3, 3, 3, 4, 5]);
        let servers = degree + rng.random_range(1..=2);
        let min_replicas = if rng.random_bool(0.5) { 1 } else { degree / 2 + 1 };
        let payload_bytes_max = *pick(rng, &[200, 200, 200, 100_000, 4 << 20]);
        let few = payload_bytes_max > 200;
        let retention = *pick(rng, &[3, 10, 30, 100_000]);
        Self {
            durability,
            servers: servers.max(3),
            degree,
            min_replicas,
            clients: rng.random_range(1..=3),
            batches_per_client: if few {
                rng.random_range(10..40)
            } else {
                rng.random_range(20..80)
            },
            window: *pick(rng, &[1, 4, 16]),
            gives_up: *pick(rng, &[0.1, 0.5, 1.0]),
            payload_bytes_max,
            retention_bytes: u64::from(payload_bytes_max) * retention,
            link_delay_us_max: *pick(rng, &[50, 500, 5_000]),
            sync_us_max: *pick(rng, &[100, 2_000, 20_000, 100_000]),
            fault_every_us: *pick(rng, &[5_000, 20_000, 60_000, 200_000]),
            horizon_us: 1_000_000,
            completions_are_merged: rng.random_bool(0.5),
            flush_at_once: *pick(rng, &[1.0, 0.5]),
            catchup_bytes: *pick(rng, &[None, Some(u64::from(payload_bytes_max))]),
            asks: *pick(rng, &[0.0, 0.1, 0.5]),
            retention_age_s: *pick(rng, &[None, None, Some(0)]),
        }
    }
}

pub fn pick<'a, T>(rng: &mut SmallRng, choices: &'a [T]) -> &'a T {
    &choices[rng.random_range(0..choices.len())]
}
