//! A repair brings back the very batch that was damaged. The bytes written over its record, or given to a copier, are
//! those of its writer.

use bytes::Bytes;
use quorate_types::GroupId;
use quorate_wire::BatchHeader;

pub fn check(s: usize, group_id: GroupId, header: &BatchHeader, payload: &Bytes) {
    let what = format!(
        "s{} repairs batch {} of epoch {}",
        s + 1,
        header.index,
        header.epoch
    );
    assert_eq!(header.group_id, group_id, "{what} of another group");
    assert_eq!(
        (payload.len() as u32, crc32fast::hash(payload)),
        (header.payload_len, header.payload_crc),
        "{what} with other bytes than its writer's"
    );
}
