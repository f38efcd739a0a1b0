//! The estimates of this server's capacity, as they are now.

use std::sync::Mutex;

use quorate_capacity::Estimate;
use quorate_types::control::{CapacityEstimate, EstimatedCapacity};

#[derive(Default)]
pub struct Capacity {
    now: Mutex<Option<Estimated>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// May be handed out here, reserved or lent, in thousandths of tokens each second.
    pub lendable: [u64; 3],
    pub estimates: [Option<Estimate>; 3],
    pub lasting_permille: [u16; 3],
    /// As the operator stated it, in thousandths of tokens each second.
    pub stated: [u64; 3],
}

impl Capacity {
    pub fn set(&self, estimated: Estimated) {
        *self.now.lock().expect("estimates") = Some(estimated);
    }

    /// `None` while nothing is estimated.
    pub fn now(&self) -> Option<Estimated> {
        *self.now.lock().expect("estimates")
    }

    /// For the coordinators.
    pub fn told(&self) -> Option<EstimatedCapacity> {
        let now = self.now()?;
        let of = |i: usize| {
            let estimate = now.estimates[i]?;
            let permille = u128::from(estimate.per_s) * 1_000 / u128::from(now.stated[i].max(1));
            Some(CapacityEstimate {
                permille: u16::try_from(permille).unwrap_or(u16::MAX),
                phase: estimate.phase.name().to_string(),
                is_measured: estimate.is_measured,
                lasting_permille: now.lasting_permille[i],
            })
        };
        Some(EstimatedCapacity {
            cpu: of(0),
            storage_io: of(2),
        })
    }
}
