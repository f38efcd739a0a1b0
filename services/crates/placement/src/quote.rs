//! Admission of an SLA with an answer for people: demand vectors, or the scarce resource and an SLA that would fit.

use quorate_types::limits::{GROUPS_PER_SERVER_MAX, RETENTION_BYTES_MIN};
use quorate_types::sla::{Quote, Refusal, RefusalReason, ReplicaDemand, ScarceResource, Sla, TotalDemand};
use quorate_types::{Durability, ServerId};

use crate::admission::{NotPlaced, place_one};
use crate::amounts::{Amounts, RESOURCES};
use crate::demand::{Demand, SharedGuarantee, demands_with};
use crate::fleet::Fleet;
use crate::profile::{Profile, RoleDemands, role_at};

/// An SLA, which must be valid (`Sla::validate`), with the shared guarantee of the project that asks for it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub sla: &'a Sla,
    pub shared: Option<SharedGuarantee>,
}

impl<'a> From<&'a Sla> for Asked<'a> {
    fn from(sla: &'a Sla) -> Self {
        Self { sla, shared: None }
    }
}

impl Asked<'_> {
    /// The demands of the replicas by this profile, head first.
    fn demands(&self, profile: &Profile) -> Vec<Demand> {
        let (own, budget) = (profile.demands(self.sla), profile.budget(self.sla));
        demands_with(&own, &budget, self.sla, self.shared)
    }

    /// Another SLA for the same project.
    fn but<'b>(&self, sla: &'b Sla) -> Asked<'b> {
        Asked {
            sla,
            shared: self.shared,
        }
    }
}

/// Admits a group. The servers of the chain, head first, which are charged; or the refusal, with nothing charged.
pub fn admit<'a>(
    fleet: &mut Fleet,
    profile: &Profile,
    asked: impl Into<Asked<'a>>,
) -> Result<Vec<ServerId>, Refusal> {
    let asked = asked.into();
    let sla = asked.sla;
    enough_servers(fleet, sla)?;
    if let Some(peak_per_s) = beyond_peak(profile, sla) {
        let fits = largest_like(sla, peak_per_s, false, |sla| {
            beyond_peak(profile, sla).is_none() && placed_on_trial(fleet, &asked.but(sla).demands(profile))
        });
        return Err(beyond_shard(sla, peak_per_s, fits));
    }
    place_one(fleet, &asked.demands(profile))
        .map_err(|not_placed| explain(fleet, profile, asked, &not_placed))
}

/// The same for a group that was admitted before, by its own demand vectors: its profile may have been another.
pub fn place_again(
    fleet: &mut Fleet,
    profile: &Profile,
    asked: Asked<'_>,
    demands: &[Demand],
) -> Result<Vec<ServerId>, Refusal> {
    enough_servers(fleet, asked.sla)?;
    place_one(fleet, demands).map_err(|not_placed| explain(fleet, profile, asked, &not_placed))
}

