//! What must be called back, of what was lent.

use super::Key;
use crate::problem::RESOURCES;

/// Amounts of a server's resources; sums of products fit.
pub(super) type Sum = [u128; RESOURCES];

/// Whose words end so that `over` is covered: those who hold most first, so that few lose what they have. `held`:
/// what each may be using. All that use what is over, if that is not enough.
pub(super) fn least(mut over: Sum, held: Vec<(Key, Sum)>) -> Vec<Key> {
    let mut recalled = Vec::new();
    for i in 0..RESOURCES {
        let mut users: Vec<&(Key, Sum)> = held.iter().filter(|(_, held)| held[i] > 0).collect();
        users.sort_by(|a, b| b.1[i].cmp(&a.1[i]).then(a.0.cmp(&b.0)));
        for (key, held) in users {
            if over[i] == 0 {
                break;
            }
            if !recalled.contains(key) {
                recalled.push(*key);
                over = std::array::from_fn(|i| over[i].saturating_sub(held[i]));
            }
        }
    }
    recalled
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    fn key(n: u128) -> Key {
        (GroupId(Uuid::from_u128(n)), 1)
    }

    #[test]
    fn few_lose_what_they_have_and_nobody_who_does_not_use_what_is_missing() {
        let held = vec![(key(1), [10, 0, 0]), (key(2), [40, 5, 0]), (key(3), [30, 0, 7])];
        assert_eq!(least([0, 0, 0], held.clone()), []);
        assert_eq!(least([40, 0, 0], held.clone()), [key(2)]);
        assert_eq!(least([41, 0, 0], held.clone()), [key(2), key(3)]);
        assert_eq!(least([0, 0, 1], held.clone()), [key(3)]);
        assert_eq!(least([5, 0, 1], held.clone()), [key(2), key(3)]);
        assert_eq!(least([1_000, 0, 0], held), [key(2), key(3), key(1)]);
    }
}
