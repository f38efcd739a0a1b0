//! From JSON to a checked instance. Errors name the field at fault.

use std::collections::BTreeMap;

use quorate_burst::{ReplicaCost, Vector};
use quorate_placement::{Profile, Replacement};
use quorate_types::Sla;
use quorate_types::cost::{MILLI_PER_TOKEN, RESOURCES, TOKENS_PER_UNIT};
use quorate_types::limits::RETENTION_BYTES_DEFAULT;
use serde::de::DeserializeOwned;

use crate::checked::{Candidate, Checked, ReservedTenant, server_id};
use crate::instance::{ApplicantForm, Extra, FailedForm, Instance, ServerForm, SlaForm, TenantForm};
use crate::limits::RATE_MAX_PER_S;
use crate::units::{self, milli, vector, vectors};
use crate::unusable::Unusable;

pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Unusable> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let parsed = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|e| Unusable::new(e.path().to_string(), e.into_inner().to_string()))?;
    deserializer
        .end()
        .map_err(|e| Unusable::new("(end)", e.to_string()))?;
    Ok(parsed)
}

pub fn check(instance: Instance, profile: Profile) -> Result<Checked, Unusable> {
    let mut numbers = BTreeMap::new();
    if instance.servers.is_empty() {
        return Err(Unusable::new("servers", "must have at least one"));
    }
    for (s, server) in instance.servers.iter().enumerate() {
        let field = format!("servers[{s}]");
        vector(&server.capacity, &format!("{field}.capacity"))?;
        numbers.insert(server.id.clone(), s);
    }
    one_thing_each("servers", instance.servers.iter().map(|server| &server.id))?;
    one_thing_each("applicants", instance.applicants.iter().map(|one| &one.id))?;
    one_thing_each("failed", instance.failed.iter().map(|one| &one.id))?;
    one_thing_each("tenants", instance.tenants.iter().map(|one| &one.id))?;
    if !(0.0..=0.999).contains(&instance.recovery_headroom) {
        return Err(Unusable::new("recovery_headroom", "must be 0 to 0.999"));
    }
    let applicants = instance.applicants.into_iter().enumerate();
    let failed = instance.failed.into_iter().enumerate();
    let tenants = instance.tenants.into_iter().enumerate();
    let checked = Checked {
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
    };
    reservations_fit(&checked)?;
    Ok(checked)
}

/// Answers name things by their ids.
fn one_thing_each<'a>(list: &str, ids: impl Iterator<Item = &'a String>) -> Result<(), Unusable> {
    let mut first_of = BTreeMap::new();
    for (n, id) in ids.enumerate() {
        if let Some(first) = first_of.insert(id, n) {
            let problem = format!("{id:?} is the id of {list}[{first}], too: give each an id of its own");
            return Err(Unusable::new(format!("{list}[{n}].id"), problem));
        }
    }
    Ok(())
}

/// Admission never promises more of a server than it has, so an instance in which tenants reserve more is wrong.
fn reservations_fit(checked: &Checked) -> Result<(), Unusable> {
    let capacity = checked.capacity();
    let mut reserved = vec![[0u128; RESOURCES.len()]; capacity.len()];
    for (t, tenant) in checked.tenants.iter().enumerate() {
        for (replica, own) in tenant.replicas.iter().zip(&tenant.reserved) {
            let sum = &mut reserved[replica.server];
            for i in 0..RESOURCES.len() {
                sum[i] += u128::from(own[i]);
                if sum[i] > u128::from(capacity[replica.server][i]) {
                    let server = &checked.servers[replica.server];
                    return Err(over_reserved(t, server, i, sum[i]));
                }
            }
        }
    }
    Ok(())
}

fn over_reserved(tenant: usize, server: &ServerForm, i: usize, reserved_milli: u128) -> Unusable {
    let reserved = reserved_milli as f64 / MILLI_PER_TOKEN / TOKENS_PER_UNIT[i];
    let problem = format!(
        "reserves {} on server {:?} beyond its capacity: {reserved} of {}, with the tenants before it; \
         lower a reservation, or move a tenant to another server",
        RESOURCES[i], server.id, server.capacity[i],
    );
    Unusable::new(format!("tenants[{tenant}]"), problem)
}

