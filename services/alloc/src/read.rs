//! From what is written to what is computed with; what is wrong is refused with its field named.

use std::collections::BTreeMap;
use std::fmt;

use quorate_controller::{Place, Vector};
use quorate_placement::{Amounts, Profile, Replacement};
use quorate_types::cost::{MILLI_PER_TOKEN, RESOURCES, TOKENS_PER_UNIT};
use quorate_types::{ServerId, Sla};

use crate::instance::{Applicant, Extra, Failed, Instance, Server, Tenant};

/// Amounts up to here are exact in doubles and sum without overflow over any fleet.
const MAX_TOKENS: f64 = 1e15;
const RATE_MAX: u64 = 1_000_000_000_000;

/// What cannot be used: the field and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    what: &'static str,
    field: String,
    problem: String,
}

impl Problem {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            what: "instance",
            field: field.into(),
            problem: problem.into(),
        }
    }

    pub fn of(self, what: &'static str) -> Self {
        Self { what, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.field, self.problem)
    }
}

/// An instance that can be computed with. Servers are numbered from 0, `ServerId` from 1.
pub struct Checked {
    pub servers: Vec<Server>,
    pub headroom_permille: u64,
    pub applicants: Vec<Demand>,
    pub failed: Vec<Replacement<String>>,
    pub tenants: Vec<Hosted>,
    /// What SLAs cost.
    pub profile: Profile,
}

/// An applicant.
pub struct Demand {
    pub id: String,
    pub sla_per_s: u64,
    /// At the whole SLA.
    pub replicas: Vec<Amounts>,
    /// What they are the demand of, where the profile says so.
    pub sla: Option<Sla>,
}

impl Demand {
    /// At another rate, where only vectors are known: a part of them.
    pub fn part_at(&self, rate_per_s: u64) -> Vec<Amounts> {
        let part = |all: u64| (u128::from(all) * u128::from(rate_per_s)).div_ceil(u128::from(self.sla_per_s));
        let scaled = |all: &Amounts| Amounts(all.0.map(|all| u64::try_from(part(all)).unwrap_or(u64::MAX)));
        self.replicas.iter().map(scaled).collect()
    }
}

/// A tenant with its places.
pub struct Hosted {
    pub id: String,
    pub places: Vec<Place>,
    /// At each of them, in thousandths of tokens each second: with what is reserved for appends that come alone.
    pub reserved: Vec<Vector>,
    pub reserved_per_s: u64,
    pub used_per_s: u64,
    pub extra_per_s: u64,
}

impl Checked {
    /// Capacities in thousandths of tokens.
    pub fn capacity(&self) -> Vec<Vector> {
        let server = |server: &Server| std::array::from_fn(|i| milli(server.capacity[i], i, f64::floor));
        self.servers.iter().map(server).collect()
    }
}

pub fn server_id(number: usize) -> ServerId {
    ServerId(u32::try_from(number + 1).expect("fewer than 2^32 servers"))
}

pub fn tokens(capacity: &[f64]) -> Amounts {
    Amounts(std::array::from_fn(|i| {
        (capacity[i] * TOKENS_PER_UNIT[i]).floor() as u64
    }))
}

/// For people and JSON, in the units of the instance.
pub fn natural(milli: &Vector) -> [f64; 3] {
    std::array::from_fn(|i| milli[i] as f64 / MILLI_PER_TOKEN / TOKENS_PER_UNIT[i])
}

pub fn parse(json: &str) -> Result<Instance, Problem> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let instance = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|e| Problem::new(e.path().to_string(), e.into_inner().to_string()))?;
    deserializer
        .end()
        .map_err(|e| Problem::new("(end)", e.to_string()))?;
    Ok(instance)
}

