//! Single reads, subscriptions, credit, pages on disk.

use bytes::Bytes;
use quorate_chain::ClientRef;
use quorate_group::{Event, Group, Lack, Output, PageRead, Request};
use quorate_types::limits::{PAGES_PER_CONNECTION_MAX, PAGES_PER_GROUP_MAX, RECENT_BYTES_PER_GROUP};
use quorate_types::{Code, Durability, GroupConfig, Permission};
use quorate_wire::client::{Entries, Message};

use crate::rig::{CLIENT, GROUP, ME, OTHER, PERMISSION, Rig, SECOND_US, SESSION, append, config, refusal};

const ENTRY_BYTES: usize = 1 << 20;

/// Entries to readers since the last call: request, bytes, next offset.
fn entries(rig: &mut Rig) -> Vec<(u32, usize, u64)> {
    let entries = rig
        .messages()
        .into_iter()
        .filter_map(|(_, message)| match message {
            Message::Entries(Entries {
                request,
                batches,
                next_offset,
                ..
            }) => {
                let bytes = batches.iter().map(|batch| batch.payload.len()).sum();
                Some((request, bytes, next_offset))
            }
            _ => None,
        });
    entries.collect()
}

fn read(rig: &mut Rig, request: u32, wait_ms: u32, offset: u64) {
    rig.ask(
        CLIENT,
        Message::Read {
            request,
            max_bytes: 0,
            max_entries: 0,
            wait_ms,
            offset,
        },
    );
}

fn subscribe(request: u32, credit_bytes: u32, offset: u64) -> Message {
    Message::Subscribe {
        request,
        credit_bytes,
        offset,
    }
}

#[test]
fn a_read_waits_for_the_commitment_and_is_answered_without_entries_when_its_time_is_over() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.append(1);
    read(&mut rig, 1, 1_000, 0);
    read(&mut rig, 2, 1_000, 1);
    rig.flush();
    assert_eq!(entries(&mut rig), [], "nothing is committed");
    rig.acknowledge(1);
    rig.flush();
    assert_eq!(entries(&mut rig), [(1, 5, 1)]);
    rig.turn.now_us += SECOND_US;
    assert_eq!(rig.group.next_wake(rig.turn.now_us), Some(rig.turn.now_us));
    rig.flush();
    assert_eq!(entries(&mut rig), [(2, 0, 1)]);
}

#[test]
fn a_subscription_gets_no_more_than_its_credit_and_one_page() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(5);
    rig.messages();
    rig.ask(
        CLIENT,
        Message::Subscribe {
            request: 1,
            credit_bytes: 6,
            offset: 0,
        },
    );
    rig.flush();
    assert_eq!(
        entries(&mut rig),
        [(1, 5, 1), (1, 5, 2)],
        "the last frame overdraws"
    );
    rig.ask(CLIENT, Message::Credit { request: 1, bytes: 4 });
    rig.flush();
    assert_eq!(entries(&mut rig), [], "the debt is paid first");
    rig.ask(CLIENT, Message::Credit { request: 1, bytes: 1 });
    rig.flush();
    assert_eq!(entries(&mut rig), [(1, 5, 3)]);
    rig.ask(CLIENT, Message::Credit { request: 2, bytes: 1 });
    assert_eq!(rig.refused(), [refusal(2, Code::UnknownRequest)]);
    rig.ask(CLIENT, Message::Cancel { request: 1 });
    rig.ask(
        CLIENT,
        Message::Credit {
            request: 1,
            bytes: 100,
        },
    );
    assert_eq!(rig.refused(), [refusal(1, Code::UnknownRequest)]);
}

#[test]
fn a_subscription_ends_when_its_token_expires() {
    let mut rig = Rig::new(config(1, &[ME]));
    let expires_at_s = rig.turn.wall_us / SECOND_US;
    let permission = Permission {
        expires_at_s,
        ..PERMISSION
    };
    rig.request(
        CLIENT,
        Request::Attach {
            number: 2,
            session: SESSION,
            permission,
        },
    );
    rig.ask(
        CLIENT,
        Message::Subscribe {
            request: 1,
            credit_bytes: 1,
            offset: 0,
        },
    );
    rig.turn.wall_us += 2 * SECOND_US;
    rig.ask(
        CLIENT,
        Message::Credit {
            request: 1,
            bytes: 100,
        },
    );
    let expected = refusal(1, Code::TokenExpired);
    assert!(rig.refused().contains(&expected));
}

