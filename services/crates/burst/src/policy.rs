//! The amounts that are shared out: the operator's choice (Filo §4.2).

use crate::problem::{RESOURCES, ReplicaCost, Vector};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The amounts that nobody reserved. No reservation is touched.
    Unallocated,
    /// Also the amounts that are reserved and not used now. An owner that returns needs its own back at once.
    Idle,
}

/// A tenant's reservation, and its use of it.
#[derive(Debug, Clone)]
pub struct Reservation<'a> {
    pub replicas: &'a [ReplicaCost],
    /// At each of `replicas`. Appends that may come alone make it more than the requests cost in full batches, and not
    /// by the same factor of each resource.
    pub reserved: &'a [Vector],
    pub reserved_per_s: u64,
    /// Requests/s now; a rate above the reservation counts as the whole reservation.
    pub used_per_s: u64,
}

impl Reservation<'_> {
    /// The amounts kept for the owner at a replica, from those reserved there and its present rate.
    pub fn kept(&self, replica: &ReplicaCost, reserved: &Vector) -> Vector {
        let used_per_s = self.used_per_s.min(self.reserved_per_s);
        kept(&replica.cost, used_per_s, self.reserved_per_s, reserved, reserved)
    }
}

/// The amounts kept at a replica for `per_s` of `whole_per_s` requests/s. One request in a full batch costs `cost`. Kept is
/// the same part of `reserved` as of the requests, or their cost, whichever is more; but no more than `most`.
pub fn kept(cost: &Vector, per_s: u64, whole_per_s: u64, reserved: &Vector, most: &Vector) -> Vector {
    let (per_s, whole) = (u128::from(per_s), u128::from(whole_per_s.max(1)));
    std::array::from_fn(|i| {
        let part = (u128::from(reserved[i]) * per_s).div_ceil(whole);
        let kept = part.max(u128::from(cost[i]) * per_s);
        kept.min(u128::from(most[i])) as u64
    })
}

impl Policy {
    /// Free vectors of the servers, as many as `capacity` has. A resource that is over-reserved has nothing free.
    pub fn free<'a>(
        self,
        capacity: &[Vector],
        reservations: impl IntoIterator<Item = Reservation<'a>>,
    ) -> Vec<Vector> {
        let mut taken = vec![[0u128; RESOURCES]; capacity.len()];
        for reservation in reservations {
            assert_eq!(reservation.replicas.len(), reservation.reserved.len());
            for (replica, reserved) in reservation.replicas.iter().zip(reservation.reserved) {
                let more = match self {
                    Policy::Unallocated => *reserved,
                    Policy::Idle => reservation.kept(replica, reserved),
                };
                for i in 0..RESOURCES {
                    taken[replica.server][i] = taken[replica.server][i].saturating_add(u128::from(more[i]));
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
        let replicas = [ReplicaCost {
            server: 1,
            cost: [10, 1, 0],
        }];
        let reservation = |used_per_s| Reservation {
            replicas: &replicas,
            reserved: &[[80, 8, 0]],
            reserved_per_s: 8,
            used_per_s,
        };
        let free = |policy: Policy, used| policy.free(&[[5, 5, 5], [100, 5, 5]], [reservation(used)]);
        assert_eq!(free(Policy::Unallocated, 3), [[5, 5, 5], [20, 0, 5]]);
        assert_eq!(free(Policy::Idle, 3), [[5, 5, 5], [70, 2, 5]]);
        assert_eq!(free(Policy::Idle, 9), free(Policy::Unallocated, 9));
    }

    #[test]
    fn reservations_for_appends_that_come_alone_are_not_free() {
        let replicas = [ReplicaCost {
            server: 0,
            cost: [10, 1, 2],
        }];
        let free = |policy: Policy, used_per_s| {
            let reservation = Reservation {
                replicas: &replicas,
                reserved: &[[320, 8, 16]],
                reserved_per_s: 8,
                used_per_s,
            };
            policy.free(&[[400, 20, 20]], [reservation])
        };
        assert_eq!(free(Policy::Unallocated, 2), [[80, 12, 4]]);
        assert_eq!(free(Policy::Idle, 2), [[320, 18, 16]], "two that come alone");
        assert_eq!(free(Policy::Idle, 0), [[400, 20, 20]]);
    }
}
