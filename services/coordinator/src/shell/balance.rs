//! The last rounds of balancing, for operators: rates of partitions, servers that lack room, and moves of replicas.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use quorate_coordinator_core::command::{Cause, RateChange};
use quorate_placement::Amounts;
use quorate_types::cost::ResourceVector;
use quorate_types::space::Space;
use quorate_types::{GroupId, ServerId};
use quorate_weights::Pressure;
use serde::{Serialize, Serializer};

use super::task::unix_ms;

/// Changes of rates that are shown: on a fleet whose load moves, those of the last minutes.
const CHANGES_MAX: usize = 100;

/// The state of balancing after the last round.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BalanceView {
    /// Rounds since this process began.
    pub rounds: u64,
    /// The last round's end.
    pub ended_unix_ms: Option<u64>,
    /// Requests/s that partitions want whose heads had said so. Their number is shown.
    #[serde(rename = "partitions", serialize_with = "number")]
    pub wanted_per_s: Arc<HashMap<GroupId, u64>>,
    /// Servers that lacked room in the last round.
    pub pressures: Vec<PressureView>,
    /// The newest first.
    pub rate_changes: VecDeque<RateChangeView>,
}

/// A server that lacks room. A replica leaves it where that lasts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PressureView {
    pub server_id: ServerId,
    pub cause: Cause,
    /// The partition that wants more than the server has.
    pub partition: Option<GroupId>,
    pub lacking: ResourceVector,
}

/// A group whose partitions got other rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateChangeView {
    pub at_unix_ms: u64,
    pub group_id: GroupId,
    /// Rates of another group changed with them, as servers were full.
    pub is_swapped: bool,
    /// Requests/s, by partition.
    pub rates: Vec<u64>,
}

impl BalanceView {
    pub fn end_round(&mut self, wanted_per_s: HashMap<GroupId, u64>, pressures: &[Pressure]) {
        self.rounds += 1;
        self.ended_unix_ms = Some(unix_ms());
        self.wanted_per_s = Arc::new(wanted_per_s);
        self.pressures = pressures.iter().map(PressureView::of).collect();
    }

    pub fn note(&mut self, change: RateChange, is_swapped: bool) {
        self.rate_changes.truncate(CHANGES_MAX - 1);
        self.rate_changes.push_front(RateChangeView {
            at_unix_ms: unix_ms(),
            group_id: change.group_id,
            is_swapped,
            rates: change.rates,
        });
    }
}

fn number<S: Serializer>(
    wanted_per_s: &Arc<HashMap<GroupId, u64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(wanted_per_s.len() as u64)
}

impl PressureView {
    fn of(pressure: &Pressure) -> Self {
        Self {
            server_id: pressure.server,
            cause: Cause::of(pressure.wanting.is_some()),
            partition: pressure.wanting.map(|(partition, _)| partition),
            lacking: Amounts::new(pressure.lacking, Space::default()).to_resources(),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_newest_changes_are_kept_and_each_pressure_has_its_reason() {
        let mut view = BalanceView::default();
        let change = |number: u64| RateChange {
            group_id: GroupId(Uuid::from_u128(1)),
            revision: 1,
            rates: vec![number, 1],
        };
        for number in 0..CHANGES_MAX as u64 + 3 {
            view.note(change(number), number % 2 == 0);
        }
        assert_eq!(view.rate_changes.len(), CHANGES_MAX);
        let newest = &view.rate_changes[0];
        assert_eq!(
            (&newest.rates[..], newest.is_swapped),
            (&[CHANGES_MAX as u64 + 2, 1][..], true)
        );
        let partition = GroupId(Uuid::from_u128(2));
        let pressure = |wanting| Pressure {
            server: ServerId(3),
            lacking: [2_000_000_000, 0, 0],
            wanting,
        };
        view.end_round(
            [(partition, 70)].into(),
            &[pressure(Some((partition, [1; 3]))), pressure(None)],
        );
        assert_eq!(
            (view.rounds, serde_json::json!(view)["partitions"].as_u64()),
            (1, Some(1))
        );
        let causes = view.pressures.iter().map(|one| (one.cause, one.partition));
        assert!(causes.eq([(Cause::Demand, Some(partition)), (Cause::Capacity, None)]));
        assert!(view.pressures[0].lacking.cpu > 0.0);
    }
}