/// More than is kept in memory: the first batches are on disk only.
pub fn grown() -> Rig {
    let mut config = GroupConfig {
        durability: Durability::Persistent,
        ..config(1, &[ME])
    };
    config.budget.tokens_per_s_milli = [1 << 40; 3];
    let mut rig = Rig::new(config);
    let count = RECENT_BYTES_PER_GROUP / ENTRY_BYTES as u64 + 4;
    for seq in 1..=count {
        rig.ask(CLIENT, Message::Append(append(seq, payload(seq))));
        rig.flush();
        let durable = quorate_chain::ReplicaEvent::Persisted { index: seq, epoch: 1 };
        rig.replica_event(durable);
        rig.flush();
        rig.out.clear();
    }
    assert_eq!(rig.group.replica().commit_offset(), count);
    rig.out.clear();
    rig
}

pub fn payload(seq: u64) -> Bytes {
    let mut bytes = ((ENTRY_BYTES - 4) as u32).to_le_bytes().to_vec();
    bytes.resize(ENTRY_BYTES, seq as u8);
    bytes.into()
}

/// The page that the group wants read from disk.
pub fn wanted(rig: &mut Rig) -> PageRead {
    let outputs: Vec<Output> = rig.out.list.drain(..).collect();
    rig.out.clear();
    let mut pages = outputs.into_iter().filter_map(|output| match output {
        Output::ReadPage(read) => Some(read),
        _ => None,
    });
    pages.next().expect("a page on disk is wanted")
}

