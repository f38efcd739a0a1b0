//! The rules of one group, without a clock, a disk or a socket.

mod appending;
mod attaching;
mod burst;
mod clock;
mod configuring;
mod feeding;
mod layouts;
mod metering;
mod quarantining;
mod reading;
mod repairing;
mod rig;
mod sharing;
mod suspending;
mod tracing;
