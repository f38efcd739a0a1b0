//! Listeners, and the file that names their addresses.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;

use crate::exit::{Failure, FailureCode};

pub async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => Failure {
            code: FailureCode::PortInUse,
            message: format!(
                "{flag} {address}: the port is in use; stop the process that has it, or choose another"
            ),
        },
        _ => Failure::configuration(format!("{flag} {address}: {e}")),
    })
}

/// The address that others are told. Empty: it listens anywhere, and no name was given.
pub fn advertised(given: Option<&String>, listener: &TcpListener) -> String {
    let own = || {
        let bound = listener.local_addr().ok();
        bound.filter(|address| !address.ip().is_unspecified())
    };
    match given {
        Some(given) => given.clone(),
        None => own().map_or_else(String::new, |address| address.to_string()),
    }
}

/// Writes the addresses to stdout and to `addresses.json`.
pub fn announce(
    data_dir: &Path,
    control: &TcpListener,
    http: &TcpListener,
    members: Option<&str>,
) -> Result<(), Failure> {
    let address = |listener: &TcpListener| {
        listener
            .local_addr()
            .map_err(|e| Failure::configuration(format!("a listener has no address: {e}")))
    };
    let (control, http) = (address(control)?, address(http)?);
    let mut json = serde_json::json!({"control": control.to_string(), "http": http.to_string()});
    if let Some(members) = members {
        json["members"] = members.into();
    }
    let (path, beside) = (
        data_dir.join("addresses.json"),
        data_dir.join("addresses.json.new"),
    );
    std::fs::write(&beside, format!("{json}\n"))
        .and_then(|()| std::fs::rename(&beside, &path))
        .map_err(|e| Failure::disk(format!("{}: {e}", path.display())))?;
    println!("listening role=control address={control}");
    println!("listening role=http address={http}");
    if let Some(members) = members {
        println!("listening role=members address={members}");
    }
    Ok(())
}
