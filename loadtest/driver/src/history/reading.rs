//! Clients that read: pages from any replica, a tail, the log's end.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use quorate_client::{Client, Options, ReadError, Tail};
use quorate_types::config::Role;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::group::{HistoryGroup, endpoints, only, pause};
use super::record::{Line, now_ns, runs_of};

const READ_EVERY: Duration = Duration::from_millis(30);
const PROBE_EVERY: Duration = Duration::from_millis(40);
/// A page on record need not be long: its entries show the state of their neighbours.
const PAGE_ENTRIES: u32 = 64;
/// Most reads are of new entries, the others anywhere.
const NEAR_END: u64 = 500;
/// Interval of reading addresses from the handle: replicas come and go.
const ADDRESSES_EVERY: Duration = Duration::from_millis(500);
/// A reader of one replica does not wait long for one that is gone.
const READ_TIMEOUT: Duration = Duration::from_millis(700);
/// Silence of a tail after which, once the load is over, it has read everything.
const TAIL_QUIET: Duration = Duration::from_millis(500);

/// Reads from every replica that the group ever had. Former replicas must not answer wrongly either.
pub async fn reading(group: Rc<HistoryGroup>, number: u64, mut random: StdRng) {
    let mut replicas: BTreeMap<String, Client> = BTreeMap::new();
    let mut looked_at: Option<Instant> = None;
    while !group.is_over() {
        if looked_at.is_none_or(|at| at.elapsed() > ADDRESSES_EVERY) {
            for address in endpoints(&group.path) {
                replicas.entry(address.clone()).or_insert_with(|| {
                    let options = Options {
                        timeout: READ_TIMEOUT,
                        ..Options::default()
                    };
                    let mut all = group.handle.clone();
                    all.endpoints[0].address.clone_from(&address);
                    Client::open(only(&all, &address), options)
                });
            }
            looked_at = Some(Instant::now());
        }
        if !replicas.is_empty() {
            let chosen = random.random_range(0..replicas.len());
            let (address, client) = replicas.iter().nth(chosen).expect("chosen among them");
            let end = group.acked_end.get();
            let first = if random.random_ratio(3, 4) {
                end.saturating_sub(NEAR_END)
            } else {
                0
            };
            let offset = random.random_range(first..=end);
            read(&group, number, address, client, offset).await;
        }
        pause(READ_EVERY, &mut random).await;
    }
    for client in replicas.into_values() {
        client.close().await;
    }
}

async fn read(group: &HistoryGroup, number: u64, address: &str, client: &Client, offset: u64) {
    let called = now_ns();
    match client.read(offset, PAGE_ENTRIES, Duration::ZERO).await {
        Ok(page) => group.recorder.write(&Line::Read {
            group: &group.name,
            client: number,
            from: address,
            offset,
            called,
            at: now_ns(),
            runs: &runs_of(&page.entries),
            sequence: None,
        }),
        Err(error) => failed(group, number, called, "read", &error),
    }
}

/// Follows the log from its beginning, through all failures of replicas.
pub async fn tailing(group: Rc<HistoryGroup>, number: u64) {
    let client = group.client();
    let (mut next, mut sequence) = (0, 0);
    let mut tail: Tail = client.tail(next);
    let mut called = now_ns();
    loop {
        match tokio::time::timeout(TAIL_QUIET, tail.next_entries()).await {
            Ok(Ok(entries)) => {
                let at = now_ns();
                group.recorder.write(&Line::Read {
                    group: &group.name,
                    client: number,
                    from: "tail",
                    offset: next,
                    called,
                    at,
                    runs: &runs_of(&entries),
                    sequence: Some(sequence),
                });
                called = at;
                sequence += 1;
                next = entries.last().map_or(next, |entry| entry.offset + 1);
            }
            Ok(Err(error)) => {
                failed(&group, number, called, "tail", &error);
                if group.is_over() {
                    break;
                }
                tokio::time::sleep(TAIL_QUIET).await;
                tail = client.tail(next);
                called = now_ns();
            }
            Err(_nothing_new) if group.is_over() => break,
            Err(_nothing_new) => {}
        }
    }
    drop(tail);
    client.close().await;
}

/// Asks for the log's end. A head answers when the whole ring has confirmed it; any other replica reports its own view.
pub async fn probing(group: Rc<HistoryGroup>, number: u64, mut random: StdRng) {
    let mut client = group.client();
    let mut opened = Instant::now();
    while !group.is_over() {
        let called = now_ns();
        match client.status().await {
            Ok(status) => {
                let role = status
                    .role
                    .map_or("unknown".to_string(), |role| format!("{role:?}").to_lowercase());
                let is_head = matches!(status.role, Some(Role::Head | Role::Sole));
                group.recorder.write(&Line::End {
                    group: &group.name,
                    client: number,
                    from: &status.head_address,
                    called,
                    at: now_ns(),
                    end: status.commit_offset,
                    confirmed: is_head,
                    role: &role,
                    epoch: status.epoch,
                });
                if !is_head && opened.elapsed() > ADDRESSES_EVERY {
                    // A client stays at its replica, so one moved by a failover would never ask a head again.
                    std::mem::replace(&mut client, group.fresh_client()).close().await;
                    opened = Instant::now();
                }
            }
            Err(error) => failed(&group, number, called, "end", &error),
        }
        pause(PROBE_EVERY, &mut random).await;
    }
    client.close().await;
}

fn failed(group: &HistoryGroup, client: u64, called: u64, what: &str, error: &ReadError) {
    group.recorder.write(&Line::Failed {
        group: &group.name,
        client,
        called,
        at: now_ns(),
        what,
        code: error.0.info().name,
    });
}
