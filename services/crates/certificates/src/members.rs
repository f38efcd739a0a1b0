//! TLS between coordinators. Both ends show a certificate of the authority that the fleet's key makes. So only holders of
//! the key get through, and none has to be told of the others' certificates.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};

use crate::control::provider;
use crate::fleet_keys::FleetKeys;

/// The configuration of the listener for other coordinators.
pub fn server_config(keys: &FleetKeys) -> Result<ServerConfig, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusted(keys)?), provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let (chain, own) = keys.current().members_authority().member(SystemTime::now());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, own)?;
    // Members prove themselves each time.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of connections to other coordinators. The name to dial is [`crate::control::coordinator_name`].
pub fn client_config(keys: &FleetKeys) -> Result<ClientConfig, Error> {
    let (chain, own) = keys.current().members_authority().member(SystemTime::now());
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(trusted(keys)?)
        .with_client_auth_cert(chain, own)?;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// The authorities of all keys: while one is being replaced, some coordinators show certificates of the other.
fn trusted(keys: &FleetKeys) -> Result<RootCertStore, Error> {
    let mut trusted = RootCertStore::empty();
    for key in keys.all() {
        trusted.add(key.members_authority().certificate().clone())?;
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use rustls::{ClientConnection, ServerConnection};

    use super::*;
    use crate::control::coordinator_name;
    use crate::fleet_key::FleetKey;

    fn keys(keys: &[&FleetKey]) -> FleetKeys {
        let lines: Vec<String> = keys.iter().map(|key| key.text()).collect();
        FleetKeys::parse(&lines.join("\n")).unwrap()
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
        let (own, other) = (FleetKey::generate(), FleetKey::generate());
        let (own, other) = (keys(&[&own]), keys(&[&other]));
        let server = |keys| server_config(keys).unwrap();
        shake(client_config(&own).unwrap(), server(&own)).unwrap();
        shake(client_config(&other).unwrap(), server(&own)).unwrap_err();
        shake(client_config(&own).unwrap(), server(&other)).unwrap_err();
        // A client without a certificate, which trusts the right authority.
        let mut anonymous = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(trusted(&own).unwrap())
            .with_no_client_auth();
        anonymous.resumption = rustls::client::Resumption::disabled();
        shake(anonymous, server(&own)).unwrap_err();
    }

    #[test]
    fn a_key_is_replaced_one_coordinator_after_the_other() {
        let (old, new) = (FleetKey::generate(), FleetKey::generate());
        let steps = [
            keys(&[&old]),
            keys(&[&old, &new]),
            keys(&[&new, &old]),
            keys(&[&new]),
        ];
        for (before, after) in steps.iter().zip(&steps[1..]) {
            for (client, server) in [(before, after), (after, before), (before, before), (after, after)] {
                shake(client_config(client).unwrap(), server_config(server).unwrap()).unwrap();
            }
        }
        shake(
            client_config(&steps[0]).unwrap(),
            server_config(&steps[3]).unwrap(),
        )
        .unwrap_err();
    }
}
