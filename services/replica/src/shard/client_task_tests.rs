//! Frames of a client for which no group is asked.

use std::io::Read;

use bytes::BytesMut;
use quorate_wire::client::{Append, NO_EXPECTED_OFFSET, Outcome};
use tokio::net::TcpListener;

use super::*;
use crate::shard::test_shard::test_shard;

#[test]
fn a_channel_that_is_not_attached_does_not_tell_whether_a_batch_was_ordered() {
    let dir = std::env::temp_dir().join(format!("quorate-unattached-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut shard = test_shard(&dir, |_| {}).shard;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let (_reading, writing) = quorate_transport::plain(accepted);
        let (connection, _, _) = shard.open_connection(Rc::new(writing), 1);
        let client = ClientRef {
            connection,
            channel: 3,
        };
        let payload = Bytes::from_static(&[0; 4]);
        let append = Append {
            seq: 8,
            floor_index: 0,
            timeout_ms: 0,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            expected_offset: NO_EXPECTED_OFFSET,
            fencing_token: 0,
            payload,
        };
        shard.channel_message(client, Message::Append(append), None);
        shard.channel_message(client, Message::Status { request: 9 }, None);
        shard.flush();
        shard.close_connection(connection);
        drop((shard, _reading));
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        assert_eq!(
            refusals(&bytes),
            [(8, Outcome::Unknown as u8), (9, Outcome::Refused as u8)]
        );
    });
    std::fs::remove_dir_all(dir).unwrap();
}

/// Number and outcome of each refusal.
fn refusals(bytes: &[u8]) -> Vec<(u64, u8)> {
    let mut bytes = BytesMut::from(bytes);
    let mut refusals = Vec::new();
    while let Some(frame) = quorate_wire::decode_frame(&mut bytes, FRAME_BYTES_MAX).unwrap() {
        if let Message::Refused(refused) = Message::decode(&frame).unwrap() {
            assert_eq!(refused.code, Code::UnknownChannel as u16);
            refusals.push((refused.id, refused.outcome));
        }
    }
    refusals
}
