//! Damaged records: asked for, checked, given to all that wait.

use quorate_group::{CopierId, Event, Lack, Output, Report};
use quorate_types::limits::{REPAIR_ATTEMPTS_MAX, REPAIR_TRY_MS};
use quorate_types::{Code, Durability, GroupConfig, Index, ServerId};
use quorate_wire::client::Message;
use quorate_wire::peer::{self, Envelope};
use quorate_wire::{Batch, BatchHeader};

use crate::reading::{grown, payload, wanted};
use crate::rig::{CLIENT, ME, OTHER, Rig, config};

const STRANGER: ServerId = ServerId(9);

/// A group of two whose reader waits for batch 1, which is damaged here.
fn damaged() -> Rig {
    let mut rig = grown();
    let two = GroupConfig {
        durability: Durability::Persistent,
        ..config(2, &[OTHER, ME])
    };
    rig.step(Event::Configure(Box::new(two)));
    rig.out.clear();
    rig.ask(
        CLIENT,
        Message::Read {
            request: 1,
            max_bytes: 0,
            max_entries: 0,
            wait_ms: 0,
            offset: 0,
        },
    );
    let page = wanted(&mut rig);
    rig.step(Event::PageRead {
        read: page,
        payloads: vec![Err(Lack::Damaged)],
    });
    rig
}

fn outputs(rig: &mut Rig) -> Vec<Output> {
    let outputs = rig.out.list.drain(..).collect();
    rig.out.clear();
    outputs
}

fn fetches(outputs: &[Output]) -> Vec<(ServerId, Index)> {
    let fetches = outputs.iter().filter_map(|output| match output {
        Output::Peer {
            to,
            envelope:
                Envelope {
                    message: peer::Message::Fetch { index },
                    ..
                },
        } => Some((*to, *index)),
        _ => None,
    });
    fetches.collect()
}

fn header(rig: &Rig) -> BatchHeader {
    *rig.group.replica().log().header(1).expect("batch 1")
}

fn answer(rig: &mut Rig, from: ServerId, batch: Option<Batch>) {
    let message = peer::Message::Fetched { index: 1, batch };
    rig.step(Event::Peer {
        from,
        epoch: 2,
        message,
    });
}

fn batch(header: BatchHeader) -> Batch {
    Batch {
        header,
        payload: payload(1),
        trace: None,
    }
}

#[test]
fn a_damaged_batch_is_fetched_checked_sent_and_written_back() {
    let mut rig = damaged();
    assert_eq!(fetches(&outputs(&mut rig)), [(OTHER, 1)]);
    let right = header(&rig);
    let wrong = BatchHeader {
        timestamp_us: right.timestamp_us + 1,
        ..right
    };
    answer(&mut rig, STRANGER, Some(batch(wrong)));
    assert!(outputs(&mut rig).is_empty(), "another batch repairs nothing");
    answer(&mut rig, OTHER, Some(batch(right)));
    let outputs = outputs(&mut rig);
    assert!(
        outputs
            .iter()
            .any(|o| matches!(o, Output::Rewrite { header, .. } if *header == right))
    );
    let is_sent = |o: &Output| {
        matches!(
            o,
            Output::Client {
                message: Message::Entries(_),
                ..
            }
        )
    };
    assert!(outputs.iter().any(is_sent));
}

#[test]
fn a_batch_that_no_replica_has_is_abandoned_and_its_reader_refused() {
    let mut rig = damaged();
    for attempt in 0..REPAIR_ATTEMPTS_MAX {
        assert_eq!(fetches(&outputs(&mut rig)), [(OTHER, 1)], "attempt {attempt}");
        rig.turn.now_us += REPAIR_TRY_MS * 1_000;
        rig.step(Event::Tick {
            is_coordinator_silent: false,
        });
    }
    let is_reported = |o: &Output| matches!(o, Output::Report(Report::RecordsUnrepaired { records: 1, .. }));
    assert!(rig.out.list.iter().any(is_reported));
    assert_eq!(rig.refused(), [(1, Code::Internal as u16, false)]);
}

#[test]
fn every_copier_gets_the_record_or_is_released() {
    let mut rig = damaged();
    rig.step(Event::Damaged(vec![
        (1, Some(CopierId(3))),
        (2, Some(CopierId(4))),
    ]));
    outputs(&mut rig);
    let right = header(&rig);
    answer(&mut rig, OTHER, Some(batch(right)));
    let copied = |o: &Output| {
        matches!(
            o,
            Output::Copied {
                copier: CopierId(3),
                payload: Ok(_),
                ..
            }
        )
    };
    assert!(outputs(&mut rig).iter().any(copied));
    rig.step(Event::Leave);
    let released = |o: &Output| matches!(o, Output::CopierReleased(CopierId(4)));
    assert!(outputs(&mut rig).iter().any(released));
}

#[test]
fn nobody_is_asked_for_a_batch_that_the_log_has_no_more() {
    let mut rig = damaged();
    rig.out.clear();
    let gone = rig.group.replica().log().last_index() + 1;
    rig.step(Event::Damaged(vec![(gone, Some(CopierId(5)))]));
    let outputs = outputs(&mut rig);
    let released = |o: &Output| matches!(o, Output::CopierReleased(CopierId(5)));
    assert!(outputs.iter().any(released));
    assert_eq!(fetches(&outputs), []);
    let is_report = |o: &Output| matches!(o, Output::Report(_));
    assert!(
        !outputs.iter().any(is_report),
        "nothing is damaged that anybody needs"
    );
}

#[test]
fn entries_are_given_to_replicas_of_the_group_only() {
    let mut rig = grown();
    let two = GroupConfig {
        durability: Durability::Persistent,
        ..config(2, &[OTHER, ME])
    };
    rig.step(Event::Configure(Box::new(two)));
    let last = rig.group.replica().log().last_index();
    rig.out.clear();
    let fetch = |from, index| Event::Peer {
        from,
        epoch: 2,
        message: peer::Message::Fetch { index },
    };
    rig.step(fetch(STRANGER, last));
    assert!(outputs(&mut rig).is_empty());
    rig.step(fetch(OTHER, last));
    let answered = |o: &Output| {
        matches!(
            o,
            Output::Peer {
                envelope: Envelope {
                    message: peer::Message::Fetched { batch: Some(_), .. },
                    ..
                },
                ..
            }
        )
    };
    assert!(outputs(&mut rig).iter().any(answered), "it is in memory");
    rig.step(fetch(OTHER, 1));
    let read = |o: &Output| matches!(o, Output::ReadForPeer { to: OTHER, .. });
    assert!(outputs(&mut rig).iter().any(read), "it is on disk");
    rig.turn.end_fetch();
}
