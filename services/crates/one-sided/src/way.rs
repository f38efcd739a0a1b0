//! The way of one-sided writes, for the links of one shard: opened when the first of them wants it.

use std::rc::Rc;

use quorate_fabric::{Domain, FabricError};

use super::ring::Ring;
use crate::shared::Fabric;

pub struct OneSidedWay {
    fabric: Fabric,
    domain: Option<Rc<Domain>>,
    /// It cannot be opened: links go by their sockets.
    is_missing: bool,
}

impl OneSidedWay {
    pub fn new(fabric: Fabric) -> Self {
        Self {
            fabric,
            domain: None,
            is_missing: false,
        }
    }

    /// A ring for another link. `None`: this machine has no such way, which was said.
    pub fn ring(&mut self) -> Option<Result<Ring, FabricError>> {
        let domain = self.domain()?;
        Some(Ring::new(&domain))
    }

    fn domain(&mut self) -> Option<Rc<Domain>> {
        if self.domain.is_none() && !self.is_missing {
            match Domain::open(self.fabric.provider, &self.fabric.host) {
                Ok(domain) => self.domain = Some(domain),
                Err(error) => {
                    self.is_missing = true;
                    let provider = self.fabric.provider.name();
                    tracing::warn!(provider, %error, "no one-sided writes: links go by tcp");
                }
            }
        }
        self.domain.clone()
    }
}
