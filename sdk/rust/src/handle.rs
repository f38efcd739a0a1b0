//! The handle: a group's addresses, token, authority and limits (`sdk/contract/handle.md`).

use std::fmt;
use std::sync::Arc;

use quorate_transport::tls::client_config;
use quorate_types::cost::Charges;
use quorate_types::{Durability, Epoch, GroupId, limits};
use rustls::ClientConfig;
use serde::Deserialize;

use crate::errors::HandleError;

#[derive(Clone, Deserialize)]
pub struct Handle {
    pub group_id: GroupId,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub epoch: Epoch,
    pub endpoints: Vec<Endpoint>,
    pub token: String,
    #[serde(default)]
    pub sla: Option<HandleSla>,
    /// Absent: the client does not pace itself.
    #[serde(default)]
    pub charges: Option<Charges>,
    #[serde(default)]
    pub limits: HandleLimits,
    /// Absent: connections are not encrypted.
    #[serde(default)]
    pub tls: Option<HandleTls>,
}

/// The trusted authority.
#[derive(Clone, Deserialize)]
pub struct HandleTls {
    /// Whether servers refuse connections without TLS. With an authority named, TLS is used either way.
    #[serde(default = "always")]
    pub required: bool,
    /// The fleet's certificate authority, the only one trusted.
    pub ca_pem: String,
    /// Shared by all connections: it keeps TLS sessions, so that reconnecting is cheaper.
    #[serde(skip)]
    config: Option<Arc<ClientConfig>>,
}

fn always() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    #[serde(default)]
    pub server_id: u32,
    /// `host:port`.
    pub address: String,
    #[serde(default)]
    pub role: String,
}

/// The group's SLA.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HandleSla {
    pub durability: Durability,
    pub replication_degree: u8,
    pub request_size_bytes: u32,
    pub rate_per_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HandleLimits {
    pub max_entry_bytes: u32,
    pub max_batch_bytes: u32,
    pub max_batch_entries: u32,
}

impl Default for HandleLimits {
    fn default() -> Self {
        Self {
            max_entry_bytes: limits::ENTRY_BYTES_MAX,
            max_batch_bytes: limits::BATCH_BYTES_MAX,
            max_batch_entries: limits::BATCH_ENTRIES_MAX,
        }
    }
}

impl Handle {
    /// A handle from the API's answer. The error names its fault.
    pub fn parse(json: &str) -> Result<Self, HandleError> {
        let mut handle: Handle =
            serde_json::from_str(json).map_err(|error| HandleError(format!("is malformed: {error}")))?;
        if handle.endpoints.is_empty() {
            return Err(HandleError(
                "has no endpoints; the group may still be starting".to_string(),
            ));
        }
        for endpoint in &handle.endpoints {
            if !is_address(&endpoint.address) {
                return Err(HandleError(format!(
                    "names {:?}, which is not host:port",
                    endpoint.address
                )));
            }
        }
        if handle.token.len() > TOKEN_BYTES_MAX {
            return Err(HandleError(format!("has a token over {TOKEN_BYTES_MAX} bytes")));
        }
        if let Some(tls) = &mut handle.tls {
            let config = client_config(&tls.ca_pem)
                .map_err(|error| HandleError(format!("names an authority that is not one: {error}")))?;
            tls.config = Some(config);
        }
        let given = handle.limits;
        if given.max_batch_entries == 0 || given.max_batch_bytes <= 4 {
            return Err(HandleError("allows no entries in a batch".to_string()));
        }
        Ok(handle)
    }

    /// TLS configuration of connections; `None`: without TLS.
    pub(crate) fn trust(&self) -> Option<Arc<ClientConfig>> {
        self.tls.as_ref().and_then(|tls| tls.config.clone())
    }

    /// Takes over the TLS sessions of `before`, if it trusts the same authority.
    pub(crate) fn remember(&mut self, before: &Handle) {
        if let (Some(tls), Some(known)) = (&mut self.tls, &before.tls)
            && tls.ca_pem == known.ca_pem
        {
            tls.config.clone_from(&known.config);
        }
    }

    /// The replicas' addresses, the head's first.
    pub fn addresses(&self) -> Vec<String> {
        let is_head = |endpoint: &&Endpoint| matches!(endpoint.role.as_str(), "head" | "sole");
        let heads = self.endpoints.iter().filter(is_head);
        let others = self.endpoints.iter().filter(|endpoint| !is_head(endpoint));
        heads
            .chain(others)
            .map(|endpoint| endpoint.address.clone())
            .collect()
    }
}

const TOKEN_BYTES_MAX: usize = 8_192;

fn is_address(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
}

/// Omits the token, which is a secret: handles end up in logs.
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("group_id", &self.group_id)
            .field("name", &self.name)
            .field("epoch", &self.epoch)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"group_id":"01930f3c-5f4e-7cc3-98c4-dc0c0c07398f","name":"orders","epoch":3,
        "endpoints":[{"server_id":2,"address":"127.0.0.1:7002","role":"follower"},
                     {"server_id":1,"address":"127.0.0.1:7001","role":"head"}],
        "token":"secret","token_expires_at":"2030-01-01T00:00:00Z",
        "limits":{"max_entry_bytes":100}}"#;

    #[test]
    fn the_head_comes_first_and_missing_limits_are_the_usual_ones() {
        let handle = Handle::parse(GOOD).unwrap();
        assert_eq!(handle.addresses(), ["127.0.0.1:7001", "127.0.0.1:7002"]);
        assert_eq!(handle.limits.max_entry_bytes, 100);
        assert_eq!(handle.limits.max_batch_entries, limits::BATCH_ENTRIES_MAX);
        assert!(!format!("{handle:?}").contains("secret"));
    }

    #[test]
    fn malformed_handles_are_refused_with_the_reason() {
        for (wrong, part) in [
            ("{", "malformed"),
            ("{\"group_id\":\"x\"}", "malformed"),
            (&GOOD.replace("127.0.0.1:7002", "localhost"), "not host:port"),
            (&GOOD.replace("127.0.0.1:7002", ":70000"), "not host:port"),
            (
                &GOOD.replace(
                    "\"limits\"",
                    r#""tls":{"required":true,"ca_pem":"nonsense"},"limits""#,
                ),
                "authority",
            ),
            (
                &GOOD.replace("\"max_entry_bytes\":100", "\"max_batch_entries\":0"),
                "no entries",
            ),
        ] {
            let error = Handle::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
