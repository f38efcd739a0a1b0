//! The cost profile (Filo §6.1): the cost of an append to each role, over durability × size, on real servers.
//!
//! - [`processes`]: use of servers, from /proc
//! - [`cells`]: one durability and size after another, measured
//! - [`mixed`]: several groups at once, measured: some to calibrate a profile, others to judge it
//! - [`fit`]: a profile file from the measurements
//! - [`error`]: a profile's predictions for mixed workloads, compared with their use

pub mod cells;
pub mod error;
pub mod fit;
pub mod mixed;
pub mod read_cells;

use std::collections::BTreeMap;

use quorate_client::Handle;
use quorate_types::{Durability, Role};

use crate::processes::Process;

/// A group to put load on, with the processes of its replicas.
pub struct MeasuredGroup {
    pub handle: Handle,
    pub durability: Durability,
    /// The processes of its chain, head first.
    pub chain: Vec<Process>,
}

impl MeasuredGroup {
    /// `processes`: by the address that clients use.
    pub fn new(
        handle: Handle,
        durability: Durability,
        processes: &BTreeMap<String, u32>,
    ) -> Result<Self, String> {
        let process = |address: &str| -> Result<Process, String> {
            let pid = processes.get(address);
            let pid = pid.ok_or_else(|| format!("--server names no process for {address}"))?;
            Ok(Process(*pid))
        };
        let place = |role: &str| match role {
            "sole" | "head" => Ok(0),
            "follower" => Ok(1),
            "tail" => Ok(2),
            other => Err(format!(
                "the handle calls a replica {other:?}: the group is being repaired"
            )),
        };
        let mut chain = Vec::new();
        for endpoint in &handle.endpoints {
            chain.push((place(&endpoint.role)?, process(&endpoint.address)?));
        }
        chain.sort_by_key(|(place, _)| *place);
        if chain.first().is_none_or(|(place, _)| *place != 0) {
            return Err("the handle names no head".to_string());
        }
        Ok(Self {
            handle,
            durability,
            chain: chain.into_iter().map(|(_, process)| process).collect(),
        })
    }

    pub fn role(&self, position: usize) -> Role {
        quorate_placement::profile::role_at(position, self.chain.len())
    }
}

/// The median; for an even number of values the mean of the two in the middle, for none not a number.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (middle(values.len().saturating_sub(1) / 2) + middle(values.len() / 2)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
