//! A group is reset only after the coordinator found it lost: that alone excuses the loss of acked entries.

use quorate_coordinator_core::state::{CoordinatorState, Group, GroupStatus};
use quorate_types::GroupId;
use quorate_types::config::Beginning;

#[derive(Debug)]
pub struct Before {
    group_id: GroupId,
    status: GroupStatus,
    beginning: Option<Beginning>,
}

pub fn before(state: &CoordinatorState) -> Vec<Before> {
    let of = |group: &Group| Before {
        group_id: group.group_id,
        status: group.status,
        beginning: group.beginning,
    };
    state.groups.values().map(of).collect()
}

pub fn check(state: &CoordinatorState, before: &[Before]) {
    for was in before {
        let Some(group) = state.groups.get(&was.group_id) else {
            continue;
        };
        assert!(
            group.beginning == was.beginning || was.status == GroupStatus::Lost,
            "a group that was {} is reset",
            was.status
        );
    }
}
