//! An instance that was checked, in the units of computation.

use quorate_burst::{ReplicaCost, Vector};
use quorate_placement::{Amounts, Profile, Replacement};
use quorate_types::{ServerId, Sla};

use crate::instance::ServerForm;
use crate::units::milli;

/// An instance that can be computed with. Servers are numbered from 0, `ServerId` from 1.
pub struct Checked {
    pub servers: Vec<ServerForm>,
    pub headroom_permille: u64,
    pub applicants: Vec<Candidate>,
    pub failed: Vec<Replacement<String>>,
    pub tenants: Vec<ReservedTenant>,
    /// The profile that SLAs were charged by.
    pub profile: Profile,
}

/// An applicant with its demand vectors.
pub struct Candidate {
    pub id: String,
    pub sla_per_s: u64,
    /// Demand of each replica at the whole SLA.
    pub replicas: Vec<Amounts>,
    /// The SLA that `replicas` are the demand of, if the applicant has one.
    pub sla: Option<Sla>,
}

impl Candidate {
    /// The demand at another rate, if only vectors are known: a part of them.
    pub fn part_at(&self, rate_per_s: u64) -> Vec<Amounts> {
        let part = |all: u64| (u128::from(all) * u128::from(rate_per_s)).div_ceil(u128::from(self.sla_per_s));
        let scaled = |all: &Amounts| {
            Amounts::of_rates(
                all.rates()
                    .map(|all| u64::try_from(part(all)).unwrap_or(u64::MAX)),
            )
        };
        self.replicas.iter().map(scaled).collect()
    }
}

/// A tenant with its replicas.
pub struct ReservedTenant {
    pub id: String,
    pub replicas: Vec<ReplicaCost>,
    /// At each of `replicas`, in thousandths of tokens each second, with the part for appends that come alone.
    pub reserved: Vec<Vector>,
    pub reserved_per_s: u64,
    pub used_per_s: u64,
    pub extra_per_s: u64,
}

impl Checked {
    /// Capacities in thousandths of tokens.
    pub fn capacity(&self) -> Vec<Vector> {
        let server = |server: &ServerForm| std::array::from_fn(|i| milli(server.capacity[i], i, f64::floor));
        self.servers.iter().map(server).collect()
    }
}

pub fn server_id(number: usize) -> ServerId {
    ServerId(u32::try_from(number + 1).expect("fewer than 2^32 servers"))
}
