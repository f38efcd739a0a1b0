//! Messages between clients and servers, on their way.

use quorate_chain::ClientRef;
use quorate_types::Offset;
use quorate_wire::client::Message;

#[derive(Debug)]
pub struct FromClient {
    pub connection: u64,
    /// The end of the committed log when it was sent.
    pub end_offset: Offset,
    /// `None`: the connection is gone.
    pub message: Option<Message>,
}

#[derive(Debug)]
pub enum ToClient {
    Message(Message),
    /// The connection is gone.
    Gone,
}

/// The message that a group takes in just now.
#[derive(Debug)]
pub struct Delivered {
    pub client: ClientRef,
    pub message: Message,
}
