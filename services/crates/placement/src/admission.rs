//! Filo's Algorithm 1 (ATC'16 §4.1): the order of applicants and replicas, and the server of each.

use quorate_types::ServerId;

use crate::amounts::Amounts;
use crate::demand::Demand;
use crate::fleet::{Fleet, Pool};

/// One applicant: its demand profile, one vector per replica in chain order.
#[derive(Debug, Clone)]
pub struct Applicant<K> {
    pub key: K,
    pub replicas: Vec<Amounts>,
}

/// The first replica, heaviest first, for which no server was left; nothing stays charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPlaced {
    /// Its position in the chain.
    pub replica: usize,
    pub demand: Amounts,
    /// Servers of the heavier replicas, before all was undone.
    pub elected: Vec<ServerId>,
}

/// Places one applicant, on-line. The servers in chain order; all of them or none are charged (Cons2).
pub fn place_one<D: Into<Demand> + Copy>(
    fleet: &mut Fleet,
    replicas: &[D],
) -> Result<Vec<ServerId>, NotPlaced> {
    let total = fleet.free_total();
    place(fleet, replicas, total)
}

/// Places a batch, off-line, the applicant with the highest dominant share first (PO_a). One outcome for each, in the
/// order in which they were considered. Shares are relative to the resources that are free at the beginning.
pub fn place_batch<K>(
    fleet: &mut Fleet,
    mut applicants: Vec<Applicant<K>>,
) -> Vec<(K, Result<Vec<ServerId>, NotPlaced>)> {
    let total = fleet.free_total();
    let share = |applicant: &Applicant<K>| {
        Amounts::sum(applicant.replicas.iter().copied())
            .dominant_share(total)
            .0
    };
    applicants.sort_by(|a, b| share(b).total_cmp(&share(a)));
    applicants
        .into_iter()
        .map(|applicant| {
            let outcome = place(fleet, &applicant.replicas, total);
            (applicant.key, outcome)
        })
        .collect()
}

/// A failed replica: its demand, and the servers that its group still has.
#[derive(Debug, Clone)]
pub struct Replacement<K> {
    pub key: K,
    pub demand: Amounts,
    pub members: Vec<ServerId>,
}

/// Elects servers for failed replicas, the highest dominant share first. Call before any applicant is placed (Filo §4.1
/// "Failures"). Correct replicas stay where they are.
pub fn replace<K>(fleet: &mut Fleet, mut failed: Vec<Replacement<K>>) -> Vec<(K, Option<ServerId>)> {
    heaviest_first(fleet, &mut failed, |one| one.demand);
    failed
        .into_iter()
        .map(|one| {
            let elected = fleet.elect(one.demand, &one.members, Pool::Replacement);
            (one.key, elected)
        })
        .collect()
}

/// Sorts failed replicas into the order of their replacement: by dominant share of the promisable resources of the
/// fleet's available servers. Equal ones keep their order.
pub fn heaviest_first<T>(fleet: &Fleet, failed: &mut [T], demand: impl Fn(&T) -> Amounts) {
    let total = fleet.promisable_total();
    let share = |one: &T| demand(one).dominant_share(total).0;
    failed.sort_by(|a, b| share(b).total_cmp(&share(a)));
}

/// Places the replicas of one applicant, the highest share of `total` first (PO_b).
pub(crate) fn place<D: Into<Demand> + Copy>(
    fleet: &mut Fleet,
    replicas: &[D],
    total: Amounts,
) -> Result<Vec<ServerId>, NotPlaced> {
    let replicas: Vec<Demand> = replicas.iter().map(|one| (*one).into()).collect();
    let mut order: Vec<usize> = (0..replicas.len()).collect();
    let share = |position: &usize| replicas[*position].whole().dominant_share(total).0;
    order.sort_by(|a, b| share(b).total_cmp(&share(a))); // PO_b; equal ones in chain order
    let mut elected: Vec<ServerId> = Vec::with_capacity(replicas.len());
    for (placed, position) in order.iter().copied().enumerate() {
        match fleet.elect(replicas[position], &elected, Pool::Admission) {
            Some(server) => elected.push(server),
            None => {
                for (server, position) in elected.iter().zip(&order[..placed]) {
                    fleet.release(*server, replicas[*position]);
                }
                return Err(NotPlaced {
                    replica: position,
                    demand: replicas[position].whole(),
                    elected,
                });
            }
        }
    }
    let mut chain: Vec<(usize, ServerId)> = order.into_iter().zip(elected).collect();
    chain.sort_unstable_by_key(|(position, _)| *position);
    Ok(chain.into_iter().map(|(_, server)| server).collect())
}
