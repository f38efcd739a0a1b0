//! The estimates of this server's capacity, as they are now.

use std::sync::Mutex;

use quorate_capacity::Estimate;
use quorate_types::control::{CapacityEstimate, EstimatedCapacity};

use super::settings::MILLI_PER_UNIT;

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
    pub fn told(&self) -> Option<Box<EstimatedCapacity>> {
        let now = self.now()?;
        let of = |i: usize| {
            let estimate = now.estimates[i]?;
            Some(CapacityEstimate {
                capacity: estimate.per_s as f64 / MILLI_PER_UNIT[i],
                phase: estimate.phase.name().to_string(),
                is_measured: estimate.is_measured,
                lasting_permille: now.lasting_permille[i],
            })
        };
        Some(Box::new(EstimatedCapacity {
            cpu: of(0),
            storage_io: of(2),
        }))
    }
}
