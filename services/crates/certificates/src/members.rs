//! TLS between coordinators. Both ends show a certificate of the authority that the fleet's key makes. So only holders of
//! the key get through, and none has to be told of the others' certificates.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, ServerConfig};

use crate::control::{provider, roots};
use crate::fleet_key::FleetKey;

/// The configuration of the listener for other coordinators.
pub fn server_config(key: &FleetKey) -> Result<ServerConfig, Error> {
    let authority = key.members_authority();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(authority.certificate())?, provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let (chain, own) = authority.member(SystemTime::now());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, own)?;
    // Members prove themselves each time.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of connections to other coordinators. The name to dial is [`crate::control::coordinator_name`].
pub fn client_config(key: &FleetKey) -> Result<ClientConfig, Error> {
    let authority = key.members_authority();
    let (chain, own) = authority.member(SystemTime::now());
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(Arc::unwrap_or_clone(roots(authority.certificate())?))
        .with_client_auth_cert(chain, own)?;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rustls::{ClientConnection, ServerConnection};

    use super::*;
    use crate::control::coordinator_name;

    fn key(folder: &std::path::Path, name: &str) -> FleetKey {
        FleetKey::create(&folder.join(name)).unwrap()
    }

    /// Passes the bytes of both ends to and fro until the handshake ends, or one of them refuses.
    fn shake(client: ClientConfig, server: ServerConfig) -> Result<(), Error> {
        let mut client = ClientConnection::new(Arc::new(client), coordinator_name())?;
        let mut server = ServerConnection::new(Arc::new(server))?;
        for _ in 0..10 {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            server.read_tls(&mut bytes.as_slice()).unwrap();
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            client.read_tls(&mut bytes.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        Ok(())
    }

    #[test]
    fn holders_of_one_key_trust_one_another_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (key(folder.path(), "own"), key(folder.path(), "other"));
        let server = |key| server_config(key).unwrap();
        shake(client_config(&own).unwrap(), server(&own)).unwrap();
        shake(client_config(&other).unwrap(), server(&own)).unwrap_err();
        shake(client_config(&own).unwrap(), server(&other)).unwrap_err();
        // A client without a certificate, which trusts the right authority.
        let authority = own.members_authority();
        let mut anonymous = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(Arc::unwrap_or_clone(roots(authority.certificate()).unwrap()))
            .with_no_client_auth();
        anonymous.resumption = rustls::client::Resumption::disabled();
        shake(anonymous, server(&own)).unwrap_err();
    }
}
