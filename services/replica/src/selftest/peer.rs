//! The process at the other end.

use std::io::{BufReader, stdin, stdout};

use quorate_fabric::{Domain, Provider};
use quorate_rings::SLOTS;

use super::end::{Channel, End};
use super::measure::{MESSAGES_BYTES, PATIENCE, PIECE_BYTES};

/// Sends back what comes, sends the stream, and writes on when its link is over.
pub fn run(provider: Provider, host: &str) -> Result<(), String> {
    let mut channel = Channel {
        input: BufReader::new(stdin().lock()),
        output: stdout().lock(),
    };
    let domain = Domain::open(provider, host).map_err(|e| e.to_string())?;
    let mut end = End::open(&domain, &mut channel)?;
    let (mut sent_back, mut come) = (0, Vec::new());
    while sent_back < MESSAGES_BYTES {
        come.clear();
        end.receive(&mut come)?;
        end.send(&come, PATIENCE)?;
        sent_back += come.len();
    }
    end.exchange_streams(PATIENCE)?;
    channel.say("has the stream")?;
    channel.hear()?;
    // Its key is worth nothing any more: errors are what is to be seen.
    for _ in 0..SLOTS {
        if end.put(&[0xff; PIECE_BYTES]).is_err() || end.poll().is_err() {
            break;
        }
    }
    channel.hear().map(drop)
}
