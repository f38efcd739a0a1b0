//! The context of every call: the handle to the engine, and what calls compare or show.

use std::sync::Arc;
use std::time::Duration;

use quorate_certificates::Authority;
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::problem::Problem;
use crate::shell::balance::BalanceView;
use crate::shell::guarantees::Division;
use crate::shell::secrets::{self, PrivateKeys};
use crate::shell::sharing::SharingView;
use crate::shell::task::{Handle, Unavailable};

/// Results of tasks beside the engine, as they are at any time.
#[derive(Clone)]
pub struct Computed {
    pub sharing: watch::Receiver<SharingView>,
    pub balance: watch::Receiver<BalanceView>,
    pub division: Division,
}

#[derive(Clone)]
pub struct Context {
    pub handle: Handle,
    pub computed: Computed,
    admin_token_digest: Arc<str>,
    /// The fleet's keys. None: they are not known yet.
    keys: watch::Receiver<Option<Arc<PrivateKeys>>>,
    /// Bounds the calls that wait for events.
    waits: Arc<Semaphore>,
}

/// They come with the fleet's first agreed commands, or with the log that another coordinator sends.
const KEYS_WAIT: Duration = Duration::from_secs(5);
/// Calls that may wait for the next event at the same time.
const EVENT_WAITS_MAX: usize = 64;

impl Context {
    pub fn new(
        handle: Handle,
        computed: Computed,
        admin_token: &str,
        keys: watch::Receiver<Option<Arc<PrivateKeys>>>,
    ) -> Self {
        Self {
            handle,
            computed,
            admin_token_digest: secrets::digest(admin_token).into(),
            keys,
            waits: Arc::new(Semaphore::new(EVENT_WAITS_MAX)),
        }
    }

    /// The authority that clients and servers trust. A coordinator that has just begun knows it a moment later.
    pub async fn authority(&self) -> Result<Arc<Authority>, Unavailable> {
        let mut known = self.keys.clone();
        let keys = tokio::time::timeout(KEYS_WAIT, known.wait_for(Option::is_some)).await;
        match keys {
            Ok(Ok(keys)) => Ok(keys.as_ref().expect("it was waited for").authority.clone()),
            _ => Err(Unavailable::Unknown),
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
