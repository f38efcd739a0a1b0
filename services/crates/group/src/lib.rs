//! One group on one server, as a pure state machine: its replica, and all rules between the replica and its clients.
//!
//! [`Group::step`] takes an [`Event`], and [`Group::flush`] ends a round of events. Both get the [`Turn`], which
//! holds the time and the facts of the server. Both push [`Output`]s. `services/replica` and the simulator
//! (`services/verify/sim`) run this very code; they own sockets, disks, clocks and threads, and no rule.
//!
//! A handler owns the state of one concern. [`Group`] hands it the replica to read, and no other handler's state:
//!
//! - `intake`: `attachments` (clients with their sessions and permissions), `appends` (budget, queue, checks),
//!   `burst` (the rate above the reservation), `project_share` (the group's part of its project's guarantee)
//! - `reading`: `reads` (single reads, `waiting_reads` among them, subscriptions with credit, `pages` whose payloads are read from disk) and
//!   `repairs` (damaged records, asked for at other replicas)
//! - `counters`: usage
//! - `clock`: whether the wall clock can be believed; the server's, not a group's
//! - `spans`: traced batches
//! - `memory`: what the group holds, and its part of the shard's [`Pool`]
//!
//! Beside the groups, [`HangWatch`] says how long a part of their server has hung. [`Quarantines`] has the rules for
//! replicas that an assertion stopped.
//!
//! Invariants:
//! - a refusal says *unknown* whenever the batch may have been ordered (`outcome`);
//! - an append is ordered only for the channel that holds its session;
//! - a reader gets bytes of the log generation in which it asked, whole, and never more than its credit and one page.

mod absent;
mod answers;
mod append_queue;
mod appends;
mod attachments;
mod burst;
mod clock;
mod counters;
mod event;
mod grant;
mod group;
mod hang_watch;
mod intake;
mod latencies;
mod layout_seal;
mod memory;
mod outcome;
mod output;
mod pages;
mod partition_demand;
mod pool;
mod project_share;
mod quarantines;
mod rate_meter;
mod reading;
mod reads;
mod refusal;
mod repairs;
mod span;
mod spans;
mod throughput;
mod turn;
mod view;
mod waiting_reads;

pub use absent::{Absence, refuse_absent};
pub use clock::{Doubt, ServerClock, Vouch};
pub use event::{CopierId, Event, Generation, Lack, PageRead, Reader, Request};
pub use grant::Grant;
pub use group::Group;
pub use hang_watch::{HangWatch, Mark};
pub use output::{Output, Outputs, Record, Report};
pub use pool::Pool;
pub use quarantines::{Quarantines, Release, Standing};
pub use refusal::{Refusal, refused_as};
pub use span::{Span, SpanKind};
pub use throughput::Work;
pub use turn::Turn;
