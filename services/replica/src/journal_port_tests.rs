//! Completions of records whose group was dropped meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use quorate_journal::Journal;
use quorate_recovery::record::{KIND_BATCH, KIND_DROPPED};
use quorate_recovery::{Durable, GroupRecord};
use quorate_types::{GroupId, Index};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

use super::JournalPort;

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn header(group_id: GroupId, index: Index) -> BatchHeader {
    BatchHeader {
        group_id,
        epoch: 1,
        index,
        base_offset: index - 1,
        cumulative_bytes: index,
        session: 1,
        seq: index,
        timestamp_us: 1,
        fencing_token: 0,
        entry_count: 1,
        payload_len: 5,
        payload_crc: crc32fast::hash(&[1, 0, 0, 0, 9]),
    }
}

/// A dropped group may come again before its last records are durable.
#[test]
fn completions_of_a_dropped_group_do_not_reach_the_one_that_comes_after_it() {
    let dir = std::env::temp_dir().join(format!("quorate-port-{}", std::process::id()));
    let options = quorate_journal::JournalOptions {
        segment_bytes: 20 << 20,
        ..quorate_journal::JournalOptions::default()
    };
    let (journal, _) = Journal::open(&dir, options, |_| {}).unwrap();
    let (sender, events) = std::sync::mpsc::channel();
    let mut port = JournalPort::new(Arc::new(journal), move |event| sender.send(event).unwrap());
    let batch = |n: u128, index| Batch {
        header: header(group(n), index),
        payload: Bytes::from_static(&[1, 0, 0, 0, 9]),
        trace: None,
    };
    let mut placed = Vec::new();
    port.write(GroupRecord::batch(&batch(1, 1)));
    port.write(GroupRecord::batch(&batch(2, 1)));
    placed.extend(port.submit().0);
    port.commit();
    // Not even submitted when the group is dropped.
    port.write(GroupRecord::trim(group(1), 1));
    port.write(GroupRecord::batch(&batch(1, 2)));
    port.write(GroupRecord::dropped(group(1)));
    assert!(port.is_dropping(group(1)) && !port.is_dropping(group(2)));
    port.write(GroupRecord::batch(&batch(1, 1)));
    port.write(GroupRecord::batch(&batch(2, 2)));
    placed.extend(port.submit().0);
    port.commit();
    let mut done = Vec::new();
    while !done
        .iter()
        .any(|d: &Durable| (d.group_id, d.index) == (group(2), 2))
    {
        let event = events.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        if let quorate_journal::Event::Durable { tag, .. } = event {
            done.extend(port.completed(tag));
        }
    }
    let of = |all: &[Durable], n: u128| -> Vec<(u8, Index)> {
        let own = all.iter().filter(|d| d.group_id == group(n));
        own.map(|d| (d.kind, d.index)).collect()
    };
    let placed: Vec<Durable> = placed.iter().map(|p| p.durable).collect();
    assert_eq!(
        of(&placed, 1),
        [(KIND_BATCH, 1), (KIND_BATCH, 1)],
        "before the drop, and behind it"
    );
    assert_eq!(of(&placed, 2), [(KIND_BATCH, 1), (KIND_BATCH, 2)]);
    assert_eq!(
        of(&done, 1),
        [(KIND_DROPPED, 0), (KIND_BATCH, 1)],
        "the drop, and only what came behind it"
    );
    assert_eq!(port.drops, HashMap::new(), "nothing is remembered of it");
    port.died();
    port.write(GroupRecord::dropped(group(2)));
    assert!(port.is_dropping(group(2)), "a dead journal never has the note");
    drop(port);
    std::fs::remove_dir_all(dir).unwrap();
}
