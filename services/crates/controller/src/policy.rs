//! What there is to share out: the operator's choice (Filo §4.2).

use crate::problem::{Place, RESOURCES, Vector};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// What nobody reserved. Nobody's reservation is touched.
    Unallocated,
    /// Also what is reserved and not used now. Its owner needs it back at once when it returns.
    Idle,
}

/// What a tenant was promised, and what it uses of it.
#[derive(Debug, Clone)]
pub struct Reservation<'a> {
    pub places: &'a [Place],
    pub reserved_per_s: u64,
    /// Requests/s now; what is above the reservation counts as reserved only.
    pub used_per_s: u64,
}

impl Policy {
    /// Free vectors of the servers, as many as `capacity` has; nothing where more is taken than there is.
    pub fn free<'a>(
        self,
        capacity: &[Vector],
        reservations: impl IntoIterator<Item = Reservation<'a>>,
    ) -> Vec<Vector> {
        let mut taken = vec![[0u128; RESOURCES]; capacity.len()];
        for reservation in reservations {
            let per_s = match self {
                Policy::Unallocated => reservation.reserved_per_s,
                Policy::Idle => reservation.used_per_s.min(reservation.reserved_per_s),
            };
            for place in reservation.places {
                for i in 0..RESOURCES {
                    let more = u128::from(place.cost[i]) * u128::from(per_s);
                    taken[place.server][i] = taken[place.server][i].saturating_add(more);
                }
            }
        }
        let left = |all: u64, taken: u128| u64::try_from(u128::from(all).saturating_sub(taken)).unwrap_or(0);
        let servers = capacity.iter().zip(&taken);
        servers
            .map(|(all, taken)| std::array::from_fn(|i| left(all[i], taken[i])))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_the_unallocated_and_the_unused() {
        let places = [Place {
            server: 1,
            cost: [10, 1, 0],
        }];
        let reservation = |used_per_s| Reservation {
            places: &places,
            reserved_per_s: 8,
            used_per_s,
        };
        let free = |policy: Policy, used| policy.free(&[[5, 5, 5], [100, 5, 5]], [reservation(used)]);
        assert_eq!(free(Policy::Unallocated, 3), [[5, 5, 5], [20, 0, 5]]);
        assert_eq!(free(Policy::Idle, 3), [[5, 5, 5], [70, 2, 5]]);
        assert_eq!(free(Policy::Idle, 9), free(Policy::Unallocated, 9));
    }
}
