//! Parts of a server that hang while its main thread goes on: the shard's thread, and the syncs of its disk.

use quorate_group::{HangWatch, Mark};
use quorate_types::Micros;

use super::Scheduled;

/// Syncs that took longer are remembered as hangs.
const LONG_US: Micros = 100_000;

/// A tick comes within this, by a clock that runs slower by a twentieth.
const UNSEEN_US: Micros = 53_000;

#[derive(Debug, Default)]
pub struct Hang {
    /// The shard's thread does nothing until then, and no sync returns until then.
    pub thread_until: Micros,
    pub sync_until: Micros,
    /// Events for the shard that came meanwhile.
    pub waiting: Vec<Scheduled>,
    /// As the main thread of a server keeps it.
    pub watch: HangWatch,
    ticks: u64,
    syncs: u64,
    /// The thread's last hang, and the sync under way: from when to when.
    thread: Option<(Micros, Micros)>,
    syncing: Option<(Micros, Micros)>,
    /// Earlier hangs, and long syncs, those of earlier processes included.
    truth: Vec<(Micros, Micros)>,
}

impl Hang {
    /// The hangs that the next process begins with. The coordinator may still act on the last one's word.
    pub fn after_crash(&self, now: Micros) -> Self {
        let truth = self.all(now).filter(|(from, until)| until - from >= LONG_US);
        Self {
            truth: truth.collect(),
            ..Self::default()
        }
    }

    pub fn tick(&mut self) {
        self.ticks += 1;
    }

    pub fn hang_thread(&mut self, now: Micros, until: Micros) {
        let lasting = self.thread.filter(|(_, until)| *until > now);
        if lasting.is_none() {
            self.truth.extend(self.thread.take());
        }
        self.thread_until = self.thread_until.max(until);
        self.thread = Some((lasting.map_or(now, |(from, _)| from), self.thread_until));
    }

    /// A sync begins that would return at this time; when it does.
    pub fn begin_sync(&mut self, now: Micros, at: Micros) -> Micros {
        self.syncs += 1;
        let at = at.max(self.sync_until);
        self.syncing = Some((now, at));
        at
    }

    /// The time to which the end of a sync is put off, if no sync returns now.
    pub fn put_off(&mut self, now: Micros) -> Option<Micros> {
        let until = Some(self.sync_until).filter(|until| *until > now)?;
        let (from, _) = self.syncing?;
        self.syncing = Some((from, until));
        Some(until)
    }

    pub fn end_sync(&mut self, now: Micros) {
        if let Some((from, until)) = self.syncing.take()
            && until.min(now) - from >= LONG_US
        {
            self.truth.push((from, until.min(now)));
        }
    }

    pub fn marks(&self) -> [Mark; 2] {
        [Some(self.ticks), self.syncing.map(|_| self.syncs)]
    }

    /// All hangs by now, those that last with their end so far.
    fn all(&self, now: Micros) -> impl Iterator<Item = (Micros, Micros)> + '_ {
        let all = self.truth.iter().copied().chain(self.thread).chain(self.syncing);
        all.map(move |(from, until)| (from, until.min(now)))
    }

    /// How long the thread has hung by now.
    pub fn thread_hung_us(&self, now: Micros) -> Micros {
        let lasting = self.thread.filter(|(_, until)| *until > now);
        lasting.map_or(0, |(from, _)| now - from)
    }

    /// How long the longest hang that lasts has lasted.
    pub fn lasted_us(&self, now: Micros) -> Micros {
        let lasting = self.all(now).filter(|(_, until)| *until >= now);
        lasting.map(|(from, until)| until - from).max().unwrap_or(0)
    }

    /// Whether a hang of at least this length has been there since a time. A part that went on for less than a tick showed
    /// nobody that it did: hangs before and behind are one.
    pub fn has_hung(&self, for_us: Micros, since: Micros, now: Micros) -> bool {
        let mut all: Vec<_> = self.all(now).collect();
        all.sort_unstable();
        let mut joined: Option<(Micros, Micros)> = None;
        all.into_iter().any(|(from, until)| {
            let (begun, ended) = joined
                .filter(|(_, ended)| from <= ended + UNSEEN_US)
                .unwrap_or((from, until));
            let ended = ended.max(until);
            joined = Some((begun, ended));
            ended >= since && ended - begun >= for_us
        })
    }

    /// All hangs end.
    pub fn end(&mut self, now: Micros) {
        self.thread_until = self.thread_until.min(now);
        self.sync_until = self.sync_until.min(now);
        if let Some((_, until)) = &mut self.thread {
            *until = (*until).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangs_with_less_than_a_tick_between_them_are_one() {
        let mut hang = Hang::default();
        hang.hang_thread(0, 300_000);
        hang.hang_thread(340_000, 700_000);
        assert!(hang.has_hung(700_000, 0, 800_000));
        hang.hang_thread(800_000, 1_200_000);
        assert!(!hang.has_hung(701_000, 0, 1_200_000), "it ticked between");
        assert!(hang.has_hung(400_000, 1_000_000, 1_200_000));
        assert!(!hang.has_hung(401_000, 1_000_000, 1_200_000), "an earlier one");
    }
}