/// Whether a group with the demands `now` can have this SLA where it is. `seats` are its servers, each with a position in
/// the chain; the group's charges are released in `fleet`. A smaller SLA always fits, also beyond the promisable
/// capacity: a follower that became head was charged as one at once.
pub fn in_place(
    fleet: &Fleet,
    profile: &Profile,
    asked: Asked<'_>,
    now: &RoleDemands,
    seats: &[(ServerId, usize)],
) -> Result<(), Refusal> {
    let sla = asked.sla;
    let lacks = |sla: &Sla| {
        let demands = asked.but(sla).demands(profile);
        let mut seats = seats.iter().copied();
        seats.find_map(|(server, position)| {
            let free = fleet.free_for_applicants(server);
            let needed = fleet.needed_on(server, &demands[position]);
            let fits = grows_within(needed, free, now.at(position));
            (!fits).then_some((position, needed, free))
        })
    };
    let beyond = beyond_peak(profile, sla);
    let lacking = lacks(sla);
    if beyond.is_none() && lacking.is_none() {
        return Ok(());
    }
    let limit_per_s = sla.rate_per_s.min(profile.shard_peak_per_s(sla));
    let lack = |needed: Amounts, free: Amounts, i: usize| needed.0[i] as f64 / free.0[i].max(1) as f64;
    let scarce = lacking.map(|(_, needed, free)| {
        (0..RESOURCES)
            .max_by(|a, b| lack(needed, free, *a).total_cmp(&lack(needed, free, *b)))
            .expect("there are resources")
    });
    let fits = largest_like(sla, limit_per_s, scarce.is_some_and(is_space), |sla| {
        beyond_peak(profile, sla).is_none() && lacks(sla).is_none()
    });
    if let Some(peak_per_s) = beyond {
        return Err(beyond_shard(sla, peak_per_s, fits));
    }
    let (position, needed, free) = lacking.expect("either the peak or a server refuses");
    let scarce = scarce.expect("a server refuses");
    let message = format!(
        "The server of {} lacks {} for it: it needs {}, and {} is free.{}",
        called(position, sla),
        ScarceResource::OF_SERVER[scarce].in_words(),
        spoken(needed, scarce),
        spoken(free, scarce),
        remedy(scarce, sla),
    );
    Err(refusal(
        RefusalReason::InsufficientCapacity,
        ScarceResource::OF_SERVER[scarce],
        message,
        fits,
    ))
}

/// Rates fit what is free, or are no more than now; and so does space. A shorter retention is granted beside a rate
/// that is beyond the promisable capacity, and the other way about.
fn grows_within(needed: Amounts, free: Amounts, now: Amounts) -> bool {
    let fits = |part: fn(Amounts) -> Amounts| part(needed).fits(free) || part(needed).fits(now);
    fits(|amounts| Amounts::of_rates(amounts.rates()))
        && fits(|amounts| Amounts::ZERO.with_space(amounts.space()))
}

/// The peak rate of one shard, where the SLA asks for more.
fn beyond_peak(profile: &Profile, sla: &Sla) -> Option<u64> {
    let peak_per_s = profile.shard_peak_per_s(sla);
    (sla.rate_per_s > peak_per_s).then_some(peak_per_s)
}

fn beyond_shard(sla: &Sla, peak_per_s: u64, fits: Option<Sla>) -> Refusal {
    let beside = match sla.read_rate_per_s {
        0 => String::new(),
        reads_per_s => format!(" beside {reads_per_s} reads/s"),
    };
    let message = format!(
        "One group is served by one shard of a server, which carries at most {peak_per_s} appends/s of {} bytes{beside}. \
         The SLA asks for {}: use more partitions, or larger requests.",
        sla.request_size_bytes, sla.rate_per_s
    );
    refusal(
        RefusalReason::BeyondShardPeak,
        ScarceResource::Shard,
        message,
        fits,
    )
}

const UNITS: [&str; 3] = ["cores", "bytes/s of network", "storage operations/s"];

/// Memory or disk.
fn is_space(resource: usize) -> bool {
    resource >= UNITS.len()
}

