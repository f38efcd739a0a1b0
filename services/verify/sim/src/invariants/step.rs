//! The step that took in a client's request, as invariants look at it.

use quorate_group::{Output, Outputs};
use quorate_wire::client::{Message, Refused};

use crate::fleet::Delivered;

/// A group took in a client's request, and has these outputs.
pub struct Step<'a> {
    pub s: usize,
    pub g: usize,
    pub delivered: &'a Delivered,
    pub out: &'a Outputs,
}

/// The refusal of this very request among the outputs.
pub fn refusal_in<'a>(out: &'a Outputs, delivered: &Delivered) -> Option<&'a Refused> {
    let (op, id) = quorate_group::refused_as(&delivered.message);
    let mut refusals = out.list.iter().filter_map(|output| match output {
        Output::Client {
            client,
            message: Message::Refused(refused),
        } if *client == delivered.client => Some(refused),
        _ => None,
    });
    refusals.find(|refused| (refused.op, refused.id) == (op, id))
}
