//! Admission of an SLA with an answer for people: demand vectors, or what is scarce and what would fit.

use quorate_types::ServerId;
use quorate_types::sla::{Quote, Refusal, RefusalReason, ReplicaDemand, ScarceResource, Sla};

use crate::admission::{NotPlaced, place_one};
use crate::amounts::Amounts;
use crate::fleet::Fleet;
use crate::profile::{Profile, RoleDemands, role_at};

/// Admits: the servers of the chain, head first, with what they are charged taken from the fleet; or
/// why not, with nothing taken. The SLA must be valid (`Sla::validate`).
pub fn admit(fleet: &mut Fleet, profile: &Profile, sla: &Sla) -> Result<Vec<ServerId>, Refusal> {
    enough_servers(fleet, sla)?;
    let peak_per_s = profile.shard_peak_per_s(sla);
    if sla.rate_per_s > peak_per_s {
        let message = format!(
            "One group is served by one shard of a server, which carries at most {peak_per_s} appends/s of {} bytes; \
             {} were asked for. Use several groups, or larger requests.",
            sla.request_size_bytes, sla.rate_per_s
        );
        let fits = largest_that_fits(fleet, profile, sla, peak_per_s);
        return Err(refusal(
            RefusalReason::BeyondShardPeak,
            ScarceResource::Shard,
            message,
            fits,
        ));
    }
    place_one(fleet, profile.demands(sla).all())
        .map_err(|not_placed| explain(fleet, profile, sla, &not_placed))
}

/// The same for a group that was promised long ago, under whatever profile: by its own demand vectors.
pub fn place_again(
    fleet: &mut Fleet,
    profile: &Profile,
    sla: &Sla,
    demands: &RoleDemands,
) -> Result<Vec<ServerId>, Refusal> {
    enough_servers(fleet, sla)?;
    place_one(fleet, demands.all()).map_err(|not_placed| explain(fleet, profile, sla, &not_placed))
}

/// What keeps a replica with `demand` from every server beside `members`: the resource that most of them lack, or
/// that there is no other server.
pub fn scarce_for(fleet: &Fleet, demand: Amounts, members: &[ServerId]) -> ScarceResource {
    let mut others = fleet.free_of_others(members).peekable();
    if others.peek().is_none() {
        return ScarceResource::Servers;
    }
    ScarceResource::OF_SERVER[scarcest(demand, others).0]
}

fn enough_servers(fleet: &Fleet, sla: &Sla) -> Result<(), Refusal> {
    let degree = usize::from(sla.replication_degree);
    if fleet.admission_servers() < degree {
        let message = format!(
            "{degree} replicas need {degree} servers, and {} take replicas in region {} now.",
            fleet.admission_servers(),
            sla.region
        );
        return Err(refusal(
            RefusalReason::TooFewServers,
            ScarceResource::Servers,
            message,
            None,
        ));
    }
    Ok(())
}

/// The same as [`admit`], without keeping the result.
pub fn quote(fleet: &mut Fleet, profile: &Profile, sla: &Sla) -> Quote {
    let demands = profile.demands(sla);
    let total = Amounts::sum(demands.all().iter().copied());
    let (_, dominant) = total.dominant_share(fleet.free_total());
    let refusal = match admit(fleet, profile, sla) {
        Ok(servers) => {
            undo(fleet, demands.all(), &servers);
            None
        }
        Err(refusal) => Some(refusal),
    };
    quote_of(profile, sla, ScarceResource::OF_SERVER[dominant], refusal)
}

/// A quote with this answer.
pub fn quote_of(profile: &Profile, sla: &Sla, dominant: ScarceResource, refusal: Option<Refusal>) -> Quote {
    let demands = profile.demands(sla);
    let degree = usize::from(sla.replication_degree);
    let demand = |(position, amounts): (usize, &Amounts)| ReplicaDemand {
        role: role_at(position, degree),
        demand: amounts.to_resources(),
    };
    Quote {
        admissible: refusal.is_none(),
        demand: demands.all().iter().enumerate().map(demand).collect(),
        total_demand: Amounts::sum(demands.all().iter().copied()).to_resources(),
        dominant_resource: dominant,
        refusal,
        profile_version: profile.version.clone(),
    }
}

fn undo(fleet: &mut Fleet, demands: &[Amounts], servers: &[ServerId]) {
    for (server, demand) in servers.iter().zip(demands) {
        fleet.release(*server, *demand);
    }
}

