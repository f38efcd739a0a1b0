//! State of a link: it moves from the link's own task to a connection's task, and back with the reason.

use std::sync::Arc;
use std::time::Duration;

use quorate_wire::client::Refused;

use crate::codes::client_side;
use crate::errors::{Failure, info};
use crate::handles::Handles;
use crate::route::Route;
use crate::waker::Wake;
use crate::writer::Reroute;

pub(crate) struct LinkState<P> {
    pub port: P,
    pub handles: Arc<Handles>,
    /// Version of the handle that the route has.
    pub seen_version: u64,
    pub route: Route,
    pub wake: Arc<Wake>,
    /// Time to poll for an awaited answer before the task sleeps.
    pub spin: Duration,
    /// Refusals of the handle's token or authority since the last success.
    pub rejections: u32,
    /// The address that could not be reached last, whose connection broke, or whose head is isolated.
    pub unreachable: String,
}

impl<P> LinkState<P> {
    pub fn new(port: P, handles: Arc<Handles>, wake: Arc<Wake>) -> Self {
        let (handle, seen_version) = handles.current();
        let route = Route::new(handle.addresses(), handles.can_refresh());
        Self {
            port,
            handles,
            seen_version,
            route,
            wake,
            spin: Duration::ZERO,
            rejections: 0,
            unreachable: String::new(),
        }
    }

    pub fn attached(&mut self, address: &str) {
        self.rejections = 0;
        self.unreachable.clear();
        self.route.attached(address);
    }
}

/// Reason for leaving a connection.
#[derive(Clone)]
pub(crate) enum End {
    Lost(Failure),
    /// No answer came.
    Silent(Failure),
    Left(Reroute),
    AttachRefused(Refused),
    Goodbye(Failure),
    Over,
}

impl End {
    pub fn failure(&self, address: &str) -> Failure {
        let message = match self {
            End::Lost(failure) | End::Silent(failure) | End::Goodbye(failure) => failure.message.clone(),
            End::Left(reroute) => reroute.reason.clone(),
            End::AttachRefused(refused) => {
                format!("attach refused with {}", info(refused.code).name)
            }
            End::Over => "closed".to_string(),
        };
        Failure::new(client_side::NO_CONNECTION, format!("{address}: {message}"))
    }
}
