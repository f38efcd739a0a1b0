//! The whole log of each replica.

use std::time::Duration;

use quorate_client::{Client, Endpoint, Handle, Options};
use quorate_types::Code;
use tokio::time::{Instant, sleep};

use super::group::only;
use super::record::{Line, Recorder, Run, now_ns, runs_of};

const PAGE_WAIT: Duration = Duration::from_millis(50);
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads every replica's log up to the head's commit offset at the start, which a follower may learn later. `false`:
/// some replica's log was not complete within `patience`; the part read is on record.
pub async fn read_group(handle: &Handle, recorder: &Recorder, patience: Duration) -> Result<bool, String> {
    let options = Options {
        timeout: patience,
        ..Options::default()
    };
    let client = Client::open(handle.clone(), options);
    let status = client
        .status()
        .await
        .map_err(|error| format!("{}: {error}", handle.name))?;
    client.close().await;
    let mut is_whole = true;
    for endpoint in &handle.endpoints {
        let (trim, next, runs) = read_replica(handle, endpoint, status.commit_offset, patience).await;
        is_whole &= next >= status.commit_offset;
        recorder.write(&Line::Log {
            group: &handle.name,
            from: &endpoint.address,
            at: now_ns(),
            trim,
            end: status.commit_offset,
            runs: &runs,
        });
    }
    Ok(is_whole)
}

async fn read_replica(
    handle: &Handle,
    endpoint: &Endpoint,
    end: u64,
    patience: Duration,
) -> (u64, u64, Vec<Run>) {
    let options = Options {
        timeout: CALL_TIMEOUT,
        ..Options::default()
    };
    let client = Client::open(only(handle, &endpoint.address), options);
    let give_up = Instant::now() + patience;
    let (mut trim, mut next, mut runs) = (0, 0, Vec::new());
    while next < end && Instant::now() < give_up {
        // A replica that cannot be read yet sends the client to the head, whose log is the wrong one.
        if next == 0 && !is_at(&client, &endpoint.role).await {
            sleep(PAGE_WAIT).await;
            continue;
        }
        match client.read(next, 0, PAGE_WAIT).await {
            Ok(page) => {
                next = page.entries.last().map_or(next, |entry| entry.offset + 1);
                join(&mut runs, runs_of(&page.entries));
            }
            Err(error) if error.0.is(Code::Trimmed) => match client.status().await {
                Ok(status) if runs.is_empty() => (trim, next) = (status.trim_offset, status.trim_offset),
                _ => break,
            },
            Err(_) => sleep(PAGE_WAIT).await,
        }
    }
    if !is_at(&client, &endpoint.role).await {
        next = 0;
    }
    client.close().await;
    (trim, next, runs)
}

async fn is_at(client: &Client, role: &str) -> bool {
    let status = client.status().await;
    status.is_ok_and(|status| {
        status
            .role
            .is_some_and(|found| format!("{found:?}").to_lowercase() == role)
    })
}

/// Joins runs across the ends of pages.
fn join(runs: &mut Vec<Run>, more: Vec<Run>) {
    for (offset, client, number, count) in more {
        match runs.last_mut() {
            Some(last) if last.1 == client && last.2 + last.3 == number && last.0 + last.3 == offset => {
                last.3 += count;
            }
            _ => runs.push((offset, client, number, count)),
        }
    }
}