pub fn check(instance: Instance, profile: Profile) -> Result<Checked, Problem> {
    let mut numbers = BTreeMap::new();
    if instance.servers.is_empty() {
        return Err(Problem::new("servers", "must have at least one"));
    }
    for (s, server) in instance.servers.iter().enumerate() {
        let field = format!("servers[{s}]");
        vector(&server.capacity, &format!("{field}.capacity"))?;
        if numbers.insert(server.id.clone(), s).is_some() {
            return Err(Problem::new(
                format!("{field}.id"),
                format!("{:?} is there twice", server.id),
            ));
        }
    }
    if !(0.0..=0.999).contains(&instance.recovery_headroom) {
        return Err(Problem::new("recovery_headroom", "must be 0 to 0.999"));
    }
    let applicants = instance.applicants.into_iter().enumerate();
    let failed = instance.failed.into_iter().enumerate();
    let tenants = instance.tenants.into_iter().enumerate();
    Ok(Checked {
        headroom_permille: (instance.recovery_headroom * 1_000.0).round() as u64,
        applicants: applicants
            .map(|(a, applicant)| demand(applicant, &format!("applicants[{a}]"), &profile))
            .collect::<Result<_, _>>()?,
        failed: failed
            .map(|(f, failed)| replacement(failed, &format!("failed[{f}]"), &numbers))
            .collect::<Result<_, _>>()?,
        tenants: tenants
            .map(|(t, tenant)| hosted(tenant, &format!("tenants[{t}]"), &numbers, &profile))
            .collect::<Result<_, _>>()?,
        servers: instance.servers,
        profile,
    })
}

fn demand(applicant: Applicant, field: &str, profile: &Profile) -> Result<Demand, Problem> {
    let (sla_per_s, replicas, sla) = match (applicant.replicas, applicant.sla_per_s, applicant.sla) {
        (Some(replicas), Some(sla_per_s), None) => {
            let field = format!("{field}.replicas");
            vectors(&replicas, &field)?;
            let up = |replica: &Vec<f64>| {
                Amounts(std::array::from_fn(|i| {
                    (replica[i] * TOKENS_PER_UNIT[i]).ceil() as u64
                }))
            };
            (sla_per_s, replicas.iter().map(up).collect(), None)
        }
        (None, None, Some(sla)) => {
            let sla = checked_sla(&sla, &format!("{field}.sla"), profile)?;
            let replicas = profile.demands(&sla).all().to_vec();
            (sla.rate_per_s, replicas, Some(sla))
        }
        _ => return Err(Problem::new(field, "needs replicas and sla_per_s, or sla")),
    };
    rate(sla_per_s, 1, &format!("{field}.sla_per_s"))?;
    Ok(Demand {
        id: applicant.id,
        sla_per_s,
        replicas,
        sla,
    })
}

fn replacement(
    failed: Failed,
    field: &str,
    numbers: &BTreeMap<String, usize>,
) -> Result<Replacement<String>, Problem> {
    vector(&failed.demand, &format!("{field}.demand"))?;
    let members = places(&failed.members, &format!("{field}.members"), numbers)?;
    Ok(Replacement {
        key: failed.id,
        demand: Amounts(std::array::from_fn(|i| {
            (failed.demand[i] * TOKENS_PER_UNIT[i]).ceil() as u64
        })),
        members: members.into_iter().map(server_id).collect(),
    })
}

fn hosted(
    tenant: Tenant,
    field: &str,
    numbers: &BTreeMap<String, usize>,
    profile: &Profile,
) -> Result<Hosted, Problem> {
    let servers = places(&tenant.placement, &format!("{field}.placement"), numbers)?;
    let (reserved_per_s, costs, reserved, source) = match (tenant.request, tenant.reserved_per_s, tenant.sla)
    {
        (Some(request), Some(reserved_per_s), None) => {
            let source = format!("{field}.request");
            vectors(&request, &source)?;
            let cost = |cost: &Vec<f64>| std::array::from_fn(|i| milli(cost[i], i, f64::ceil));
            let costs: Vec<Vector> = request.iter().map(cost).collect();
            let all = |cost: &Vector| cost.map(|cost| cost.saturating_mul(reserved_per_s));
            let reserved: Vec<Vector> = costs.iter().map(all).collect();
            (reserved_per_s, costs, reserved, source)
        }
        (None, None, Some(sla)) => {
            let source = format!("{field}.sla");
            let sla = checked_sla(&sla, &source, profile)?;
            let (costs, budget) = (profile.request_milli(&sla), profile.budget(&sla));
            let reserved = (0..costs.len()).map(|at| budget.reserved_milli_at(at)).collect();
            (sla.rate_per_s, costs, reserved, source)
        }
        _ => return Err(Problem::new(field, "needs request and reserved_per_s, or sla")),
    };
    if costs.len() != servers.len() {
        let problem = format!(
            "{} replicas for {} servers of placement",
            costs.len(),
            servers.len()
        );
        return Err(Problem::new(source, problem));
    }
    if costs.iter().all(|cost| *cost == [0; 3]) {
        return Err(Problem::new(source, "costs nothing anywhere"));
    }
    rate(reserved_per_s, 0, &format!("{field}.reserved_per_s"))?;
    let used_per_s = tenant.used_per_s.unwrap_or(reserved_per_s);
    if used_per_s > reserved_per_s {
        return Err(Problem::new(
            format!("{field}.used_per_s"),
            format!("is above the reservation of {reserved_per_s}; what is wanted above it is extra"),
        ));
    }
    let extra_per_s = match tenant.extra {
        Extra::None => 0,
        Extra::All => u64::MAX,
        Extra::PerS(extra) => extra,
    };
    if !matches!(tenant.extra, Extra::All) {
        rate(extra_per_s, 0, &format!("{field}.extra.per_s"))?;
    }
    let places = servers.into_iter().zip(costs);
    Ok(Hosted {
        id: tenant.id,
        places: places.map(|(server, cost)| Place { server, cost }).collect(),
        reserved,
        reserved_per_s,
        used_per_s,
        extra_per_s,
    })
}

