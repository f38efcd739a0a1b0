//! Frames between servers: as `client_frames`, and with right checksums of batches.

#![cfg_attr(fuzzing, no_main)]

use bytes::{BufMut, Bytes, BytesMut};
use quorate_fuzz::{Input, allocation};
use quorate_types::GroupId;
use quorate_types::limits::FRAME_BYTES_MAX;
use quorate_wire::batch::{BATCH_HEADER_LEN, Batch, BatchHeader};
use quorate_wire::one_sided::OneSided;
use quorate_wire::peer::{Envelope, Handshake, Message, Replicate, SyncReply, kind};
use quorate_wire::share::Share;
use quorate_wire::{Frame, decode_frame, encode_frame};

/// Longer texts are truncated by encoding.
const TEXT_BYTES_MAX: usize = 8_192;

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => stream(input.rest()),
        1 => sound_frame(input),
        2 => replicate(input),
        _ => base(input),
    }
}

fn stream(bytes: &[u8]) {
    let mut stream = BytesMut::from(bytes);
    while let Ok(Some(frame)) =
        allocation::bounded(stream.len(), || decode_frame(&mut stream, FRAME_BYTES_MAX))
    {
        check(&frame);
    }
}

fn sound_frame(mut input: Input<'_>) {
    let kind = input.byte();
    let head_len = usize::from(input.u16()) % 10_000;
    let head = input.bytes(head_len);
    check(&frame(kind, head, input.rest()));
}

/// A batch whose header has any content under its right checksum, with a payload that may be its own.
fn replicate(mut input: Input<'_>) {
    let mut header = [0; BATCH_HEADER_LEN];
    let given = input.bytes(BATCH_HEADER_LEN);
    header[..given.len()].copy_from_slice(given);
    let mut head = vec![0; 16];
    (0..4).for_each(|_| head.extend(input.u64().to_le_bytes()));
    head.push(input.byte());
    let fits = input.byte().is_multiple_of(2);
    let payload = input.rest();
    if fits {
        header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[8..12].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    }
    let crc = crc32fast::hash(&header[4..]);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    head.extend(header);
    let decoded = check(&frame(kind::REPLICATE, &head, payload));
    if let Some(Message::Replicate(Replicate { batch, .. })) = decoded {
        assert_eq!(batch.payload, payload);
        assert_eq!(BatchHeader::decode(&batch.header.encode()), Ok(batch.header));
        assert!(batch.header.index > 0 && batch.header.session > 0 && batch.header.seq > 0);
        // Neither overflows, whatever the header holds.
        let _ = (batch.header.end_offset(), batch.header.entry_bytes());
        assert_eq!(Batch::verify(&batch), Ok(()));
    }
}

fn base(mut input: Input<'_>) {
    let reply = SyncReply {
        nonce: u32::from(input.byte()),
        common_index: input.u64() >> 8,
        last_index: input.u64() >> 8,
        commit_index: input.u64() >> 8,
        base: Some(Bytes::copy_from_slice(input.rest())),
    };
    let envelope = Envelope {
        group_id: GroupId(Default::default()),
        epoch: 7,
        message: Message::SyncReply(reply),
    };
    let mut bytes = BytesMut::from(&envelope.to_bytes()[..]);
    let frame = decode_frame(&mut bytes, FRAME_BYTES_MAX).expect("a sound frame");
    assert_eq!(Envelope::decode(&frame.expect("a whole frame")), Ok(envelope));
}

fn frame(kind: u8, head: &[u8], payload: &[u8]) -> Frame {
    let mut bytes = BytesMut::new();
    encode_frame(&mut bytes, kind, 0, None, payload.len(), |out| {
        out.put_slice(head)
    });
    bytes.put_slice(payload);
    let frame = decode_frame(&mut bytes, FRAME_BYTES_MAX).expect("a sound frame");
    frame.expect("a whole frame")
}

fn check(frame: &Frame) -> Option<Message> {
    let given_bytes = frame.head.len() + frame.payload.len();
    let handshake = allocation::bounded(given_bytes, || Handshake::decode(frame));
    if let Ok(handshake) = handshake
        && frame.head.len() <= TEXT_BYTES_MAX
    {
        let mut again = BytesMut::from(&handshake.to_bytes()[..]);
        let second = decode_frame(&mut again, u32::MAX).expect("what is encoded is sound");
        assert_eq!(Handshake::decode(&second.expect("and whole")), Ok(handshake));
    }
    if frame.kind == kind::ONE_SIDED
        && let Ok(message) = allocation::bounded(given_bytes, || OneSided::decode(frame))
    {
        let mut again = BytesMut::from(&message.to_bytes()[..]);
        let second = decode_frame(&mut again, u32::MAX).expect("what is encoded is sound");
        assert_eq!(OneSided::decode(&second.expect("and whole")), Ok(message));
    }
    if frame.kind == kind::SHARE
        && let Ok(Some(share)) = allocation::bounded(given_bytes, || Share::decode(frame))
    {
        let mut again = BytesMut::from(&share.to_bytes()[..]);
        let second = decode_frame(&mut again, u32::MAX).expect("what is encoded is sound");
        assert_eq!(Share::decode(&second.expect("and whole")), Ok(Some(share)));
    }
    let envelope = allocation::bounded(given_bytes, || Envelope::decode(frame)).ok()?;
    let mut again = BytesMut::from(&envelope.to_bytes()[..]);
    let second = decode_frame(&mut again, u32::MAX).expect("what is encoded is sound");
    assert_eq!(
        Envelope::decode(&second.expect("and whole")).as_ref(),
        Ok(&envelope)
    );
    Some(envelope.message)
}
