//! State and helpers that all clients of one group share.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_client::{Client, Handle, HandleSource, Options};
use rand::Rng;
use rand::rngs::StdRng;

use super::record::Recorder;
use crate::files::read_handle;

/// State that all clients of one group share.
pub struct HistoryGroup {
    pub name: String,
    pub handle: Handle,
    pub path: PathBuf,
    pub plaintext: bool,
    pub recorder: Recorder,
    pub size: u32,
    pub batch_entries_max: u32,
    pub timeout: Duration,
    /// End of the calls.
    pub end: tokio::time::Instant,
    /// The greatest end of an acknowledged append: probably the next one's offset.
    pub acked_end: Cell<u64>,
    /// The greatest fencing token of a call.
    pub token: Cell<u64>,
}

impl HistoryGroup {
    pub fn is_over(&self) -> bool {
        tokio::time::Instant::now() >= self.end
    }

    fn options(&self) -> Options {
        let (path, plaintext) = (self.path.clone(), self.plaintext);
        let source: HandleSource = Arc::new(move || {
            let handle = read_handle(&path, plaintext);
            Box::pin(async move { handle })
        });
        Options {
            timeout: self.timeout,
            handle_source: Some(source),
            // The servers are under test, and their refusals.
            pace: false,
            ..Options::default()
        }
    }

    /// A client with the present handle, which names the head first.
    pub fn fresh_client(&self) -> Client {
        let handle = read_handle(&self.path, self.plaintext).unwrap_or_else(|_| self.handle.clone());
        Client::open(handle, self.options())
    }

    /// A client that finds the head, and any replica to read from.
    pub fn client(&self) -> Client {
        Client::open(self.handle.clone(), self.options())
    }
}

/// Waits a random time around `about`: clients in step with one another would meet the same states only.
pub async fn pause(about: Duration, random: &mut StdRng) {
    tokio::time::sleep(about.mul_f64(random.random_range(0.5..1.5))).await;
}

/// The same handle with one endpoint only.
pub fn only(handle: &Handle, address: &str) -> Handle {
    let mut handle = handle.clone();
    handle.endpoints.retain(|endpoint| endpoint.address == address);
    handle
}

pub fn endpoints(path: &Path) -> Vec<String> {
    read_handle(path, false).map_or_else(|_| Vec::new(), |handle| handle.addresses())
}
