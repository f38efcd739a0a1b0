//! Questions to groups between their steps: for ticks, timers, reports and samples. An assertion that does not hold in an
//! answer stops that group, as in a step.

use quorate_group::Turn;
use quorate_types::GroupId;

use super::Shard;
use super::hosted::Hosted;
use super::quarantine::guard;

impl Shard {
    /// `None`: the group is not here, or it is in quarantine now.
    pub(super) fn ask<T>(
        &mut self,
        group_id: GroupId,
        question: impl FnOnce(&mut Hosted, &Turn) -> T,
    ) -> Option<T> {
        let hosted = self.groups.get_mut(&group_id)?;
        match guard(|| question(hosted, &self.turn)) {
            Ok(answer) => Some(answer),
            Err(reason) => {
                self.quarantine(group_id, &reason);
                None
            }
        }
    }

    /// Answers of all groups that have one.
    pub(super) fn ask_all<T>(&mut self, mut question: impl FnMut(&mut Hosted, &Turn) -> Option<T>) -> Vec<T> {
        let (mut answers, mut stopped) = (Vec::new(), Vec::new());
        for (group_id, hosted) in &mut self.groups {
            match guard(|| question(hosted, &self.turn)) {
                Ok(answer) => answers.extend(answer),
                Err(reason) => stopped.push((*group_id, reason)),
            }
        }
        for (group_id, reason) in stopped {
            self.quarantine(group_id, &reason);
        }
        answers
    }
}
