//! The context of every call: the handle to the engine, and what calls compare or show.

use std::sync::Arc;

use quorate_certificates::Authority;
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::problem::Problem;
use crate::shell::secrets;
use crate::shell::task::Handle;

#[derive(Clone)]
pub struct Context {
    pub handle: Handle,
    admin_token_digest: Arc<str>,
    /// The fleet's certificate authority: its certificate, and the fingerprint of that.
    pub ca_pem: Arc<str>,
    pub ca_pin: Arc<str>,
    /// Bounds the calls that wait for events.
    waits: Arc<Semaphore>,
}

/// Calls that may wait for the next event at the same time.
const EVENT_WAITS_MAX: usize = 64;

impl Context {
    pub fn new(handle: Handle, admin_token: &str, authority: &Authority) -> Self {
        Self {
            handle,
            admin_token_digest: secrets::digest(admin_token).into(),
            ca_pem: authority.certificate_pem().into(),
            ca_pin: authority.pin().into(),
            waits: Arc::new(Semaphore::new(EVENT_WAITS_MAX)),
        }
    }

    /// Whether this is the admin token. Digests are compared in constant time: neither the token's content nor its
    /// length shows in the timing.
    pub fn is_admin_token(&self, token: &str) -> bool {
        let given = secrets::digest(token);
        (given.as_bytes())
            .ct_eq(self.admin_token_digest.as_bytes())
            .into()
    }

    /// A place among the calls that wait for events.
    pub fn begin_waiting(&self) -> Result<SemaphorePermit<'_>, Problem> {
        self.waits.try_acquire().map_err(|_| Problem::too_many_waiting())
    }
}
