//! Requests to a group that is not on this server.

use quorate_chain::ClientRef;
use quorate_types::Code;
use quorate_wire::client::kind;

use crate::event::Request;
use crate::output::{Output, Outputs};
use crate::refusal::Refusal;

/// The reason why a group is not served here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It is elsewhere, or was deleted.
    NotHere,
    /// Nothing of it is left anywhere.
    Lost,
    /// It is quarantined as a whole.
    Quarantined,
}

/// Refuses what a client asks of a group that is not here.
pub fn refuse_absent(client: ClientRef, request: &Request, absence: Absence, out: &mut Outputs) {
    let code = match absence {
        Absence::NotHere => Code::GroupNotHere,
        Absence::Lost => Code::GroupLost,
        Absence::Quarantined => Code::GroupQuarantined,
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