#[test]
fn a_page_on_disk_is_sent_when_it_is_read_and_read_again_where_its_records_moved() {
    let mut rig = grown();
    read(&mut rig, 1, 0, 0);
    let page = wanted(&mut rig);
    assert_eq!(page.lacking().collect::<Vec<_>>(), [1]);
    rig.step(Event::PageRead {
        read: page,
        payloads: vec![Err(Lack::Moved)],
    });
    let page = wanted(&mut rig);
    rig.step(Event::PageRead {
        read: page,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(entries(&mut rig), [(1, ENTRY_BYTES, 1)]);
}

#[test]
fn a_page_that_was_asked_of_a_log_before_its_reset_is_never_sent() {
    let mut rig = grown();
    read(&mut rig, 1, 0, 0);
    let page = wanted(&mut rig);
    let beginning = quorate_types::config::Beginning {
        epoch: 5,
        offset: 1 << 40,
        entries_before: 0,
        bytes_before: 0,
    };
    let reset = GroupConfig {
        durability: Durability::Persistent,
        beginning: Some(beginning),
        ..config(5, &[ME])
    };
    rig.step(Event::Configure(Box::new(reset)));
    rig.out.clear();
    rig.step(Event::PageRead {
        read: page,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(rig.refused(), [refusal(1, Code::Internal)]);
}

#[test]
fn readers_are_refused_once_when_the_group_leaves() {
    let mut rig = grown();
    read(&mut rig, 1, 0, 0);
    let page = wanted(&mut rig);
    rig.ask(
        CLIENT,
        Message::Subscribe {
            request: 2,
            credit_bytes: 1,
            offset: 40,
        },
    );
    rig.step(Event::Leave);
    let mut refused = rig.refused();
    refused.sort_unstable();
    assert_eq!(
        refused,
        [refusal(1, Code::GroupNotHere), refusal(2, Code::GroupNotHere)]
    );
    rig.step(Event::PageRead {
        read: page,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(rig.messages(), []);
}

#[test]
fn a_page_asked_for_on_an_earlier_attachment_is_not_sent_to_the_next_request_of_that_number() {
    let mut rig = grown();
    read(&mut rig, 1, 0, 0);
    let first = wanted(&mut rig);
    rig.request(CLIENT, Request::Gone);
    rig.attach(CLIENT, SESSION);
    read(&mut rig, 1, 0, 1);
    let second = wanted(&mut rig);
    rig.step(Event::PageRead {
        read: first,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(rig.messages(), [], "nobody waits for offset 0 any more");
    rig.step(Event::PageRead {
        read: second,
        payloads: vec![Ok(payload(2))],
    });
    assert_eq!(entries(&mut rig), [(1, ENTRY_BYTES, 2)]);
}

/// The pages that the group wants read from disk.
fn all_wanted(rig: &mut Rig) -> Vec<PageRead> {
    let outputs: Vec<Output> = rig.out.list.drain(..).collect();
    rig.out.clear();
    let pages = outputs.into_iter().filter_map(|output| match output {
        Output::ReadPage(read) => Some(read),
        _ => None,
    });
    pages.collect()
}

fn client(connection: u64) -> ClientRef {
    ClientRef {
        connection,
        channel: 9,
    }
}

fn page_read(rig: &mut Rig, read: PageRead) {
    let payloads = read.lacking().map(|index| Ok(payload(index))).collect();
    rig.step(Event::PageRead { read, payloads });
}

#[test]
fn a_connection_that_cancels_and_subscribes_again_has_so_many_pages_under_way_and_no_more() {
    let mut rig = grown();
    let mut pages = Vec::new();
    for _ in 0..2 * PAGES_PER_CONNECTION_MAX {
        rig.ask(CLIENT, subscribe(1, 1, 0));
        rig.flush();
        pages.extend(all_wanted(&mut rig));
        rig.ask(CLIENT, Message::Cancel { request: 1 });
    }
    assert_eq!(pages.len(), PAGES_PER_CONNECTION_MAX);
    read(&mut rig, 2, 0, 0);
    assert_eq!(rig.refused(), [refusal(2, Code::Overloaded)]);
    // Its channel goes: its pages are under way still. Others are served meanwhile.
    rig.request(CLIENT, Request::Gone);
    rig.attach(CLIENT, 0);
    rig.attach(client(8), 0);
    rig.ask(CLIENT, subscribe(3, 1, 0));
    rig.ask(client(8), subscribe(4, 1, 1));
    rig.flush();
    let mut others = all_wanted(&mut rig);
    assert_eq!(others.len(), 1);
    page_read(&mut rig, others.remove(0));
    assert_eq!(entries(&mut rig), [(4, ENTRY_BYTES, 2)]);
    // One comes back, for nobody: the subscription that was held back goes on.
    page_read(&mut rig, pages.remove(0));
    rig.flush();
    let mut held = all_wanted(&mut rig);
    assert_eq!(held.len(), 1);
    page_read(&mut rig, held.remove(0));
    assert_eq!(entries(&mut rig), [(3, ENTRY_BYTES, 1)]);
}

#[test]
fn a_group_has_so_many_pages_under_way_and_no_more() {
    let mut rig = grown();
    let connections = (PAGES_PER_GROUP_MAX / PAGES_PER_CONNECTION_MAX) as u64 + 1;
    let mut pages = Vec::new();
    for connection in 10..10 + connections {
        rig.attach(client(connection), 0);
        for request in 0..PAGES_PER_CONNECTION_MAX as u32 {
            rig.ask(client(connection), subscribe(request, 1, 0));
        }
    }
    rig.flush();
    pages.extend(all_wanted(&mut rig));
    assert_eq!(pages.len(), PAGES_PER_GROUP_MAX);
    // A damaged page counts until it is repaired or abandoned.
    let first = pages.remove(0);
    rig.step(Event::PageRead {
        read: first,
        payloads: vec![Err(Lack::Damaged)],
    });
    rig.flush();
    assert_eq!(all_wanted(&mut rig).len(), 0);
    page_read(&mut rig, pages.remove(0));
    rig.flush();
    assert_eq!(all_wanted(&mut rig).len(), 1);
}

#[test]
fn a_page_of_an_earlier_hosting_is_not_sent_to_the_next_request_of_that_number() {
    let mut rig = grown();
    rig.ask(CLIENT, subscribe(1, 1, 0));
    rig.flush();
    let first = wanted(&mut rig);
    rig.step(Event::Leave);
    rig.group = Group::new(GROUP, ME, Durability::Persistent, false, 2, rig.turn.now_us);
    rig.step(Event::Configure(Box::new(GroupConfig {
        durability: Durability::Persistent,
        ..config(2, &[ME])
    })));
    rig.attach(CLIENT, SESSION);
    rig.ask(CLIENT, subscribe(1, 1, 0));
    rig.flush();
    rig.messages();
    rig.step(Event::PageRead {
        read: first,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(rig.messages(), [], "it is another's");
    rig.ask(CLIENT, Message::Credit { request: 1, bytes: 1 });
    assert_eq!(rig.refused(), [], "the subscription goes on");
}

#[test]
fn a_page_of_a_cancelled_subscription_is_not_sent_to_the_next_of_that_number() {
    let mut rig = grown();
    rig.ask(CLIENT, subscribe(1, 1, 0));
    rig.flush();
    let first = wanted(&mut rig);
    rig.ask(CLIENT, Message::Cancel { request: 1 });
    rig.ask(CLIENT, subscribe(1, 1, 1));
    rig.flush();
    let second = wanted(&mut rig);
    rig.step(Event::PageRead {
        read: first,
        payloads: vec![Ok(payload(1))],
    });
    assert_eq!(rig.messages(), [], "the first subscription is over");
    rig.step(Event::PageRead {
        read: second,
        payloads: vec![Ok(payload(2))],
    });
    assert_eq!(entries(&mut rig), [(1, ENTRY_BYTES, 2)]);
}
