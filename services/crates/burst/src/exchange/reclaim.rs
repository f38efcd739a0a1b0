//! The choice of commitments to reclaim.

use crate::problem::GroupEpoch;
use crate::problem::RESOURCES;

/// Amounts of a server's resources, wide enough for sums of products.
pub(super) type WideVector = [u128; RESOURCES];

/// The groups whose commitments end so that `over` is covered. The largest come first, so that few groups lose theirs; if
/// all are not enough, every user of a resource in `over` loses its own. `held`: the amounts that each may be using.
pub(super) fn fewest(mut over: WideVector, held: Vec<(GroupEpoch, WideVector)>) -> Vec<GroupEpoch> {
    let mut reclaimed = Vec::new();
    for i in 0..RESOURCES {
        let mut users: Vec<&(GroupEpoch, WideVector)> = held.iter().filter(|(_, held)| held[i] > 0).collect();
        users.sort_by(|a, b| b.1[i].cmp(&a.1[i]).then(a.0.cmp(&b.0)));
        for (key, held) in users {
            if over[i] == 0 {
                break;
            }
            if !reclaimed.contains(key) {
                reclaimed.push(*key);
                over = std::array::from_fn(|i| over[i].saturating_sub(held[i]));
            }
        }
    }
    reclaimed
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    fn key(n: u128) -> GroupEpoch {
        (GroupId(Uuid::from_u128(n)), 1)
    }

    #[test]
    fn few_groups_lose_theirs_and_only_users_of_a_resource_that_is_short() {
        let held = vec![(key(1), [10, 0, 0]), (key(2), [40, 5, 0]), (key(3), [30, 0, 7])];
        assert_eq!(fewest([0, 0, 0], held.clone()), []);
        assert_eq!(fewest([40, 0, 0], held.clone()), [key(2)]);
        assert_eq!(fewest([41, 0, 0], held.clone()), [key(2), key(3)]);
        assert_eq!(fewest([0, 0, 1], held.clone()), [key(3)]);
        assert_eq!(fewest([5, 0, 1], held.clone()), [key(2), key(3)]);
        assert_eq!(fewest([1_000, 0, 0], held), [key(2), key(3), key(1)]);
    }
}
