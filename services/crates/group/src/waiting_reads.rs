//! Single reads that wait for entries: by the offset that they wait for, and by the time at which their wait ends. A
//! commit looks at those that it makes readable, however many others wait.

use std::collections::{BTreeMap, BTreeSet};

use quorate_chain::ClientRef;
use quorate_types::{Micros, Offset};

use crate::event::Reader;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingRead {
    pub reader: Reader,
    pub max_bytes: u32,
    pub max_entries: u32,
    pub offset: Offset,
    pub deadline_us: Micros,
}

/// The place of a waiting read: its offset, and its number among all reads of the hosting.
type Place = (Offset, u64);

#[derive(Debug, Default)]
pub(crate) struct WaitingReads {
    by_offset: BTreeMap<Place, WaitingRead>,
    by_deadline: BTreeSet<(Micros, Place)>,
    by_client: BTreeMap<ClientRef, usize>,
    /// Reads that were looked at so far.
    #[cfg(test)]
    looked_at: usize,
}

impl WaitingReads {
    pub fn len(&self) -> usize {
        self.by_offset.len()
    }

    pub fn count_of(&self, client: ClientRef) -> usize {
        self.by_client.get(&client).copied().unwrap_or(0)
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.by_deadline.first().map(|(deadline_us, _)| *deadline_us)
    }

    pub fn push(&mut self, read: WaitingRead) {
        let place = (read.offset, read.reader.serial);
        self.by_deadline.insert((read.deadline_us, place));
        *self.by_client.entry(read.reader.client).or_default() += 1;
        let before = self.by_offset.insert(place, read);
        assert!(before.is_none(), "a serial is given once");
    }

    /// Takes a read that may be answered: its offset lies before `readable`, or behind `end`, or its wait is over.
    pub fn take_due(&mut self, readable: Offset, end: Option<Offset>, now_us: Micros) -> Option<WaitingRead> {
        #[cfg(test)]
        {
            self.looked_at += 1;
        }
        let first = self.by_offset.keys().next().copied();
        let last = self.by_offset.keys().next_back().copied();
        let late = self.by_deadline.first().copied();
        let place = first
            .filter(|(offset, _)| *offset < readable)
            .or(last.filter(|(offset, _)| end.is_some_and(|end| *offset > end)))
            .or(late.filter(|(at, _)| *at <= now_us).map(|(_, place)| place))?;
        Some(self.take(place))
    }

    /// Takes the reads that are chosen: all are looked at.
    pub fn take_where(&mut self, is_chosen: impl Fn(&Reader) -> bool) -> Vec<WaitingRead> {
        let chosen = self.by_offset.iter().filter(|(_, read)| is_chosen(&read.reader));
        let mut places: Vec<Place> = chosen.map(|(place, _)| *place).collect();
        // In the order in which they came.
        places.sort_unstable_by_key(|(_, serial)| *serial);
        places.into_iter().map(|place| self.take(place)).collect()
    }

    fn take(&mut self, place: Place) -> WaitingRead {
        let read = self.by_offset.remove(&place).expect("it waits there");
        self.by_deadline.remove(&(read.deadline_us, place));
        let client = read.reader.client;
        let count = self.by_client.get_mut(&client).expect("one of its reads waits");
        *count -= 1;
        if *count == 0 {
            self.by_client.remove(&client);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Generation;

    const LATER_US: Micros = 1_000;

    fn reads(offsets: impl Iterator<Item = Offset>) -> WaitingReads {
        let mut waiting = WaitingReads::default();
        for (serial, offset) in (1..).zip(offsets) {
            let client = ClientRef {
                connection: serial % 7,
                channel: 1,
            };
            waiting.push(WaitingRead {
                reader: Reader {
                    client,
                    request: serial as u32,
                    is_subscription: false,
                    generation: Generation::default(),
                    serial,
                },
                max_bytes: 1,
                max_entries: 1,
                offset,
                deadline_us: LATER_US + serial,
            });
        }
        waiting
    }

    fn due(waiting: &mut WaitingReads, readable: Offset, end: Option<Offset>, now_us: Micros) -> Vec<Offset> {
        std::iter::from_fn(|| waiting.take_due(readable, end, now_us).map(|read| read.offset)).collect()
    }

    #[test]
    fn a_commit_looks_at_the_reads_that_it_makes_readable_and_no_others() {
        let mut waiting = reads((0..4_096).rev());
        for readable in 1..=100 {
            waiting.looked_at = 0;
            assert_eq!(due(&mut waiting, readable, None, 0), [readable - 1]);
            assert_eq!(waiting.looked_at, 2, "the one, and that there is no other");
        }
        assert_eq!(waiting.len(), 3_996);
        waiting.looked_at = 0;
        assert!(due(&mut waiting, 100, None, LATER_US).is_empty());
        assert_eq!(waiting.looked_at, 1);
    }

    #[test]
    fn reads_end_at_their_times_and_behind_the_end_of_a_heads_log() {
        let mut waiting = reads([10, 30, 20, 40].into_iter());
        assert_eq!(waiting.next_deadline(), Some(LATER_US + 1));
        assert_eq!(due(&mut waiting, 0, None, LATER_US + 2), [10, 30]);
        assert_eq!(due(&mut waiting, 0, Some(30), 0), [40]);
        assert!(due(&mut waiting, 0, Some(20), 0).is_empty());
        assert_eq!((waiting.len(), waiting.next_deadline()), (1, Some(LATER_US + 3)));
    }

    #[test]
    fn reads_of_a_channel_are_counted_and_taken_together() {
        let mut waiting = reads(0..14);
        let of = |connection| ClientRef {
            connection,
            channel: 1,
        };
        assert_eq!(waiting.count_of(of(3)), 2);
        let taken = waiting.take_where(|reader| reader.client == of(3));
        assert_eq!(taken.iter().map(|read| read.offset).collect::<Vec<_>>(), [2, 9]);
        assert_eq!((waiting.count_of(of(3)), waiting.len()), (0, 12));
    }
}
