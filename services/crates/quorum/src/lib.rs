//! A log that a majority of coordinators agrees on. Pure: `take(now_ms, event)`, then `take_commands()`.
//!
//! - `replica`: one member; events, each to its role
//! - `election`, `follower`, `leader`: the roles; `progress`: a leader's view of another member; `reads`: reads that wait
//! - `kept`: everything that has to be on the disk, and messages that wait for it
//! - `log`, `entry`, `members`, `ids`: entries since a base, and the members that they name
//! - `message`: between members; `encoding`: as bytes; `io`: events and commands; `refused`: calls that are not done
//! - `limits`: bounds, with their reasons
//!
//! The protocol is Raft (Ongaro 2014) with pre-vote, one change of members at a time, and reads by a round with a majority.
//! No clock is part of a safety argument. There is no socket, disk, clock or randomness: the shell writes, syncs, sends,
//! and tells the time. Simulators run this very code.

mod election;
mod encoding;
mod entry;
mod follower;
mod ids;
mod io;
mod kept;
mod leader;
mod limits;
mod log;
mod members;
mod message;
mod progress;
mod reads;
mod refused;
mod replica;

pub use encoding::{decode_message, encode_message};
pub use entry::{Content, Entry};
pub use ids::{MemberId, Point, Position, Term};
pub use io::{CallId, Command, Disk, Event, RoleView, Settings, Snapshot, Vote, Write, WriteId};
pub use limits::{SNAPSHOT_CHUNK_BYTES, UNCOMMITTED_BYTES_MAX, VOTERS_MAX};
pub use members::{Change, Member, Members};
pub use message::{Body, Message};
pub use refused::Refused;
pub use replica::{MemberView, Replica, View};
