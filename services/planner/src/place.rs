//! `quorate-planner place`.

use std::time::Duration;

use quorate_placement::{
    Amounts, Applicant, Choice, Fleet, NotPlaced, Profile, Search, largest_rate_that_fits,
    largest_sla_that_fits, place_batch, place_batch_searching, place_one, replace, scarce_for,
};
use quorate_types::ServerId;
use quorate_types::cost::RESOURCES;

use crate::answer::{Left, PlacedApplicant, PlacementAnswer, RefusedApplicant, Replaced};
use crate::checked::{Candidate, Checked, server_id};
use crate::flags::Placing;
use crate::time::Stopwatch;
use crate::units::capacity;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    OnLine,
    Batch,
    /// A batch that is improved this many times.
    Searching(u32),
}

pub fn place(checked: &Checked, algorithm: Placing, how: How) -> PlacementAnswer {
    let choice = match algorithm {
        Placing::Filo => Choice::LeastLoaded,
        Placing::Shape => Choice::Shape,
    };
    let mut fleet = fleet(checked).choosing(choice);
    let name = |id: ServerId| checked.servers[id.0 as usize - 1].id.clone();
    let began = Stopwatch::start();
    let replaced = replace(&mut fleet, checked.failed.clone());
    let mut elapsed = began.elapsed();
    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    let mut outcome =
        |demand: &Candidate, fleet: &mut Fleet, outcome: Result<Vec<ServerId>, NotPlaced>| match outcome {
            Ok(servers) => placed.push(PlacedApplicant {
                id: demand.id.clone(),
                servers: servers.into_iter().map(name).collect(),
            }),
            Err(not_placed) => refused.push(refusal(demand, &checked.profile, fleet, &not_placed)),
        };
    if how == How::OnLine {
        for demand in &checked.applicants {
            let (took, one) = timed(|| place_one(&mut fleet, &demand.replicas));
            elapsed += took;
            outcome(demand, &mut fleet, one);
        }
    } else {
        let applicant = |(key, demand): (usize, &Candidate)| Applicant {
            key,
            replicas: demand.replicas.clone(),
        };
        let batch = checked.applicants.iter().enumerate().map(applicant).collect();
        let (took, all) = timed(|| match how {
            How::Searching(rounds) => {
                let search = Search {
                    rounds,
                    ..Search::default()
                };
                place_batch_searching(&mut fleet, batch, search)
            }
            _ => place_batch(&mut fleet, batch),
        });
        elapsed += took;
        for (key, one) in all {
            outcome(&checked.applicants[key], &mut fleet, one);
        }
    }
    let replicas = checked
        .applicants
        .iter()
        .map(|demand| demand.replicas.len() as u64)
        .sum::<u64>();
    PlacementAnswer {
        online: how == How::OnLine,
        replaced: replaced
            .into_iter()
            .map(|(id, server)| Replaced {
                id,
                server: server.map(name),
            })
            .collect(),
        placed,
        refused,
        servers: left(checked, &fleet),
        allocated_ratio: allocated_ratio(checked, &fleet),
        replicas,
        elapsed_us: elapsed.as_secs_f64() * 1e6,
        us_per_replica: elapsed.as_secs_f64() * 1e6 / replicas.max(1) as f64,
    }
}

/// The servers, charged with their tenants' reservations.
fn fleet(checked: &Checked) -> Fleet {
    let mut fleet = Fleet::with_headroom(checked.headroom_permille);
    for (s, server) in checked.servers.iter().enumerate() {
        let domain = server.failure_domain.clone();
        fleet.set_server(
            server_id(s),
            capacity(&server.capacity, server.room()),
            domain,
            server.auxiliary,
            true,
        );
    }
    for tenant in &checked.tenants {
        for (replica, reserved) in tenant.replicas.iter().zip(&tenant.reserved) {
            let reserved = Amounts::of_rates(reserved.map(|milli| milli.div_ceil(1_000)));
            fleet.charge(server_id(replica.server), reserved);
        }
    }
    fleet
}

fn refusal(
    demand: &Candidate,
    profile: &Profile,
    fleet: &mut Fleet,
    not_placed: &NotPlaced,
) -> RefusedApplicant {
    let limit_per_s = demand.sla_per_s - 1;
    let largest_sla_per_s = match &demand.sla {
        Some(sla) => largest_sla_that_fits(fleet, profile, sla, limit_per_s).map(|sla| sla.rate_per_s),
        None => largest_rate_that_fits(fleet, limit_per_s, |rate| demand.part_at(rate)),
    };
    let scarce = scarce_for(fleet, not_placed.demand, &not_placed.elected);
    let scarce = serde_json::to_value(scarce).expect("a name");
    RefusedApplicant {
        id: demand.id.clone(),
        replica: not_placed.replica,
        scarce_resource: scarce.as_str().expect("a name").to_string(),
        largest_sla_per_s,
    }
}

fn left(checked: &Checked, fleet: &Fleet) -> Vec<Left> {
    let servers = checked.servers.iter().enumerate();
    servers
        .map(|(s, server)| Left {
            id: server.id.clone(),
            left: fleet.free(server_id(s)).to_resources().to_array(),
        })
        .collect()
}

fn allocated_ratio(checked: &Checked, fleet: &Fleet) -> [f64; RESOURCES.len()] {
    let general = || {
        let servers = checked.servers.iter().enumerate();
        servers
            .filter(|(_, server)| !server.auxiliary)
            .map(|(s, _)| server_id(s))
    };
    let all = Amounts::sum(general().map(|id| fleet.promisable(id)));
    let taken = Amounts::sum(general().map(|id| fleet.allocated(id)));
    std::array::from_fn(|i| taken.0[i] as f64 / all.0[i].max(1) as f64)
}

fn timed<T>(act: impl FnOnce() -> T) -> (Duration, T) {
    let began = Stopwatch::start();
    let done = act();
    (began.elapsed(), done)
}
