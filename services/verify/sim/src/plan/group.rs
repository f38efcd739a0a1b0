//! A seed's decisions about one group.

use quorate_types::Durability;
use quorate_types::limits::{BATCH_MEMORY_BYTES, ENTRY_PREFIX_BYTES};
use rand::Rng;
use rand::rngs::SmallRng;

use super::Profile;
use super::pick::pick;

/// Clients that fill the session table together.
pub const CHURNING_CLIENTS: usize = 6;

/// Batches that each client keeps for the time after the faults.
pub const KEPT_BATCHES: u32 = 3;

/// Clients beside them that stay away meanwhile, and return.
const RETURNING_CLIENTS: usize = 2;

/// Bytes that retention counts of a batch with this payload.
pub(super) fn counted_bytes(payload_bytes: u32) -> u64 {
    u64::from(payload_bytes) + ENTRY_PREFIX_BYTES + BATCH_MEMORY_BYTES
}

#[derive(Debug, Clone)]
pub struct GroupPlan {
    pub durability: Durability,
    pub degree: u8,
    pub min_replicas: Option<u8>,
    /// Age of a batch that is trimmed.
    pub retention_age_s: Option<u64>,
    /// In the servers' configuration; smaller than an SLA may ask for, so that trims are many.
    pub retention_bytes: u64,
    pub payload_bytes_max: u32,
    pub clients: usize,
    pub batches_per_client: u32,
    pub window: usize,
    /// How readily a client gives up batches that a head does not hold.
    pub gives_up: f64,
    /// How often a client asks for the status, or has entries trimmed.
    pub asks: f64,
    /// How readily a client abandons its session, and all that is not answered.
    pub abandons: f64,
    /// Clients with a session for each batch fill the session table; others come back after that.
    pub churns: bool,
    pub rate_per_s: u64,
    /// The deadline that an append names; 0: none.
    pub timeout_ms: u32,
    /// How long tokens are good.
    pub token_lifetime_s: Option<u64>,
    /// One of several writers, and one of several readers, has no permission.
    pub has_unpermitted: bool,
    pub readers: usize,
    /// Whether the first of two readers subscribes. The other reads page by page.
    pub first_subscribes: bool,
}

impl GroupPlan {
    pub fn draw(rng: &mut SmallRng, profile: Profile) -> Self {
        let durability = draw_durability(rng, profile);
        let degree = draw_degree(rng, profile);
        let min_replicas = *pick(rng, &[None, Some(1), Some(degree)]);
        let is_small = matches!(profile, Profile::Fleets | Profile::Beginnings);
        let churns = profile == Profile::Sessions || (!is_small && rng.random_bool(0.01));
        let payload_bytes_max = if churns {
            40
        } else {
            draw_payload_bytes(rng, profile)
        };
        let batches_per_client = draw_batches_per_client(rng, payload_bytes_max);
        // Some may use so little that most of what is sent is refused.
        let is_narrow =
            !churns && payload_bytes_max <= 4_000 && (profile == Profile::Queues || rng.random_bool(0.15));
        let keeps_all = matches!(profile, Profile::Readers | Profile::Repairs);
        let keeps_bytes = keeps_all || profile == Profile::Clocks;
        let retention_batches = draw_retention_batches(rng, keeps_bytes);
        Self {
            durability,
            degree,
            min_replicas,
            retention_age_s: draw_retention_age(rng, profile).filter(|_| !keeps_all),
            retention_bytes: counted_bytes(payload_bytes_max) * retention_batches,
            payload_bytes_max,
            clients: match churns {
                true => CHURNING_CLIENTS + RETURNING_CLIENTS,
                false if is_small => rng.random_range(1..=2),
                false => rng.random_range(1..=3),
            },
            batches_per_client: match is_narrow {
                // All but one are kept for the time after the faults.
                _ if profile == Profile::Beginnings => KEPT_BATCHES + 1,
                _ if is_small => batches_per_client.min(20),
                true => batches_per_client.min(40),
                false => batches_per_client,
            },
            window: *pick(rng, &[1, 4, 16]),
            gives_up: *pick(rng, &[0.1, 0.5, 1.0]),
            asks: draw_asks(rng, profile),
            abandons: *pick(rng, &[0.0, 0.0, 0.05, 0.3]),
            churns,
            // A rate that one shard of a server can promise.
            rate_per_s: if is_narrow {
                20
            } else {
                (*pick(rng, &[300, 3_000, 20_000])).min(40_000_000 / u64::from(payload_bytes_max))
            },
            timeout_ms: *pick(
                rng,
                if profile == Profile::Queues {
                    &[0, 500]
                } else {
                    &[0, 0, 20, 200]
                },
            ),
            token_lifetime_s: *pick(rng, &[None, None, None, Some(1)]),
            has_unpermitted: rng.random_bool(0.2),
            readers: draw_readers(rng, profile, churns),
            first_subscribes: rng.random_bool(0.5),
        }
    }
}

