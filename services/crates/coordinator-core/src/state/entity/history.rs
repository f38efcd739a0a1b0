//! The history of the log: its length, and the starts of the coordinator on it.
//!
//! A log that was restored from a copy shares the beginning with the log that servers know. From the next start on it is
//! another one. A server's place tells the two apart.

use quorate_types::limits::RUNS_KEPT_MAX;
use quorate_types::{Place, RunId};
use serde::{Deserialize, Serialize};

/// Snapshots of releases without places begin at 0: positions count from there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct History {
    /// Commands since the beginning.
    position: u64,
    /// The starts, in order; the last ones of more.
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    id: RunId,
    /// The position of the command that began it.
    first: u64,
}

impl History {
    /// A command takes the next position.
    pub fn advance(&mut self) {
        self.position += 1;
    }

    /// The present command begins a run.
    pub fn begin_run(&mut self, id: RunId) {
        let first = self.position;
        self.runs.push(Run { id, first });
        if self.runs.len() > RUNS_KEPT_MAX {
            self.runs.remove(0);
        }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether nothing was logged before the present run, as far as the history goes back.
    pub fn is_first_run(&self) -> bool {
        self.runs.first().is_none_or(|run| run.first == 1) && self.runs.len() <= 1
    }

    /// The end of the log; none before the first run.
    pub fn place(&self) -> Option<Place> {
        let run = self.runs.last()?.id;
        let position = self.position;
        Some(Place { run, position })
    }

    /// Whether the place is one of this log.
    ///
    /// Runs that are forgotten ended before the first one that is kept. A copy of this log ends behind that one, and a log
    /// that went on from the copy has only later positions of its own. So earlier places are taken for forgotten runs'.
    pub fn contains(&self, place: Place) -> bool {
        let Some(number) = self.runs.iter().position(|run| run.id == place.run) else {
            let is_full = self.runs.len() >= RUNS_KEPT_MAX;
            return is_full && place.position < self.runs[0].first;
        };
        let next = self
            .runs
            .get(number + 1)
            .map_or(self.position + 1, |run| run.first);
        (self.runs[number].first..next).contains(&place.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(runs: &[(u64, u64)]) -> History {
        let mut history = History::default();
        for (id, commands) in runs {
            history.advance();
            history.begin_run(RunId(*id));
            (0..*commands).for_each(|_| history.advance());
        }
        history
    }

    fn at(run: u64, position: u64) -> Place {
        let run = RunId(run);
        Place { run, position }
    }

    #[test]
    fn a_copy_does_not_contain_what_came_after_it() {
        let mut history = history(&[(11, 3), (12, 4)]);
        let copy = history.clone();
        history.advance();
        let later = history.place().unwrap();
        assert_eq!((copy.place(), later), (Some(at(12, 9)), at(12, 10)));
        let mut restored = copy.clone();
        restored.advance();
        restored.begin_run(RunId(13));
        (0..5).for_each(|_| restored.advance());
        assert!(history.contains(later) && !restored.contains(later));
        assert!(!copy.contains(later), "also before a run of its own");
        for shared in [at(11, 1), at(11, 4), at(12, 5), at(12, 9)] {
            assert!(restored.contains(shared), "{shared:?}");
        }
        assert!(!restored.contains(at(11, 5)) && !restored.contains(at(14, 3)));
    }

    #[test]
    fn forgotten_runs_count_as_known_and_later_unknown_ones_do_not() {
        let runs: Vec<(u64, u64)> = (0..RUNS_KEPT_MAX as u64 + 10).map(|id| (id, 1)).collect();
        let history = history(&runs);
        assert_eq!(history.runs.len(), RUNS_KEPT_MAX);
        assert!(history.contains(at(3, 7)), "of a run that is forgotten");
        let end = history.position();
        assert!(!history.contains(at(9_999, end)) && !history.contains(at(9_999, end + 1)));
    }
}
