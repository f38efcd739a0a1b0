//! Flags of processes whose links may go by one-sided writes.

use clap::{Args, ValueEnum};
use quorate_fabric::Provider;

use crate::way::Fabric;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    Tcp,
    Ofi,
}

#[derive(Debug, Clone, Args)]
pub struct TransportFlags {
    /// How frames travel between servers, and between coordinators: tcp, or ofi: one-sided writes by libfabric, where both
    /// sides can. Without libfabric, or without the provider, links go by tcp.
    #[arg(long, env = "QUORATE_TRANSPORT", value_enum, default_value = "tcp")]
    pub transport: Transport,
    /// libfabric's provider: efa on AWS, verbs for InfiniBand and RoCE, shm between processes of one machine, tcp for
    /// tests. All servers of a fleet get the same.
    #[arg(long, env = "QUORATE_OFI_PROVIDER", value_parser = |name: &str| name.parse::<Provider>())]
    pub ofi_provider: Option<Provider>,
}

impl TransportFlags {
    pub fn is_ofi(&self) -> bool {
        self.transport == Transport::Ofi
    }

    /// One-sided writes, where the operator wants them. `host`: this machine's address.
    pub fn fabric(&self, host: String) -> Option<Fabric> {
        let provider = self.ofi_provider.filter(|_| self.is_ofi())?;
        Some(Fabric { provider, host })
    }

    /// The flag at fault, and what to do.
    pub fn validate(&self) -> Result<(), String> {
        if self.is_ofi() && self.ofi_provider.is_none() {
            return Err(
                "--transport ofi needs --ofi-provider: efa, verbs, shm or tcp (fi_info lists them)".into(),
            );
        }
        Ok(())
    }
}