fn draw_durability(rng: &mut SmallRng, profile: Profile) -> Durability {
    let drawn = match rng.random_range(0..5) {
        0 | 1 => Durability::InMemory,
        _ => Durability::Persistent,
    };
    match profile {
        Profile::Disks
        | Profile::Cuts
        | Profile::Readers
        | Profile::Repairs
        | Profile::Slow
        | Profile::Poison
        | Profile::Beginnings
        | Profile::Lies => Durability::Persistent,
        _ => drawn,
    }
}

fn draw_degree(rng: &mut SmallRng, profile: Profile) -> u8 {
    let degrees: &[u8] = match profile {
        Profile::Sessions => &[1, 2, 3],
        Profile::Cuts | Profile::Heads | Profile::Queues | Profile::Lies => &[2, 3, 3, 4],
        Profile::Readers | Profile::Repairs => &[2, 2, 3],
        Profile::Slow => &[2, 3, 3],
        Profile::Beginnings => &[2],
        Profile::Fleets => &[1, 2, 2, 3, 3, 3, 4],
        _ => &[1, 2, 2, 3, 3, 3, 3, 4, 5, 7],
    };
    *pick(rng, degrees)
}

fn draw_batches_per_client(rng: &mut SmallRng, payload_bytes_max: u32) -> u32 {
    match payload_bytes_max {
        0..100 => 220,
        100..=4_000 => rng.random_range(20..120),
        4_001..=100_000 => rng.random_range(20..60),
        _ => rng.random_range(10..30),
    }
}

fn draw_readers(rng: &mut SmallRng, profile: Profile, churns: bool) -> usize {
    match profile {
        _ if churns => 0,
        Profile::Readers => 3,
        Profile::Repairs => 2,
        Profile::Fleets | Profile::Beginnings => *pick(rng, &[0, 0, 0, 1]),
        _ => *pick(rng, &[0, 1, 2]),
    }
}

fn draw_asks(rng: &mut SmallRng, profile: Profile) -> f64 {
    let asks: &[f64] = match profile {
        Profile::Heads => &[0.5],
        Profile::Readers | Profile::Repairs => &[0.0, 0.0, 0.0, 0.01],
        _ => &[0.0, 0.1, 0.5],
    };
    *pick(rng, asks)
}

fn draw_retention_batches(rng: &mut SmallRng, keeps_all: bool) -> u64 {
    let batches: &[u64] = if keeps_all {
        &[100_000]
    } else {
        &[3, 10, 30, 100_000]
    };
    *pick(rng, batches)
}

fn draw_retention_age(rng: &mut SmallRng, profile: Profile) -> Option<u64> {
    let ages: &[Option<u64>] = match profile {
        Profile::Clocks => &[Some(1), Some(3), Some(10)],
        _ => &[None, None, None, Some(0), Some(1), Some(3)],
    };
    *pick(rng, ages)
}

fn draw_payload_bytes(rng: &mut SmallRng, profile: Profile) -> u32 {
    let weights: &[u32] = match profile {
        Profile::Trims => &[64 << 10, 1 << 20],
        Profile::Fleets | Profile::Beginnings => &[200, 200, 4_000],
        _ => &[
            200,
            200,
            200,
            200,
            200,
            200,
            200,
            4_000,
            4_000,
            64 << 10,
            64 << 10,
            1 << 20,
        ],
    };
    *pick(rng, weights)
}
