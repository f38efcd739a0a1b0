//! A disk that cannot be read.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use quorate_recovery::GroupRecord;
use quorate_types::Index;
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

use super::*;
use crate::journal_port::JournalPort;
use crate::shard::quarantine;

const ME: ServerId = ServerId(1);

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn open(dir: &Path) -> Result<Storage, Exit> {
    let words = "quorate-replica --coordinator 127.0.0.1:1 --journal-segment-bytes 33554432 --data-dir";
    let flags = Flags::parse_from(words.split(' ').chain(dir.to_str()));
    flags.validate().expect("flags");
    Storage::open(&flags, ME, true)
}

fn batch(group_id: GroupId, index: Index, base_offset: u64) -> GroupRecord {
    let payload = Bytes::from_static(&[1, 0, 0, 0, 9]);
    GroupRecord::batch(&Batch {
        header: BatchHeader {
            group_id,
            epoch: 1,
            index,
            base_offset,
            cumulative_bytes: index,
            session: 1,
            seq: index,
            timestamp_us: 1,
            fencing_token: 0,
            entry_count: 1,
            payload_len: 5,
            payload_crc: crc32fast::hash(&payload),
        },
        payload,
        trace: None,
    })
}

/// Writes batches of these groups, indexes and offsets, and waits until they are durable.
fn write(journal: &Arc<Journal>, batches: &[(u128, Index, u64)]) {
    let (sender, events) = std::sync::mpsc::channel();
    let mut port = JournalPort::new(journal.clone(), move |event| drop(sender.send(event)));
    for (n, index, base_offset) in batches {
        port.write(batch(group(*n), *index, *base_offset));
    }
    assert!(port.submit().1.is_none(), "the journal has room");
    port.commit();
    while !port.is_idle() {
        let event = events.recv_timeout(Duration::from_secs(20)).expect("durable");
        if let quorate_journal::Event::Durable { tag, .. } = event {
            port.completed(tag);
        }
    }
}

#[test]
fn a_group_that_cannot_be_read_ends_the_start_and_is_named() {
    std::panic::set_hook(Box::new(quarantine::note));
    let dir = std::env::temp_dir().join(format!("quorate-storage-{}", std::process::id()));
    let written = open(&dir).expect("an empty folder");
    write(&written.journal, &[(1, 1, 0), (2, 1, 0), (1, 2, 7), (2, 2, 1)]);
    drop(written);
    for _again in 0..2 {
        let exit = open(&dir).err().expect("the offset does not follow");
        let (code, said) = (exit.code(), exit.to_string());
        assert_eq!(code, 5, "{said}");
        assert!(said.contains(&group(1).to_string()), "{said}");
        assert!(said.contains("offsets are dense"), "{said}");
    }
    std::fs::remove_dir_all(dir).expect("the folder of this test");
}
