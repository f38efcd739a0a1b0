//! The rules of one group, without a clock, a disk or a socket.

mod appending;
mod attaching;
mod burst;
mod reading;
mod repairing;
mod rig;
