//! The engine, pure: `take(now, input)`, then `take_output() -> commands for the log, and what follows from them`.
//!
//! - `core`: inputs, each to its handler
//! - `registrar`: servers are let in, or refused
//! - `messages`: servers' messages
//! - `sequencer`: a command gets its place in the log, is applied, and its effects find their connections
//! - `fleet_version`: what must change before it can be raised
//! - `heard`: servers' reports of their groups, as told so far
//! - `roll_call`: the wait for servers after a start; `evidence`: a log that is older than they know
//! - `connections`, `refusals`: servers and their connections; answers left to an address
//! - `io`: inputs and outputs
//!
//! The planner says what to propose, the state what follows. There is no socket, clock, disk, secret or certificate:
//! readings of clocks and digests come in with the inputs. The shell adds peer tokens and certificates to the output.
//! The simulator runs this very code.

mod connections;
mod core;
mod evidence;
mod fleet_version;
mod heard;
mod io;
mod messages;
mod refusals;
mod registrar;
mod roll_call;
mod sequencer;

pub use self::core::Engine;
pub use fleet_version::lacks;
pub use heard::Heard;
pub use io::{
    Behind, Candidate, CertificateOrder, Input, Note, Now, Outgoing, Output, RollCallView, Settings, TICK_MS,
};