fn places(names: &[String], field: &str, numbers: &BTreeMap<String, usize>) -> Result<Vec<usize>, Problem> {
    let mut servers: Vec<usize> = Vec::with_capacity(names.len());
    for (n, name) in names.iter().enumerate() {
        let field = format!("{field}[{n}]");
        let server = *numbers
            .get(name)
            .ok_or_else(|| Problem::new(&field, format!("there is no server {name:?}")))?;
        if servers.contains(&server) {
            return Err(Problem::new(field, format!("{name:?} is there twice (Cons3)")));
        }
        servers.push(server);
    }
    Ok(servers)
}

fn checked_sla(sla: &crate::instance::Sla, field: &str, profile: &Profile) -> Result<Sla, Problem> {
    let sla = Sla {
        durability: sla.durability,
        replication_degree: sla.replication_degree,
        min_replicas: None,
        request_size_bytes: sla.request_size_bytes,
        rate_per_s: sla.rate_per_s,
        region: "local".to_string(),
        retention_bytes: quorate_types::limits::RETENTION_BYTES_DEFAULT,
        retention_age_s: None,
    };
    sla.validate()
        .map_err(|(name, problem)| Problem::new(format!("{field}.{name}"), problem))?;
    let peak_per_s = profile.shard_peak_per_s(&sla);
    if sla.rate_per_s > peak_per_s {
        let problem = format!(
            "one shard carries at most {peak_per_s} of {} bytes",
            sla.request_size_bytes
        );
        return Err(Problem::new(format!("{field}.rate_per_s"), problem));
    }
    Ok(sla)
}

fn vectors(all: &[Vec<f64>], field: &str) -> Result<(), Problem> {
    if all.is_empty() {
        return Err(Problem::new(field, "must have a vector for each replica"));
    }
    for (v, one) in all.iter().enumerate() {
        vector(one, &format!("{field}[{v}]"))?;
    }
    Ok(())
}

fn vector(amounts: &[f64], field: &str) -> Result<(), Problem> {
    if amounts.len() != RESOURCES.len() {
        let problem = format!(
            "has {} amounts; {} are needed: {RESOURCES:?}",
            amounts.len(),
            RESOURCES.len()
        );
        return Err(Problem::new(field, problem));
    }
    for (i, amount) in amounts.iter().enumerate() {
        let field = || format!("{field}[{i}] ({})", RESOURCES[i]);
        if !amount.is_finite() {
            return Err(Problem::new(field(), "must be finite"));
        }
        if *amount < 0.0 {
            return Err(Problem::new(field(), format!("{amount} is negative")));
        }
        if *amount * TOKENS_PER_UNIT[i] > MAX_TOKENS {
            return Err(Problem::new(
                field(),
                format!("must be at most {:e}", MAX_TOKENS / TOKENS_PER_UNIT[i]),
            ));
        }
    }
    Ok(())
}

fn rate(per_s: u64, least: u64, field: &str) -> Result<(), Problem> {
    if (least..=RATE_MAX).contains(&per_s) {
        Ok(())
    } else {
        Err(Problem::new(field, format!("must be {least} to {RATE_MAX}")))
    }
}

/// Thousandths of tokens; what rounding does not change within a millionth is not rounded away.
fn milli(amount: f64, i: usize, round: impl Fn(f64) -> f64) -> u64 {
    let exact = amount * TOKENS_PER_UNIT[i] * MILLI_PER_TOKEN;
    let nearest = exact.round();
    if (exact - nearest).abs() < 1e-6 {
        nearest as u64
    } else {
        round(exact) as u64
    }
}
