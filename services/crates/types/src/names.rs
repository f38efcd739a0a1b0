//! Names by which certificates identify a process, whatever its address (`docs/internals/links.md`).

use crate::config::ServerId;

/// Nobody's real domain: `internal` is reserved for private use. No server may advertise a host in it.
pub const IDENTITY_DOMAIN: &str = "quorate.internal";

/// The coordinator, on the control connection.
pub const COORDINATOR_NAME: &str = "coordinator.quorate.internal";

/// A replica server, on links and on the control connection.
pub fn server_name(server: ServerId) -> String {
    format!("server-{server}.{IDENTITY_DOMAIN}")
}

/// Host of `host:port` or `[v6]:port`.
pub fn host_of(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_cut_from_addresses() {
        assert_eq!(host_of("10.0.0.1:7000"), Some("10.0.0.1"));
        assert_eq!(host_of("[::1]:7000"), Some("::1"));
        assert_eq!(host_of("node-1.example:7000"), Some("node-1.example"));
        assert_eq!(
            (host_of("node-1"), host_of(":1"), host_of("a:x")),
            (None, None, None)
        );
        assert_eq!(server_name(ServerId(7)), "server-7.quorate.internal");
    }
}
