//! Places on open connections. A connection stays open while a link has a place on it. `S`: a stream of a link.

use std::sync::{Arc, Mutex, MutexGuard};

use quorate_types::limits::CHANNELS_PER_CONNECTION_MAX;
use tokio::sync::{mpsc, watch};

use crate::codes::client_side;
use crate::errors::Failure;

/// The open connections of some links; cheap to clone.
pub(crate) struct Places<S>(Arc<Mutex<Vec<Entry<S>>>>);

/// Links share a connection if they go to one address and trust the same authority.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub address: String,
    pub ca_pem: Option<String>,
}

struct Entry<S> {
    number: u64,
    destination: Destination,
    streams: mpsc::UnboundedSender<S>,
    state: watch::Receiver<State>,
    /// Links with a stream, or about to open one.
    places: usize,
}

#[derive(Clone)]
pub(crate) enum State {
    Opening,
    Open,
    Failed(Failure),
}

/// A connection to open.
pub(crate) struct Wanted<S> {
    pub number: u64,
    pub streams: mpsc::UnboundedReceiver<S>,
    pub state: watch::Sender<State>,
}

/// A place on a connection that is open, or being opened. It is freed when dropped.
pub(crate) struct Place<S> {
    all: Places<S>,
    number: u64,
    pub streams: mpsc::UnboundedSender<S>,
    state: watch::Receiver<State>,
}

impl<S> Places<S> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// A place on a known connection, or on a new one that the caller must open.
    pub fn take(&self, destination: &Destination) -> (Place<S>, Option<Wanted<S>>) {
        let mut entries = self.entries();
        let shared = entries.iter_mut().find(|entry| {
            entry.destination == *destination && (1..CHANNELS_PER_CONNECTION_MAX).contains(&entry.places)
        });
        if let Some(entry) = shared {
            entry.places += 1;
            return (self.place_on(entry), None);
        }
        let (streams, new_streams) = mpsc::unbounded_channel();
        let (state, seen_state) = watch::channel(State::Opening);
        let number = rand::random();
        let entry = Entry {
            number,
            destination: destination.clone(),
            streams,
            state: seen_state,
            places: 1,
        };
        let place = self.place_on(&entry);
        entries.push(entry);
        let wanted = Wanted {
            number,
            streams: new_streams,
            state,
        };
        (place, Some(wanted))
    }

    fn place_on(&self, entry: &Entry<S>) -> Place<S> {
        Place {
            all: self.clone(),
            number: entry.number,
            streams: entry.streams.clone(),
            state: entry.state.clone(),
        }
    }

    /// The connection takes no new link.
    pub fn forget(&self, number: u64) {
        self.entries().retain(|entry| entry.number != number);
    }

    /// Whether no link has a place, nor will get one.
    pub fn is_deserted(&self, number: u64) -> bool {
        let mut entries = self.entries();
        entries.retain(|entry| entry.number != number || entry.places > 0);
        entries.iter().all(|entry| entry.number != number)
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry<S>>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl<S> Clone for Places<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Place<S> {
    /// Waits until the connection is open. It needs no timeout: opening has its own.
    pub fn ready(&self) -> impl Future<Output = Result<(), Failure>> + use<S> {
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

impl<S> Drop for Place<S> {
    fn drop(&mut self) {
        let mut entries = self.all.entries();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.number == self.number) {
            entry.places -= 1;
        }
    }
}
