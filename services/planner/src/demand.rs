//! `quorate-planner demand`: an SLA's demand vectors, in the whole numbers that admission computes with.

use quorate_placement::Profile;
use quorate_placement::profile::role_at;
use quorate_types::{Role, Space};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::SlaForm;
use crate::read::{parse, sla_in_range};
use crate::unusable::Unusable;

/// SLAs, and the cost profile to charge them by.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandRequest {
    /// A whole cost profile (`services/crates/placement/profiles/README.md`). When missing, the profile of `--profile`,
    /// or the default.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub profile: Option<serde_json::Value>,
    pub slas: Vec<SlaForm>,
}

/// Vectors are `[cpu, network, storage IO]`, in tokens (nanoseconds of CPU, bytes, thousandths of operations) or in
/// thousandths of tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DemandAnswer {
    /// `version` of the profile that the SLAs are charged by.
    pub profile_version: String,
    /// In the order of the request.
    pub slas: Vec<SlaDemand>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SlaDemand {
    pub sla: SlaForm,
    /// The largest rate that one shard can carry. Admission refuses an SLA above it.
    pub shard_peak_per_s: u64,
    /// The head first.
    pub replicas: Vec<ReplicaDemand>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplicaDemand {
    #[schemars(with = "RoleName")]
    pub role: Role,
    /// Reserved by admission on the replica's server, in tokens a second.
    pub reserved_tokens_per_s: [u64; 3],
    /// The same before it is rounded up to tokens, in thousandths of tokens a second.
    pub reserved_milli_per_s: [u64; 3],
    /// Cost of one request in a full batch, in thousandths of tokens.
    pub request_milli: [u64; 3],
    #[serde(flatten)]
    pub space: SpaceDemand,
}

/// Reserved on the replica's server for as long as the group exists.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpaceDemand {
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

impl From<Space> for SpaceDemand {
    fn from(space: Space) -> Self {
        Self {
            memory_bytes: space.memory_bytes,
            disk_bytes: space.disk_bytes,
        }
    }
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum RoleName {
    Head,
    Follower,
    Tail,
    Sole,
}

impl DemandRequest {
    /// The request, and the profile to charge by: its own, or `given` by a flag.
    pub fn read(json: &str, given: Option<Profile>) -> Result<(Self, Profile), Unusable> {
        let request: Self = parse(json)?;
        let profile = match (&request.profile, given) {
            (Some(_), Some(_)) => {
                let problem = "--profile names another one; give one of them";
                return Err(Unusable::new("profile", problem));
            }
            (Some(own), None) => Profile::parse(&own.to_string())
                .map_err(|e| Unusable::new(e.field, e.problem).of("profile"))?,
            (None, given) => given.unwrap_or_else(Profile::default_profile),
        };
        Ok((request, profile))
    }
}

pub fn demand(request: &DemandRequest, profile: &Profile) -> Result<DemandAnswer, Unusable> {
    let slas = request.slas.iter().enumerate();
    Ok(DemandAnswer {
        profile_version: profile.version.clone(),
        slas: slas
            .map(|(n, sla)| of_sla(sla, &format!("slas[{n}]"), profile))
            .collect::<Result<_, _>>()?,
    })
}

fn of_sla(sla: &SlaForm, field: &str, profile: &Profile) -> Result<SlaDemand, Unusable> {
    let whole = sla_in_range(sla, field)?;
    let (demands, requests, budget) = (
        profile.demands(&whole),
        profile.request_milli(&whole),
        profile.budget(&whole),
    );
    let replica = |position: usize| ReplicaDemand {
        role: role_at(position, requests.len()),
        reserved_tokens_per_s: demands.at(position).rates(),
        space: demands.at(position).space().into(),
        reserved_milli_per_s: budget.reserved_milli_at(position),
        request_milli: requests[position],
    };
    Ok(SlaDemand {
        sla: sla.clone(),
        shard_peak_per_s: profile.shard_peak_per_s(&whole),
        replicas: (0..requests.len()).map(replica).collect(),
    })
}
