//! Requests to a group that is not on this server.

use quorate_chain::ClientRef;
use quorate_types::Code;
use quorate_wire::client::{Message, kind};

use crate::event::Request;
use crate::output::{Output, Outputs};
use crate::refusal::{Refusal, refused_as};

/// Refuses what a client asks of a group that is not here; `is_lost`: nothing of it is left anywhere.
pub fn refuse_absent(client: ClientRef, request: &Request, is_lost: bool, out: &mut Outputs) {
    let code = if is_lost {
        Code::GroupLost
    } else {
        Code::GroupNotHere
    };
    match request {
        Request::Gone => {}
        Request::Attach { number, .. } => {
            let message = Refusal::new(kind::ATTACH, 0, code).into_message();
            out.push(Output::NotAttached {
                client,
                number: *number,
                message,
            });
        }
        Request::Message { message, .. } => {
            let (op, id) = refused_as(message);
            let mut refusal = Refusal::new(op, id, code);
            // It may be a retry of a batch that another replica ordered. A lost group has no batch any more.
            refusal.is_unknown = !is_lost && matches!(message, Message::Append(_));
            out.client(client, refusal.into_message());
        }
    }
}
