//! Token buckets and the queue in front of a group's head, pure: the caller passes the time in.
//!
//! - [`Buckets`]: one bucket per resource; a request passes if every bucket has its cost (Filo §3 "rate limiters",
//!   Pulsar §4.4)
//! - [`grant`]: the class of requests beyond the reservation, on capacity that others do not use now (Filo §4.2)
//! - [`Reservation`]: the time at which the reservation alone lets a request pass, by which the SLA is judged
//! - [`ReadReservation`]: the same of reads
//! - [`BurstWindow`]: whether they pass, by the time that batches take (LEDBAT, RFC 6817)
//! - [`Pace`]: a bucket of bytes for work that may wait
//! - [`FairQueue`]: the connection to read next, before anything is taken from sockets (Pisces §3.4)
//! - `shares`: the part of each session of a group, so that one which floods the group delays itself
//! - [`Admission`]: buckets and a bounded queue, first in, first out but for shares; beyond it, a throttle answer with the
//!   time to retry, never a silent drop

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

mod admission;
mod buckets;
mod burst_window;
mod delays;
mod fair;
pub mod grant;
mod pace;
mod queue_limits;
mod read_reservation;
mod reservation;
mod shares;

pub use admission::{Admission, Admitted, Offer, Polled, Ready};
pub use buckets::{Buckets, Conformance, RetryAfter};
pub use burst_window::BurstWindow;
pub use fair::{FairQueue, Tenant, Turn};
pub use grant::Flow;
pub use pace::Pace;
pub use queue_limits::QueueLimits;
pub use read_reservation::{PageTicket, ReadReservation};
pub use reservation::Reservation;
