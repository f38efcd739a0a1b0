//! Connections that several links share: one to each server, for as many groups as there are.

use std::sync::Arc;

use tokio::time::timeout;

use crate::codes::client_side;
use crate::connection::Connection;
use crate::errors::Failure;
use crate::handle::Handle;
use crate::limits::DIAL_TIMEOUT;
use crate::places::{Destination, Place, Places, State, Wanted};
use crate::port::Port;
use crate::stream::Stream;
use crate::trust::open;

/// Opens and serves connections; cheap to clone. Links with clones of one pool share connections.
pub(crate) struct Pool<P> {
    places: Places<Stream<P>>,
    /// Serves the connection in a task of its own.
    spawn: fn(Opening<P>),
}

impl<P> Clone for Pool<P> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            spawn: self.spawn,
        }
    }
}

impl<P: Port + 'static> Pool<P> {
    /// For links of one thread, within a `LocalSet`.
    pub fn local() -> Self {
        Self::spawning(|opening| {
            tokio::task::spawn_local(opening.run());
        })
    }

    fn spawning(spawn: fn(Opening<P>)) -> Self {
        Self {
            places: Places::new(),
            spawn,
        }
    }

    /// A place on a connection to `address`, known or new.
    pub fn place(&self, address: &str, handle: &Arc<Handle>) -> Place<Stream<P>> {
        let destination = Destination {
            address: address.to_string(),
            ca_pem: handle.tls.as_ref().map(|tls| tls.ca_pem.clone()),
        };
        let (place, wanted) = self.places.take(&destination);
        if let Some(wanted) = wanted {
            (self.spawn)(Opening {
                places: self.places.clone(),
                handle: handle.clone(),
                address: destination.address,
                wanted,
            });
        }
        place
    }
}

impl<P: Port + Send + 'static> Pool<P> {
    /// For links that any thread of the runtime may serve.
    pub fn any_thread() -> Self {
        Self::spawning(|opening| {
            tokio::spawn(opening.run());
        })
    }
}

/// A connection about to be opened.
struct Opening<P> {
    places: Places<Stream<P>>,
    handle: Arc<Handle>,
    address: String,
    wanted: Wanted<Stream<P>>,
}

impl<P: Port + 'static> Opening<P> {
    /// Opens the connection and serves it until no link has a place on it, or it breaks.
    async fn run(self) {
        let (address, number) = (self.address, self.wanted.number);
        let opening = timeout(DIAL_TIMEOUT, open(address.clone(), self.handle.trust()));
        let opened = opening.await.unwrap_or_else(|_| {
            let message = format!("{address}: it did not answer in time");
            Err(Failure::new(client_side::NO_CONNECTION, message))
        });
        let opened = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                self.places.forget(number);
                self.wanted.state.send_replace(State::Failed(failure));
                return;
            }
        };
        self.wanted.state.send_replace(State::Open);
        let places = self.places;
        let mut connection = Connection::new(&address, opened, self.wanted.streams);
        let end = connection.serve(|| places.is_deserted(number)).await;
        places.forget(number);
        connection.end(&end);
    }
}
