//! A coordinator's side of the links: made at its start.

use std::sync::{Arc, OnceLock};

use quorate_certificates::{FleetKeys, members};
use quorate_types::limits::COORDINATOR_QUEUE_MAX;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::hello::{Contact, Identity};
use super::join::ask;
use super::links::{Links, connector};
use super::listener::{FromMember, serve};
use super::ring_thread::Rings;
use crate::exit::Failure;
use crate::options::Options;
use crate::shell::listeners::listen;
use crate::shell::recovery::Recovery;

/// The listener for other coordinators, and the links to them.
pub struct Side {
    of_task: Option<ForTask>,
    /// None: it stays alone.
    listening: Option<Listening>,
    /// Coordinators that are asked to take it in, or to note that it has moved.
    ask: Vec<String>,
}

/// For the task that owns the coordinator.
pub struct ForTask {
    /// None: it stays alone.
    pub links: Option<Links>,
    pub own: Identity,
    pub inputs: mpsc::Receiver<FromMember>,
    /// Whether the others know it, where it is now.
    pub is_known: watch::Sender<bool>,
}

struct Listening {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    own: Identity,
    inputs: mpsc::Sender<FromMember>,
    rings: Option<Rings>,
    is_known: watch::Receiver<bool>,
}

impl Side {
    /// `contact`: where servers and callers reach this coordinator.
    pub async fn of(
        options: &Options,
        recovery: &Recovery,
        keys: &FleetKeys,
        contact: Contact,
    ) -> Result<Self, Failure> {
        let mut own = Identity {
            member: recovery.member,
            process: format!("{:016x}", rand::random::<u64>()),
            fleet_version: Arc::default(),
            fleet: Arc::new(recovery.fleet.map_or_else(OnceLock::new, OnceLock::from)),
            address: String::new(),
            contact,
        };
        let (inputs, from_members) = mpsc::channel(COORDINATOR_QUEUE_MAX);
        let (is_known, is_known_seen) = watch::channel(false);
        let mut side = Self {
            of_task: Some(ForTask {
                links: None,
                own: own.clone(),
                inputs: from_members,
                is_known,
            }),
            listening: None,
            ask: Vec::new(),
        };
        let Some(listen_at) = options.listen_members else {
            return Ok(side);
        };
        let unusable = |e: rustls::Error| Failure::configuration(format!("the fleet's key: {e}"));
        let acceptor = TlsAcceptor::from(Arc::new(members::server_config(keys).map_err(unusable)?));
        let connector = connector(keys)?;
        let listener = listen(listen_at, "--listen-members").await?;
        let bound = listener.local_addr();
        let bound = bound
            .map_err(|e| Failure::configuration(e.to_string()))?
            .to_string();
        own.address = options.advertise_members.clone().unwrap_or(bound);
        let others = recovery.disk.members.iter().filter(|(id, _)| *id != own.member);
        let others = others.map(|(_, member)| member.address.clone());
        let ask = options.join.iter().cloned().chain(others);
        side.ask = ask.filter(|address| !address.is_empty()).collect();
        let fabric = options.transport.fabric(listen_at.ip().to_string());
        let rings = fabric.map(Rings::start).transpose();
        let rings = rings.map_err(|e| Failure::configuration(format!("--transport ofi: {e}")))?;
        let of_task = side.of_task.as_mut().expect("made above");
        of_task.own = own.clone();
        of_task.links = Some(Links::new(
            connector.clone(),
            own.clone(),
            inputs.clone(),
            rings.clone(),
        ));
        side.listening = Some(Listening {
            listener,
            acceptor,
            connector,
            own,
            inputs,
            rings,
            is_known: is_known_seen,
        });
        Ok(side)
    }

    /// Others reach it there. None: it stays alone.
    pub fn address(&self) -> Option<String> {
        let listening = self.listening.as_ref();
        listening.map(|listening| listening.own.address.clone())
    }

    /// The part of the task that owns the coordinator: once.
    pub fn for_task(&mut self) -> ForTask {
        self.of_task.take().expect("it is asked for once")
    }

    /// Listens to others, and asks to be taken in.
    pub fn serve(self) {
        let Some(Listening {
            listener,
            acceptor,
            connector,
            own,
            inputs,
            rings,
            is_known,
        }) = self.listening
        else {
            return;
        };
        tokio::spawn(serve(listener, acceptor, own.clone(), inputs, rings));
        tokio::spawn(ask(connector, own, self.ask, is_known));
    }
}
