//! The handle in use, shared by a client's links, and the source of new ones.

use std::pin::Pin;
use std::sync::{Arc, RwLock};

use tokio::sync::Mutex;

use crate::handle::Handle;
use crate::limits::REFRESH_TIMEOUT;

/// Asks the API for a fresh handle of the group.
pub type HandleSource =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Handle, String>> + Send>> + Send + Sync>;

pub struct Handles {
    current: RwLock<(Arc<Handle>, u64)>,
    source: Option<HandleSource>,
    gate: Mutex<()>,
}

impl Handles {
    pub fn new(handle: Handle, source: Option<HandleSource>) -> Self {
        Self {
            current: RwLock::new((Arc::new(handle), 0)),
            source,
            gate: Mutex::new(()),
        }
    }

    pub fn can_refresh(&self) -> bool {
        self.source.is_some()
    }

    /// The handle and its version.
    pub fn current(&self) -> (Arc<Handle>, u64) {
        self.current.read().expect("no holder of the lock panics").clone()
    }

    /// Gets a newer handle than version `known`, once for all concurrent calls.
    pub async fn refresh(&self, known: u64) -> Result<(), String> {
        let Some(source) = &self.source else { return Ok(()) };
        let _gate = self.gate.lock().await;
        if self.current().1 > known {
            return Ok(());
        }
        let fresh = tokio::time::timeout(REFRESH_TIMEOUT, source());
        let mut fresh = fresh
            .await
            .map_err(|_| "the API did not answer in time".to_string())??;
        fresh.remember(&self.current().0);
        let mut current = self.current.write().expect("no holder of the lock panics");
        *current = (Arc::new(fresh), known + 1);
        Ok(())
    }
}
