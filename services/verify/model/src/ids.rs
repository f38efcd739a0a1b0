//! Numbers and entries. Small integers: a state is cloned and hashed millions of times.

pub type ServerId = u8;
/// Counts from 1; 0 is before the first.
pub type Epoch = u8;
/// Index of a batch, from 1.
pub type Index = u8;
pub type Session = u8;

/// The acknowledged index of a head that waits for no other replica.
pub const UNBOUNDED: Index = Index::MAX;

/// A batch: the only append of its session, in the epoch in which it was ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    pub epoch: Epoch,
    pub session: Session,
}
