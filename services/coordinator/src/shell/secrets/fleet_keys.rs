//! The fleet's keys, from the operator's file or command.

use std::process::Stdio;
use std::time::Duration;

use quorate_certificates::FleetKeys;
use tokio::process::Command;
use tracing::info;

use crate::exit::Failure;
use crate::options::Options;

/// Long enough for a key service that is asked over the network.
const COMMAND: Duration = Duration::from_secs(30);

/// Reads the keys. `is_first`: this coordinator begins the fleet, and makes a file that is not there.
pub async fn read_fleet_keys(options: &Options, is_first: bool) -> Result<FleetKeys, Failure> {
    if let Some(command) = &options.fleet_key_command {
        return of_command(command)
            .await
            .map_err(|problem| Failure::configuration(format!("--fleet-key-command: {problem}")));
    }
    let path = options.fleet_key_path();
    let exists = path.try_exists().unwrap_or(true);
    let keys = match exists {
        false if is_first => {
            info!(path = %path.display(), "the fleet's key is made: keep a copy of it elsewhere");
            FleetKeys::create(&path)
        }
        _ => FleetKeys::load(&path),
    };
    keys.map_err(|error| {
        Failure::configuration(format!(
            "--fleet-key-file {error}. All coordinators of a fleet have the file that its first one made: copy it \
             (docs/operating/fleet-key.md)"
        ))
    })
}

async fn of_command(command: &str) -> Result<FleetKeys, String> {
    let run = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(COMMAND, run).await;
    let output = output.map_err(|_| format!("it took longer than {} s", COMMAND.as_secs()))?;
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, said.trim()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| "it printed no text".to_string())?;
    FleetKeys::parse(&text).map_err(|error| error.to_string())
}