fn demand(applicant: ApplicantForm, field: &str, profile: &Profile) -> Result<Candidate, Unusable> {
    let (sla_per_s, replicas, sla) = match (applicant.replicas, applicant.sla_per_s, applicant.sla) {
        (Some(replicas), Some(sla_per_s), None) => {
            let field = format!("{field}.replicas");
            vectors(&replicas, &field)?;
            (
                sla_per_s,
                replicas.iter().map(|one| units::demand(one)).collect(),
                None,
            )
        }
        (None, None, Some(sla)) => {
            let sla = checked_sla(&sla, &format!("{field}.sla"), profile)?;
            let replicas = profile.demands(&sla).all().to_vec();
            (sla.rate_per_s, replicas, Some(sla))
        }
        _ => return Err(Unusable::new(field, "needs replicas and sla_per_s, or sla")),
    };
    rate(sla_per_s, 1, &format!("{field}.sla_per_s"))?;
    Ok(Candidate {
        id: applicant.id,
        sla_per_s,
        replicas,
        sla,
    })
}

fn replacement(
    failed: FailedForm,
    field: &str,
    numbers: &BTreeMap<String, usize>,
) -> Result<Replacement<String>, Unusable> {
    vector(&failed.demand, &format!("{field}.demand"))?;
    let members = placed_on(&failed.members, &format!("{field}.members"), numbers)?;
    Ok(Replacement {
        key: failed.id,
        demand: units::demand(&failed.demand),
        members: members.into_iter().map(server_id).collect(),
    })
}

fn hosted(
    tenant: TenantForm,
    field: &str,
    numbers: &BTreeMap<String, usize>,
    profile: &Profile,
) -> Result<ReservedTenant, Unusable> {
    let servers = placed_on(&tenant.placement, &format!("{field}.placement"), numbers)?;
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
        _ => return Err(Unusable::new(field, "needs request and reserved_per_s, or sla")),
    };
    if costs.len() != servers.len() {
        let problem = format!(
            "{} replicas for {} servers of placement",
            costs.len(),
            servers.len()
        );
        return Err(Unusable::new(source, problem));
    }
    if costs.iter().all(|cost| *cost == [0; 3]) {
        return Err(Unusable::new(source, "costs nothing anywhere"));
    }
    rate(reserved_per_s, 0, &format!("{field}.reserved_per_s"))?;
    let used_per_s = tenant.used_per_s.unwrap_or(reserved_per_s);
    if used_per_s > reserved_per_s {
        return Err(Unusable::new(
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
    let replicas = servers.into_iter().zip(costs);
    Ok(ReservedTenant {
        id: tenant.id,
        replicas: replicas
            .map(|(server, cost)| ReplicaCost { server, cost })
            .collect(),
        reserved,
        reserved_per_s,
        used_per_s,
        extra_per_s,
    })
}

fn placed_on(
    names: &[String],
    field: &str,
    numbers: &BTreeMap<String, usize>,
) -> Result<Vec<usize>, Unusable> {
    let mut servers: Vec<usize> = Vec::with_capacity(names.len());
    for (n, name) in names.iter().enumerate() {
        let field = format!("{field}[{n}]");
        let server = *numbers
            .get(name)
            .ok_or_else(|| Unusable::new(&field, format!("there is no server {name:?}")))?;
        if servers.contains(&server) {
            return Err(Unusable::new(field, format!("{name:?} is there twice (Cons3)")));
        }
        servers.push(server);
    }
    Ok(servers)
}

/// An SLA whose fields are each in range, whatever one shard can carry.
pub fn sla_in_range(sla: &SlaForm, field: &str) -> Result<Sla, Unusable> {
    let sla = Sla {
        durability: sla.durability,
        replication_degree: sla.replication_degree,
        min_replicas: None,
        request_size_bytes: sla.request_size_bytes,
        rate_per_s: sla.rate_per_s,
        read_rate_per_s: sla.read_rate_per_s,
        region: "local".to_string(),
        retention_bytes: sla.retention_bytes.unwrap_or(RETENTION_BYTES_DEFAULT),
        retention_age_s: None,
        latency: Default::default(),
    };
    sla.validate()
        .map_err(|(name, problem)| Unusable::new(format!("{field}.{name}"), problem))?;
    Ok(sla)
}

fn checked_sla(sla: &SlaForm, field: &str, profile: &Profile) -> Result<Sla, Unusable> {
    let sla = sla_in_range(sla, field)?;
    let peak_per_s = profile.shard_peak_per_s(&sla);
    if sla.rate_per_s > peak_per_s {
        let problem = format!(
            "one shard carries at most {peak_per_s} of {} bytes",
            sla.request_size_bytes
        );
        return Err(Unusable::new(format!("{field}.rate_per_s"), problem));
    }
    Ok(sla)
}

fn rate(per_s: u64, least: u64, field: &str) -> Result<(), Unusable> {
    if (least..=RATE_MAX_PER_S).contains(&per_s) {
        Ok(())
    } else {
        Err(Unusable::new(
            field,
            format!("must be {least} to {RATE_MAX_PER_S}"),
        ))
    }
}