/// One amount with its unit, for people.
fn spoken(amounts: Amounts, resource: usize) -> String {
    if is_space(resource) {
        return mebibytes(amounts.0[resource]);
    }
    let amount = amounts.to_resources().to_array()[resource];
    format!("{} {}", rounded(amount), UNITS[resource])
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A remedy where space is scarce, in a sentence that follows others; empty for rates.
fn remedy(resource: usize, sla: &Sla) -> String {
    if !is_space(resource) {
        return String::new();
    }
    let also = match sla.durability {
        Durability::Persistent if ScarceResource::OF_SERVER[resource] == ScarceResource::Memory => {
            ", or larger requests"
        }
        Durability::InMemory => ", or a persistent group",
        Durability::Persistent => "",
    };
    let retention = mebibytes(sla.retention_bytes);
    format!(" The retention of {retention} takes most of it: ask for a shorter one{also}.")
}

/// The resource that keeps a replica with `demand` from every server beside `members`: the one that most of them lack.
/// `Servers` when there is no other server.
pub fn scarce_for(fleet: &Fleet, demand: impl Into<Demand>, members: &[ServerId]) -> ScarceResource {
    let demand = demand.into().whole();
    let mut others = fleet.free_of_others(members).peekable();
    if others.peek().is_none() {
        return match fleet.full_servers() {
            0 => ScarceResource::Servers,
            _ => ScarceResource::Groups,
        };
    }
    ScarceResource::OF_SERVER[scarcest(demand, others).0]
}

fn enough_servers(fleet: &Fleet, sla: &Sla) -> Result<(), Refusal> {
    let degree = usize::from(sla.replication_degree);
    let full = fleet.full_servers();
    if fleet.admission_servers() < degree && fleet.admission_servers() + full >= degree {
        let message = format!(
            "Too many groups: {full} servers in region {} host {GROUPS_PER_SERVER_MAX} groups, which is as many as a \
             server may. Join servers, or delete groups.",
            sla.region
        );
        return Err(refusal(
            RefusalReason::TooManyGroups,
            ScarceResource::Groups,
            message,
            None,
        ));
    }
    if fleet.admission_servers() < degree {
        let message = format!(
            "{degree} replicas need {degree} servers, and {} servers take replicas in region {} now.",
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

/// A dry run of [`admit`]: nothing stays charged.
pub fn quote<'a>(fleet: &mut Fleet, profile: &Profile, asked: impl Into<Asked<'a>>) -> Quote {
    let asked = asked.into();
    let sla = asked.sla;
    let dominant = dominant(fleet, profile, sla);
    match admit(fleet, profile, asked) {
        Ok(servers) => {
            undo(fleet, &asked.demands(profile), &servers);
            Quote {
                failure_domains: fleet.failure_domains(&servers),
                ..quote_of(profile, sla, dominant, None)
            }
        }
        Err(refusal) => quote_of(profile, sla, dominant, Some(refusal)),
    }
}

/// The resource of which the SLA would take the largest share of the free amount.
pub fn dominant(fleet: &Fleet, profile: &Profile, sla: &Sla) -> ScarceResource {
    let total = Amounts::sum(profile.demands(sla).all().iter().copied());
    ScarceResource::OF_SERVER[total.dominant_share(fleet.free_total()).1]
}

/// A quote with this answer.
pub fn quote_of(profile: &Profile, sla: &Sla, dominant: ScarceResource, refusal: Option<Refusal>) -> Quote {
    let demands = profile.demands(sla);
    let degree = usize::from(sla.replication_degree);
    let demand = |(position, amounts): (usize, &Amounts)| ReplicaDemand {
        role: role_at(position, degree),
        demand: amounts.to_resources(),
        space: amounts.space(),
    };
    let total = Amounts::sum(demands.all().iter().copied());
    Quote {
        admissible: refusal.is_none(),
        demand: demands.all().iter().enumerate().map(demand).collect(),
        total_demand: TotalDemand {
            demand: total.to_resources(),
            space: total.space(),
        },
        dominant_resource: dominant,
        refusal,
        profile_version: profile.version.clone(),
        commit_p99_us: profile.commit_p99_us(sla),
        failure_domains: 0,
        moves: 0,
        parts: Vec::new(),
    }
}

fn undo<D: Into<Demand> + Copy>(fleet: &mut Fleet, demands: &[D], servers: &[ServerId]) {
    for (server, demand) in servers.iter().zip(demands) {
        fleet.release(*server, *demand);
    }
}

/// Names the resource that most servers lack for the replica that found no place.
fn explain(fleet: &mut Fleet, profile: &Profile, asked: Asked<'_>, not_placed: &NotPlaced) -> Refusal {
    let sla = asked.sla;
    let (scarce, most_free) = scarcest(not_placed.demand, fleet.free_of_others(&not_placed.elected));
    let is_most_too_little = not_placed.demand.0[scarce] > most_free.0[scarce];
    let (needed, free) = (spoken(not_placed.demand, scarce), spoken(most_free, scarce));
    let (role, name) = (
        called(not_placed.replica, sla),
        ScarceResource::OF_SERVER[scarce].in_words(),
    );
    let remedy = remedy(scarce, sla);
    let kept = match fleet.headroom_permille() {
        0 => String::new(),
        permille => format!(
            ", beside the {} % kept for replicas of servers that fail",
            permille as f64 / 10.0
        ),
    };
    let message = if is_most_too_little {
        format!(
            "No server has enough {name} free for {role}: it needs {needed}, \
             and no server has more than {free} free{kept}.{remedy}"
        )
    } else {
        format!(
            "No single server has enough of every resource free for {role}. \
             Most lack {name}, of which it needs {needed}{kept}.{remedy}"
        )
    };
    let limit_per_s = sla.rate_per_s.min(profile.shard_peak_per_s(sla));
    let fits = largest_like(sla, limit_per_s, is_space(scarce), |sla| {
        beyond_peak(profile, sla).is_none() && placed_on_trial(fleet, &asked.but(sla).demands(profile))
    });
    refusal(
        RefusalReason::InsufficientCapacity,
        ScarceResource::OF_SERVER[scarce],
        message,
        fits,
    )
}

fn called(position: usize, sla: &Sla) -> &'static str {
    match role_at(position, usize::from(sla.replication_degree)) {
        quorate_types::Role::Follower => "a follower",
        quorate_types::Role::Tail => "the tail",
        _ => "the head",
    }
}

/// The resource that most of the others lack, and the largest free amount of each resource.
fn scarcest(demand: Amounts, others: impl Iterator<Item = Amounts>) -> (usize, Amounts) {
    let mut lacking = [0usize; RESOURCES];
    let mut most_free = Amounts::ZERO;
    for free in others {
        for i in 0..RESOURCES {
            lacking[i] += usize::from(demand.0[i] > free.0[i]);
            most_free.0[i] = most_free.0[i].max(free.0[i]);
        }
    }
    let share = |i: usize| demand.0[i] as f64 / most_free.0[i].max(1) as f64;
    let scarce = (0..RESOURCES)
        .max_by(|a, b| {
            lacking[*a]
                .cmp(&lacking[*b])
                .then(share(*a).total_cmp(&share(*b)))
        })
        .expect("there are resources");
    (scarce, most_free)
}

/// The SLA with the largest rate that finds places, up to `limit_per_s` and one shard's peak ([`largest_rate_that_fits`]).
pub fn largest_sla_that_fits(
    fleet: &mut Fleet,
    profile: &Profile,
    sla: &Sla,
    limit_per_s: u64,
) -> Option<Sla> {
    let at = |rate_per_s| Sla {
        rate_per_s,
        ..sla.clone()
    };
    let limit_per_s = limit_per_s.min(profile.shard_peak_per_s(sla));
    let demands = |rate_per_s| profile.demands(&at(rate_per_s)).all().to_vec();
    largest_rate_that_fits(fleet, limit_per_s, demands).map(at)
}

/// A rate up to `limit_per_s` whose replicas (`demands`, rising with the rate) find places, if halving finds one. The rate
/// was placed on trial; one more did not fit. Placement is greedy, so a larger rate may fit all the same.
pub fn largest_rate_that_fits(
    fleet: &mut Fleet,
    limit_per_s: u64,
    demands: impl Fn(u64) -> Vec<Amounts>,
) -> Option<u64> {
    largest(limit_per_s, |rate_per_s| {
        placed_on_trial(fleet, &demands(rate_per_s))
    })
}

fn placed_on_trial<D: Into<Demand> + Copy>(fleet: &mut Fleet, demands: &[D]) -> bool {
    let placed = place_one(fleet, demands);
    if let Ok(servers) = &placed {
        undo(fleet, demands, servers);
    }
    placed.is_ok()
}

/// The part of an SLA that is reduced until it fits.
#[derive(Debug, Clone, Copy)]
enum Reduced {
    Reads,
    Rate,
    Retention,
    /// All but the rate to the least, then the rate. The retention is as long, and the reads are as many, as fit beside it.
    All,
}

/// An SLA like this one that fits, where this one does not. The part at fault is reduced first (`is_space`: the
/// retention). Reads are reduced before appends.
fn largest_like(
    sla: &Sla,
    limit_per_s: u64,
    is_space: bool,
    mut fits: impl FnMut(&Sla) -> bool,
) -> Option<Sla> {
    let like = |rate_per_s, read_rate_per_s, retention_bytes| Sla {
        rate_per_s,
        read_rate_per_s,
        retention_bytes,
        ..sla.clone()
    };
    let (rate_per_s, retention_bytes) = (sla.rate_per_s.min(limit_per_s), sla.retention_bytes);
    let (reads_per_s, fewer_reads) = (sla.read_rate_per_s, sla.read_rate_per_s.saturating_sub(1));
    let less_per_s = limit_per_s.min(sla.rate_per_s - 1);
    let mut reduce = |reduced: Reduced| match reduced {
        Reduced::Reads => largest(fewer_reads, |reads| {
            fits(&like(sla.rate_per_s, reads, retention_bytes))
        })
        .map(|reads| like(sla.rate_per_s, reads, retention_bytes)),
        Reduced::Rate => largest(less_per_s, |rate| fits(&like(rate, reads_per_s, retention_bytes)))
            .map(|rate| like(rate, reads_per_s, retention_bytes)),
        Reduced::Retention => largest_retention(retention_bytes, |retention| {
            fits(&like(rate_per_s, reads_per_s, retention))
        })
        .map(|retention| like(rate_per_s, reads_per_s, retention)),
        Reduced::All => {
            let rate = largest(less_per_s, |rate| fits(&like(rate, 0, RETENTION_BYTES_MIN)))?;
            let retention = largest_retention(retention_bytes, |retention| fits(&like(rate, 0, retention)))?;
            let reads = largest(reads_per_s, |reads| fits(&like(rate, reads, retention)));
            Some(like(rate, reads.unwrap_or(0), retention))
        }
    };
    let order = match is_space {
        true => [Reduced::Retention, Reduced::Reads, Reduced::Rate, Reduced::All],
        false => [Reduced::Reads, Reduced::Rate, Reduced::Retention, Reduced::All],
    };
    order.into_iter().find_map(&mut reduce)
}

/// A shorter retention that fits, in whole mebibytes.
fn largest_retention(beyond: u64, mut fits: impl FnMut(u64) -> bool) -> Option<u64> {
    let most = beyond.saturating_sub(1) / RETENTION_BYTES_MIN;
    largest(most, |mebibytes| fits(mebibytes * RETENTION_BYTES_MIN)).map(|found| found * RETENTION_BYTES_MIN)
}

/// A number from 1 to `limit` that fits while the next one does not. It is the largest that fits when every number below
/// a fitting one fits, too.
pub fn largest(limit: u64, mut fits: impl FnMut(u64) -> bool) -> Option<u64> {
    let (mut known, mut above) = (0, limit.saturating_add(1));
    while above - known > 1 {
        let middle = known + (above - known) / 2;
        if fits(middle) {
            known = middle;
        } else {
            above = middle;
        }
    }
    (known > 0).then_some(known)
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

/// A number for people: whole from ten upwards, with three places below.
fn rounded(x: f64) -> String {
    if x >= 10.0 {
        format!("{x:.0}")
    } else {
        format!("{x:.3}")
    }
}
