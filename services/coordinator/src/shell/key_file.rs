//! The file with the keys that sign clients' tokens. It is read again when it changes: keys rotate without a restart.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::error;

use super::secrets::read_client_keys;
use super::task::TaskInput;

/// Soon enough for a person who rotates keys, who must wait for tokens of the old key to expire anyway.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Reads the file for ever. Content that is no JWKS changes nothing: the keys in use stay, and the log says why.
pub async fn follow(path: PathBuf, mut keys: Value, inputs: mpsc::Sender<TaskInput>) {
    let mut complained = String::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // The file has a few hundred bytes: comparing its content is surer than comparing its times.
        match read_client_keys(&path) {
            Ok(read) if read == keys => complained.clear(),
            Ok(read) => {
                keys = read.clone();
                complained.clear();
                if inputs.send(TaskInput::ClientKeys(read)).await.is_err() {
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
