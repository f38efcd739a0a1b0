//! Pages under way from the disk: so many for a connection, and for the group.

use quorate_types::ids::IdMap;
use quorate_types::limits::{PAGES_PER_CONNECTION_MAX, PAGES_PER_GROUP_MAX};

/// A page counts until it has come back from the disk and from repair, also if nobody waits for it any more.
///
/// So a client that cancels and asks again cannot have more read.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    by_connection: IdMap<u64, usize>,
    total: usize,
}

impl Pages {
    pub fn has_room(&self, connection: u64) -> bool {
        let of_connection = self.by_connection.get(&connection);
        of_connection.is_none_or(|pages| *pages < PAGES_PER_CONNECTION_MAX)
            && self.total < PAGES_PER_GROUP_MAX
    }

    pub fn begin(&mut self, connection: u64) {
        *self.by_connection.entry(connection).or_insert(0) += 1;
        self.total += 1;
    }

    pub fn end(&mut self, connection: u64) {
        let pages = self.by_connection.get_mut(&connection).expect("a page ends once");
        *pages -= 1;
        if *pages == 0 {
            self.by_connection.remove(&connection);
        }
        self.total -= 1;
    }
}
