//! `--begin`: an empty disk begins a fleet once all other coordinators are there, and their disks are empty as well.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quorate_certificates::FleetKeys;
use quorate_quorum::MemberId;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tracing::info;

use super::hello::{Answer, Contact, Identity, SOMETHING_ELSE, frames, greet};
use super::links::{connect, connector};
use crate::exit::Failure;

const AGAIN: Duration = Duration::from_millis(500);

/// Waits until one of these has a fleet (false), or all of them have none (true). One that is away may have one: a second
/// fleet is never begun beside it.
pub async fn is_new_fleet(addresses: &[String], keys: &FleetKeys) -> Result<bool, Failure> {
    let connector = connector(keys)?;
    let own = Identity {
        member: MemberId(rand::random()),
        process: String::new(),
        fleet: Arc::new(OnceLock::new()),
        fleet_version: Arc::default(),
        address: String::new(),
        contact: Contact::new(String::new(), String::new()),
    };
    let mut reported = String::new();
    loop {
        let mut waits = Vec::new();
        for address in addresses {
            match look(&connector, &own, address).await {
                Ok(Some(fleet)) => {
                    info!(address, fleet, "there is a fleet: joining it");
                    return Ok(false);
                }
                Ok(None) => {}
                Err(problem) => waits.push(format!("{address}: {problem}")),
            }
        }
        if waits.is_empty() {
            info!("the other coordinators are there with empty folders: beginning a fleet");
            return Ok(true);
        }
        let waits = waits.join("; ");
        if waits != reported {
            info!(
                waits,
                "--begin waits until all of --join answer; one of them may have the fleet"
            );
            reported = waits;
        }
        sleep(AGAIN).await;
    }
}

/// The fleet of the coordinator there. None: its disk is empty.
async fn look(connector: &TlsConnector, own: &Identity, address: &str) -> Result<Option<String>, String> {
    let mut frames = frames(connect(connector, address).await?);
    match greet(&mut frames, &own.looks()).await? {
        Answer::Fleet { fleet } => Ok(fleet),
        _ => Err(SOMETHING_ELSE.into()),
    }
}
