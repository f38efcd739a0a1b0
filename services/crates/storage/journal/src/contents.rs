//! The owners of a segment's records, noted as records are written: a segment that no owner needs is never read again.

use std::collections::BTreeMap;

use crate::record::{KIND_MARK, Lsn};

/// Names a record's owner, and its place in the owner's own order (0: it has none), by its kind and head.
pub type OwnerOf = fn(kind: u8, head: &[u8]) -> Option<(u128, u64)>;

/// With more owners than this in one segment, the owners count as unknown.
const OWNERS_MAX: usize = 1 << 16;

/// How far one owner's records in a segment go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    pub last_lsn: Lsn,
    /// The greatest place in the owner's order.
    pub last_place: u64,
}

/// The owners of one segment. `None`: some record's owner is unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents(Option<BTreeMap<u128, Reach>>);

impl Contents {
    /// For a segment without records.
    pub fn empty() -> Self {
        Self(Some(BTreeMap::new()))
    }

    pub fn note(&mut self, owner_of: Option<OwnerOf>, lsn: Lsn, kind: u8, head: &[u8]) {
        let Some(known) = &mut self.0 else { return };
        if kind == KIND_MARK {
            return;
        }
        match owner_of.and_then(|owner_of| owner_of(kind, head)) {
            Some((owner, place)) if known.len() < OWNERS_MAX || known.contains_key(&owner) => {
                let first = Reach {
                    last_lsn: lsn,
                    last_place: place,
                };
                let reach = known.entry(owner).or_insert(first);
                reach.last_lsn = lsn;
                reach.last_place = reach.last_place.max(place);
            }
            _ => self.0 = None,
        }
    }

    pub fn reaches(&self) -> Option<Vec<(u128, Reach)>> {
        let known = self.0.as_ref()?;
        Some(known.iter().map(|(owner, reach)| (*owner, *reach)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner_of(kind: u8, head: &[u8]) -> Option<(u128, u64)> {
        (kind != 9).then(|| (u128::from(head[0]), u64::from(head[1])))
    }

    #[test]
    fn each_owner_reaches_to_its_last_record_and_its_greatest_place() {
        let mut contents = Contents::empty();
        for (lsn, head) in [(5, [1, 7]), (6, [2, 1]), (8, [1, 3])] {
            contents.note(Some(owner_of), lsn, 1, &head);
        }
        contents.note(Some(owner_of), 9, KIND_MARK, &[]);
        let reach = |last_lsn, last_place| Reach { last_lsn, last_place };
        assert_eq!(contents.reaches(), Some(vec![(1, reach(8, 7)), (2, reach(6, 1))]));
    }

    #[test]
    fn what_is_not_known_in_full_is_not_known() {
        assert_eq!(Contents::default().reaches(), None);
        for (owner, kind) in [(Some(owner_of as OwnerOf), 9), (None, 1)] {
            let mut contents = Contents::empty();
            contents.note(owner, 5, kind, &[1, 1]);
            contents.note(Some(owner_of), 6, 1, &[1, 1]);
            assert_eq!(contents.reaches(), None);
        }
    }
}
