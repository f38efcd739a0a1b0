//! The bounds of grants: the resource that a server has used up after its commitments. For people; no decision rests on it.

use std::collections::BTreeMap;

use crate::problem::GroupEpoch;
use crate::problem::{RESOURCES, Vector};

/// The replica on this server keeps a group from more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantBound {
    pub server: usize,
    /// In the order of [`quorate_types::cost::RESOURCES`].
    pub resource: usize,
}

/// A resource is used up if less than this part of the commitment would fit beside it.
const NO_MORE_PART: u64 = 50;

/// The resource that a server has used up, if any. `left` are the amounts after its commitments, of which `given` are the
/// requests/s for one group, of `cost` each. Among several resources it is the one with fewest requests left.
pub fn used_up(left: &Vector, cost: &Vector, given: u64) -> Option<usize> {
    let more = (given / NO_MORE_PART).max(1);
    let requests = |i: &usize| left[*i] / cost[*i];
    let used = (0..RESOURCES).filter(|i| cost[*i] > 0 && left[*i] < cost[*i].saturating_mul(more));
    used.min_by_key(requests)
}

/// The lowest commitment of a server that had no more, in this interval, for each group whose head is here.
#[derive(Debug, Default)]
pub struct GrantBounds {
    least: BTreeMap<GroupEpoch, (u64, GrantBound)>,
}

impl GrantBounds {
    pub fn begin(&mut self) {
        self.least.clear();
    }

    pub fn note(&mut self, key: GroupEpoch, given: u64, bound: GrantBound) {
        let least = self.least.entry(key).or_insert((given, bound));
        if given < least.0 {
            *least = (given, bound);
        }
    }

    /// The bound of a grant; none for a group that has all that it wants.
    pub fn of(&self, key: &GroupEpoch, granted: u64, wanted: u64) -> Option<GrantBound> {
        let (_, bound) = self.least.get(key).filter(|_| granted < wanted)?;
        Some(*bound)
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_resource_is_used_up_when_hardly_a_request_more_fits() {
        assert_eq!(
            used_up(&[1_000, 999, 0], &[10, 10, 0], 10),
            None,
            "a hundred more fit"
        );
        assert_eq!(used_up(&[1_000, 9, 0], &[10, 10, 0], 10), Some(1));
        assert_eq!(
            used_up(&[1_000, 1_000, 0], &[10, 10, 0], 5_000 * NO_MORE_PART),
            Some(0)
        );
        assert_eq!(
            used_up(&[19, 9, 3], &[10, 0, 1], 200),
            Some(0),
            "the second is not needed"
        );
    }

    #[test]
    fn the_lowest_commitment_bounds_a_group_that_wants_more() {
        let key = (GroupId(Uuid::from_u128(1)), 1);
        let mut bounds = GrantBounds::default();
        let bound = |server| GrantBound { server, resource: 2 };
        bounds.note(key, 90, bound(4));
        bounds.note(key, 70, bound(5));
        bounds.note(key, 80, bound(6));
        assert_eq!(bounds.of(&key, 70, 100), Some(bound(5)));
        assert_eq!(bounds.of(&key, 100, 100), None, "it has all that it wants");
        assert_eq!(bounds.of(&(key.0, 2), 70, 100), None);
        bounds.begin();
        assert_eq!(bounds.of(&key, 70, 100), None);
    }
}
