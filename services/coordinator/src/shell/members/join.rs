//! An empty disk asks to be taken in, and a member whose address has changed to be known there, until it is so.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tracing::info;

use super::hello::{Answer, Identity, JoinAnswer, SOMETHING_ELSE, frames, greet};
use super::links::connect;

const AGAIN: Duration = Duration::from_millis(500);

/// Asks the coordinators at these addresses, and the leader that they name. Ends when the others know it where it is.
pub async fn ask(
    connector: TlsConnector,
    own: Identity,
    addresses: Vec<String>,
    mut is_known: watch::Receiver<bool>,
) {
    let mut leader = None;
    let mut reported = String::new();
    // A member that is known already need not ask.
    let _timeout = tokio::time::timeout(AGAIN, is_known.wait_for(|is_known| *is_known))
        .await
        .is_err();
    for address in addresses.iter().cycle() {
        if *is_known.borrow_and_update() {
            return;
        }
        let address = leader.take().unwrap_or_else(|| address.clone());
        let said = match once(&connector, &own, &address).await {
            Ok(JoinAnswer::TakenIn) => "taken in: the leader sends the log".to_string(),
            Ok(JoinAnswer::AskLeader { address: Some(named) }) => {
                let said = format!("the leader is at {named}");
                leader = Some(named);
                said
            }
            Ok(JoinAnswer::AskLeader { address: None }) => {
                "no coordinator leads at present; trying again".to_string()
            }
            Ok(JoinAnswer::Refused { message }) | Err(message) => format!("{message}; trying again"),
        };
        if said != reported {
            info!(address, said, "asked to be taken in");
            reported = said;
        }
        sleep(AGAIN).await;
    }
}

async fn once(connector: &TlsConnector, own: &Identity, address: &str) -> Result<JoinAnswer, String> {
    let mut frames = frames(connect(connector, address).await?);
    match greet(&mut frames, &own.hello(None)).await? {
        Answer::Join(answer) => Ok(answer),
        _ => Err(SOMETHING_ELSE.into()),
    }
}
