//! TLS of a connection: the handle's authority, and the causes of a failed handshake.

use std::sync::Arc;

use quorate_transport::tls::client_connection;
use quorate_transport::{HandshakeError, ReadHalf, WriteHalf, handshake, plain, prepare};
use quorate_types::names::host_of;
use rustls::{CertificateError, ClientConfig, Error};
use tokio::net::TcpStream;

use crate::codes::client_side;
use crate::errors::Failure;

/// An open connection, with the bytes that came right behind the handshake.
pub(crate) type Opened = (ReadHalf, WriteHalf, Vec<u8>);

/// Connects, with TLS if `trust` is given. Put a timeout around it.
pub(crate) async fn open(address: String, trust: Option<Arc<ClientConfig>>) -> Result<Opened, Failure> {
    let unreachable =
        |reason: String| Failure::new(client_side::NO_CONNECTION, format!("{address}: {reason}"));
    let stream = TcpStream::connect(&address)
        .await
        .map_err(|e| unreachable(e.to_string()))?;
    prepare(&stream).map_err(|e| unreachable(e.to_string()))?;
    let Some(config) = trust else {
        let (read_half, write_half) = plain(stream);
        return Ok((read_half, write_half, Vec::new()));
    };
    let host = host_of(&address).ok_or_else(|| unreachable("it is not host:port".into()))?;
    let connection = client_connection(&config, host).map_err(|e| unreachable(e.to_string()))?;
    match handshake(stream, connection).await {
        Ok((read_half, write_half, rest)) => Ok((read_half, write_half, rest.to_vec())),
        Err(HandshakeError::Tls(Error::InvalidCertificate(wrong))) => Err(Failure::new(
            client_side::SERVER_UNTRUSTED,
            format!("{address}: {}", untrusted(&wrong, host)),
        )),
        Err(HandshakeError::Tls(Error::InvalidMessage(_))) => {
            Err(unreachable("the server does not speak TLS".into()))
        }
        Err(error) => Err(unreachable(error.to_string())),
    }
}

fn untrusted(wrong: &CertificateError, host: &str) -> String {
    match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is not from the authority that the handle names".to_string()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is for another host than {host}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired, or this machine's clock is ahead".to_string()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: this machine's clock is behind".to_string()
        }
        other => format!("its certificate is not acceptable: {other}"),
    }
}
