//! The state of a whole fleet: its parts, each in a file of its own, and questions about them. Nothing happens here; the
//! behaviour of each part stands in the folder or file of its name beside this one.
//!
//! - [`World`]: all of it
//! - [`Schedule`]: events that are due
//! - [`Server`], [`Hang`], [`Hosted`], [`Control`], [`Link`]: servers, their groups and connections
//! - [`Coordinators`], [`Member`], [`MemberLog`]: coordinators and their logs
//! - [`Writer`], [`Reader`], [`Connection`]: clients
//! - `queries`, `generations`: questions about several parts

mod batch;
mod client;
mod connection;
mod control;
mod coordinators;
mod disk_read;
mod former_logs;
mod generations;
mod hang;
mod hosted;
mod link;
mod member;
mod member_log;
mod message;
mod node;
mod pipe;
mod queries;
mod reader;
mod schedule;
mod server;
mod token;
mod transcript;
mod world;
mod writer;

pub use batch::Outstanding;
pub use client::{ClientId, ClientState};
pub use connection::Connection;
pub use control::Control;
pub use coordinators::{Coordinators, Replacement, SPARES};
pub use disk_read::DiskRead;
pub use former_logs::FormerLogs;
pub use hang::Hang;
pub use hosted::Hosted;
pub use link::Link;
pub use member::{Arrived, Member};
pub use member_log::{MemberLog, Synced};
pub use message::{Delivered, FromClient, ToClient};
pub use node::Node;
pub use pipe::Pipe;
pub use reader::{Asked, Reader};
pub use schedule::{Schedule, Scheduled};
pub use server::{Server, WALL_BEGINS_US, turn};
pub use token::{Grant, permission_of};
pub use transcript::{Requested, Transcript};
pub use world::World;
pub use writer::{Habit, Writer};