/// Names the resource that most servers lack for the replica that found no place.
fn explain(fleet: &mut Fleet, profile: &Profile, sla: &Sla, not_placed: &NotPlaced) -> Refusal {
    let (scarce, most_free) = scarcest(not_placed.demand, fleet.free_of_others(&not_placed.elected));
    let needed = not_placed.demand.to_resources().to_array()[scarce];
    let free = most_free.to_resources().to_array()[scarce];
    let role = match role_at(not_placed.replica, usize::from(sla.replication_degree)) {
        quorate_types::Role::Follower => "a follower",
        quorate_types::Role::Tail => "the tail",
        _ => "the head",
    };
    let unit = ["cores", "bytes/s of network", "storage operations/s"][scarce];
    let name = ["CPU", "network", "storage IO"][scarce];
    let kept = match fleet.headroom_permille() {
        0 => String::new(),
        permille => format!(
            ", beside the {} % kept for replicas of servers that fail",
            permille as f64 / 10.0
        ),
    };
    let message = if needed > free {
        let (needed, free) = (rounded(needed), rounded(free));
        format!(
            "No server has enough {name} free for {role}: it needs {needed} {unit}, \
             and the most that one server has left is {free}{kept}."
        )
    } else {
        let needed = rounded(needed);
        format!(
            "No one server has enough of everything free for {role}; \
             most lack {name}, of which it needs {needed} {unit}{kept}."
        )
    };
    let fits = largest_that_fits(fleet, profile, sla, sla.rate_per_s - 1);
    refusal(
        RefusalReason::InsufficientCapacity,
        ScarceResource::OF_SERVER[scarce],
        message,
        fits,
    )
}

/// The resource that most of those lack, and the most that any has of each.
fn scarcest(demand: Amounts, others: impl Iterator<Item = Amounts>) -> (usize, Amounts) {
    let mut lacking = [0usize; 3];
    let mut most_free = Amounts::ZERO;
    for free in others {
        for i in 0..3 {
            lacking[i] += usize::from(demand.0[i] > free.0[i]);
            most_free.0[i] = most_free.0[i].max(free.0[i]);
        }
    }
    let share = |i: usize| demand.0[i] as f64 / most_free.0[i].max(1) as f64;
    let scarce = (0..3)
        .max_by(|a, b| {
            lacking[*a]
                .cmp(&lacking[*b])
                .then(share(*a).total_cmp(&share(*b)))
        })
        .expect("there are three resources");
    (scarce, most_free)
}

fn largest_that_fits(fleet: &mut Fleet, profile: &Profile, sla: &Sla, limit_per_s: u64) -> Option<Sla> {
    let at = |rate_per_s| Sla {
        rate_per_s,
        ..sla.clone()
    };
    let limit_per_s = limit_per_s.min(profile.shard_peak_per_s(sla));
    let demands = |rate_per_s| profile.demands(&at(rate_per_s)).all().to_vec();
    largest_rate_that_fits(fleet, limit_per_s, demands).map(at)
}

/// The largest rate up to `limit_per_s` whose replicas (`demands`, rising with the rate) find places, if any does.
/// Binary search; what it answers was placed, and taken back.
pub fn largest_rate_that_fits(
    fleet: &mut Fleet,
    limit_per_s: u64,
    demands: impl Fn(u64) -> Vec<Amounts>,
) -> Option<u64> {
    let (mut fits, mut above) = (0, limit_per_s.saturating_add(1));
    while above - fits > 1 {
        let rate_per_s = fits + (above - fits) / 2;
        let demands = demands(rate_per_s);
        match place_one(fleet, &demands) {
            Ok(servers) => {
                undo(fleet, &demands, &servers);
                fits = rate_per_s;
            }
            Err(_) => above = rate_per_s,
        }
    }
    (fits > 0).then_some(fits)
}

fn refusal(
    reason: RefusalReason,
    scarce_resource: ScarceResource,
    message: String,
    largest_sla_that_fits: Option<Sla>,
) -> Refusal {
    Refusal {
        reason,
        scarce_resource,
        message,
        largest_sla_that_fits,
    }
}

/// Whole numbers from ten upwards, else three places: for people.
fn rounded(x: f64) -> String {
    if x >= 10.0 {
        format!("{x:.0}")
    } else {
        format!("{x:.3}")
    }
}
