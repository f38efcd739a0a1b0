//! The user of a link's connection: appends or reads.

use quorate_transport::Outbox;
use quorate_types::Micros;
use quorate_wire::client::Attached;
use quorate_wire::{Frame, WireError};

use crate::errors::Failure;
use crate::writer::Reroute;

pub(crate) trait Port {
    /// The session for ATTACH; 0 when nothing will be appended.
    fn session(&self) -> u64;
    /// A [`Reroute`] means that this replica is the wrong one.
    fn on_attached(&mut self, attached: &Attached, now: Micros) -> Option<Reroute>;
    fn on_frame(&mut self, frame: &Frame, now: Micros) -> Result<(), WireError>;
    fn on_detached(&mut self, reason: &Failure);
    /// There is still no connection, for this reason.
    fn set_reason(&mut self, reason: &Failure);
    /// No retry will help: all callers are answered. The next call starts the link again.
    fn on_hopeless(&mut self, failure: &Failure, now: Micros);
    /// Takes new calls and ends late ones, connected or not.
    fn turn(&mut self, now: Micros);
    /// Puts the messages due now into the outbox.
    fn write(&mut self, now: Micros, channel: u32, outbox: &mut Outbox);
    /// Time at which `turn` and `write` are due, whatever else happens.
    fn wake_at(&self) -> Micros;
    /// A reroute since the last call of this function, if any.
    fn take_reroute(&mut self) -> Option<Reroute>;
    fn awaits_answer(&self) -> bool;
    /// Whether a connection is of use now.
    fn is_busy(&self) -> bool;
    /// No call will follow, and none is left.
    fn is_over(&self) -> bool;
}
