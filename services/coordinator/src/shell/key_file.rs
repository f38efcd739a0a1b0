//! The file with the keys that sign clients' tokens is read again when it changes: keys are rotated without a restart.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::error;

use super::engine::Input;
use super::secret::read_client_keys;

/// Soon enough for a person who rotates keys, who must wait for tokens of the old key to expire anyway.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks for ever. Content that is no JWKS changes nothing: the keys in use stay, and the log says why.
pub async fn follow(path: PathBuf, mut keys: Value, inputs: mpsc::Sender<Input>) {
    let mut complained = String::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // A file of a few hundred bytes: its content says more than its times.
        match read_client_keys(&path) {
            Ok(read) if read == keys => complained.clear(),
            Ok(read) => {
                keys = read.clone();
                complained.clear();
                if inputs.send(Input::ClientKeys(read)).await.is_err() {
                    return;
                }
            }
            Err(failure) if failure.message != complained => {
                error!("{}; the keys in use stay", failure.message);
                complained = failure.message;
            }
            Err(_) => {}
        }
    }
}
