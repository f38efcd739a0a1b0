//! Connections that several links share: one to each server, for as many groups as there are.

use std::sync::{Arc, Mutex, MutexGuard};

use quorate_types::limits::CHANNELS_PER_CONNECTION_MAX;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::carrier::{Carrier, Guest};
use crate::codes::client_side;
use crate::errors::Failure;
use crate::handle::Handle;
use crate::limits::DIAL_TIMEOUT;
use crate::link::Port;
use crate::trust::open;

/// The open connections of some links; cheap to clone. Links that were given clones of it share connections.
pub(crate) struct Carriers<P> {
    open: Arc<Mutex<Vec<Entry<P>>>>,
    /// Has the connection served by a task of its own.
    spawn: fn(Opening<P>),
}

impl<P> Clone for Carriers<P> {
    fn clone(&self) -> Self {
        Self {
            open: self.open.clone(),
            spawn: self.spawn,
        }
    }
}

/// Who may share a connection: links to one address that trust the same authority.
#[derive(Clone, PartialEq, Eq)]
struct Destination {
    address: String,
    ca_pem: Option<String>,
}

struct Entry<P> {
    number: u64,
    destination: Destination,
    boarding: mpsc::UnboundedSender<Guest<P>>,
    state: watch::Receiver<State>,
    /// Links that are served, or are about to come.
    places: usize,
}

#[derive(Clone)]
pub(crate) enum State {
    Opening,
    Open,
    Failed(Failure),
}

/// A connection about to be opened.
pub(crate) struct Opening<P> {
    carriers: Carriers<P>,
    number: u64,
    handle: Arc<Handle>,
    destination: Destination,
    boarded: mpsc::UnboundedReceiver<Guest<P>>,
    state: watch::Sender<State>,
}

/// A place on a connection that is open, or being opened. It stays until all places are given up.
pub(crate) struct Place<P> {
    carriers: Carriers<P>,
    number: u64,
    pub boarding: mpsc::UnboundedSender<Guest<P>>,
    state: watch::Receiver<State>,
}

impl<P: Port + 'static> Carriers<P> {
    /// For links of one thread, within a `LocalSet`.
    pub fn local() -> Self {
        Self::spawning(|opening| {
            tokio::task::spawn_local(opening.run());
        })
    }

    fn spawning(spawn: fn(Opening<P>)) -> Self {
        Self {
            open: Arc::default(),
            spawn,
        }
    }

    /// A place on a connection to `address`: on one that is there, or on a new one.
    pub fn place(&self, address: &str, handle: &Arc<Handle>) -> Place<P> {
        let destination = Destination {
            address: address.to_string(),
            ca_pem: handle.tls.as_ref().map(|tls| tls.ca_pem.clone()),
        };
        let mut open = self.open();
        let shared = open.iter_mut().find(|entry| {
            entry.destination == destination && (1..CHANNELS_PER_CONNECTION_MAX).contains(&entry.places)
        });
        if let Some(entry) = shared {
            entry.places += 1;
            return self.place_on(entry);
        }
        let (boarding, boarded) = mpsc::unbounded_channel();
        let (state, seen_state) = watch::channel(State::Opening);
        let number = rand::random();
        let entry = Entry {
            number,
            destination: destination.clone(),
            boarding,
            state: seen_state,
            places: 1,
        };
        let place = self.place_on(&entry);
        open.push(entry);
        drop(open);
        (self.spawn)(Opening {
            carriers: self.clone(),
            number,
            handle: handle.clone(),
            destination,
            boarded,
            state,
        });
        place
    }

    fn place_on(&self, entry: &Entry<P>) -> Place<P> {
        Place {
            carriers: self.clone(),
            number: entry.number,
            boarding: entry.boarding.clone(),
            state: entry.state.clone(),
        }
    }
}

impl<P: Port + Send + 'static> Carriers<P> {
    /// For links that may be served by any thread of the runtime.
    pub fn any_thread() -> Self {
        Self::spawning(|opening| {
            tokio::spawn(opening.run());
        })
    }
}

impl<P> Carriers<P> {
    fn open(&self) -> MutexGuard<'_, Vec<Entry<P>>> {
        self.open.lock().expect("no holder of the lock panics")
    }

    /// Nobody new is taken in.
    fn forget(&self, number: u64) {
        self.open().retain(|entry| entry.number != number);
    }

    /// Whether nobody has a place, nor will get one.
    fn is_deserted(&self, number: u64) -> bool {
        let mut open = self.open();
        open.retain(|entry| entry.number != number || entry.places > 0);
        open.iter().all(|entry| entry.number != number)
    }
}

impl<P> Place<P> {
    /// Waits until the connection is open. Put nothing around it: opening ends in time by itself.
    pub fn ready(&self) -> impl Future<Output = Result<(), Failure>> + use<P> {
        let mut state = self.state.clone();
        async move {
            let is_decided = |state: &State| !matches!(state, State::Opening);
            match state.wait_for(is_decided).await.as_deref() {
                Ok(State::Failed(failure)) => Err(failure.clone()),
                Ok(_) => Ok(()),
                Err(_) => Err(Failure::new(client_side::NO_CONNECTION, "the runtime ends")),
            }
        }
    }
}

impl<P> Drop for Place<P> {
    fn drop(&mut self) {
        let mut open = self.carriers.open();
        if let Some(entry) = open.iter_mut().find(|entry| entry.number == self.number) {
            entry.places -= 1;
        }
    }
}

impl<P: Port + 'static> Opening<P> {
    /// Opens the connection and serves it until nobody has a place on it, or it breaks.
    async fn run(self) {
        let Destination { address, .. } = self.destination;
        let opening = timeout(DIAL_TIMEOUT, open(address.clone(), self.handle.trust()));
        let opened = opening.await.unwrap_or_else(|_| {
            let message = format!("{address}: it did not answer in time");
            Err(Failure::new(client_side::NO_CONNECTION, message))
        });
        let opened = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                self.carriers.forget(self.number);
                self.state.send_replace(State::Failed(failure));
                return;
            }
        };
        self.state.send_replace(State::Open);
        let (carriers, number) = (self.carriers.clone(), self.number);
        let mut carrier = Carrier::new(&address, opened, self.boarded);
        let end = carrier.serve(|| carriers.is_deserted(number)).await;
        carriers.forget(number);
        carrier.end(&end);
    }
}
