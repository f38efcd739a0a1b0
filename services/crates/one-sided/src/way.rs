//! The way of one-sided writes, for the streams of one thread.

use std::rc::Rc;

use quorate_fabric::{Domain, FabricError, Provider};

use crate::stream::RingStream;

/// The operator's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    pub provider: Provider,
    /// The address of this machine by which others reach it.
    pub host: String,
}

/// Opened when the first stream wants it.
pub struct Way {
    fabric: Fabric,
    domain: Option<Rc<Domain>>,
    /// It cannot be opened: links go by their sockets.
    is_missing: bool,
}

impl Way {
    pub fn new(fabric: Fabric) -> Self {
        Self {
            fabric,
            domain: None,
            is_missing: false,
        }
    }

    /// Whether this machine has it.
    pub fn try_open(fabric: &Fabric) -> Result<(), FabricError> {
        Domain::open(fabric.provider, &fabric.host).map(drop)
    }

    pub fn provider(&self) -> Provider {
        self.fabric.provider
    }

    /// A stream for another link. `None`: this machine has no such way, which was said.
    pub fn stream(&mut self) -> Option<Result<RingStream, FabricError>> {
        let domain = self.domain()?;
        Some(RingStream::open(&domain))
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
