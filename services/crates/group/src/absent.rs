//! Requests to a group that is not on this server.

use quorate_chain::ClientRef;
use quorate_types::Code;
use quorate_wire::client::kind;

use crate::event::Request;
use crate::output::{Output, Outputs};
use crate::refusal::Refusal;

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
            let refusal = Refusal::without_group(message, code);
            out.client(client, refusal.into_message());
        }
    }
}
