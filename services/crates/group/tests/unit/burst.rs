//! A head above its reservation, and its measurements.

use quorate_group::{Event, Grant};
use quorate_types::cost::ShortBatch;
use quorate_types::limits::BURST_DELAY_MS;
use quorate_types::{Epoch, Micros, ServerId};
use quorate_wire::client::{Message, Notice};

use crate::rig::{CLIENT, ME, OTHER, RATE_PER_S, Rig, SECOND_US, append, config, payload};

const HOUR_US: Micros = 3_600 * SECOND_US;

fn grant(rig: &mut Rig, epoch: Epoch, rate_per_s: u64) {
    let until_us = rig.turn.now_us + HOUR_US;
    rig.step(Event::Grant(Grant {
        epoch,
        rate_per_s,
        until_us,
    }));
    rig.flush();
}

fn rate(rig: &Rig) -> u64 {
    rig.group.rate_per_s(rig.turn.now_us)
}

#[test]
fn a_head_uses_a_grant_of_its_epoch_and_what_waits_passes_at_once() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(200);
    let own = rig.ordered();
    assert_eq!(own, RATE_PER_S, "a second of its rate");
    grant(&mut rig, 2, 10_000);
    assert_eq!(rig.ordered(), own, "of another epoch");
    grant(&mut rig, 1, 10_000);
    // Its queue holds what its budget lets through before two seconds are over; clients send the rest again.
    assert!(
        rig.ordered() >= own + RATE_PER_S,
        "{} of {own} before",
        rig.ordered()
    );
    assert_eq!(rate(&rig), RATE_PER_S + 10_000);
    assert!(rig.group.take_counts().1 > 0);
    grant(&mut rig, 1, 0);
    assert_eq!(rate(&rig), RATE_PER_S);
}

#[test]
fn nothing_more_passes_when_an_owner_is_back_or_the_epoch_is_over() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S);
    grant(&mut rig, 1, 10_000);
    rig.append(50);
    assert_eq!(rig.ordered(), RATE_PER_S + 50);
    rig.turn.is_burst_stopped = true;
    rig.append(15);
    assert_eq!(rig.ordered(), RATE_PER_S + 50);
    rig.step(Event::Configure(Box::new(config(2, &[ME]))));
    assert_eq!(rate(&rig), RATE_PER_S);
}

#[test]
fn the_first_request_of_an_epoch_is_noticed_until_its_servers_keep_the_reservation() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.turn.shares_burst = true;
    rig.append(1);
    assert!(!rig.returned(), "sharing began after the group");
    rig.step(Event::Configure(Box::new(config(2, &[ME]))));
    rig.append(1);
    assert!(rig.returned());
    rig.append(1);
    assert!(!rig.returned(), "reported once");
    rig.step(Event::Assume {
        epoch: 2,
        rate_per_s: Some(0),
    });
    rig.append(1);
    assert!(rig.returned(), "and again");
    rig.step(Event::Assume {
        epoch: 2,
        rate_per_s: None,
    });
    rig.append(3);
    assert!(!rig.returned());
}

#[test]
fn a_learner_takes_what_its_place_in_the_chain_will_cost() {
    let mut rig = Rig::new(config(1, &[ME]));
    let mut next = config(2, &[OTHER]);
    next.learners = config(2, &[ME]).replicas;
    next.budget.replica_milli = vec![[1_000, 0, 0], [700, 20, 1]];
    // Each of its ten appends may come alone, and costs as much as four, or five, then.
    next.budget.short_batch = ShortBatch {
        entries: 4,
        lacking_milli: [1_000, 0, 0],
    };
    next.budget.replica_reserved_milli = vec![[40_000, 0, 0], [35_000, 200, 10]];
    rig.step(Event::Configure(Box::new(next)));
    let load = rig.load();
    let replicas: Vec<_> = load
        .replicas
        .iter()
        .map(|replica| (replica.server, replica.cost))
        .collect();
    // Where the head counts four requests, the tail's cost is 3 500.
    assert_eq!(replicas, [(2, [1_000, 0, 0]), (1, [875, 20, 1])]);
    assert_eq!(load.reserved_per_s, RATE_PER_S);
    assert_eq!(load.reserved, [[40_000, 0, 0], [35_000, 200, 10]]);
}

#[test]
fn a_head_measures_what_was_offered_and_whether_it_was_held_back() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.load();
    rig.turn.now_us += SECOND_US;
    rig.append(100);
    let load = rig.load();
    assert_eq!(
        (load.key.1, load.reserved_per_s, load.replicas.len()),
        (1, RATE_PER_S, 1)
    );
    assert_eq!(load.replicas[0].cost, [1_000, 0, 0]);
    assert!(load.measured.was_held_back);
    assert!(load.measured.beyond_per_s > 0);
    assert_eq!(load.measured.accepted_per_s, RATE_PER_S);
    // Batches behind a refused one are not offered.
    assert!(load.measured.offered_per_s > RATE_PER_S && load.measured.offered_per_s <= 100);
    assert!(load.measured.waiting_per_s > 0, "a part of them waits");
    rig.turn.now_us += SECOND_US;
    let calm = rig.load();
    assert!(!calm.measured.was_held_back);
    assert_eq!((calm.measured.beyond_per_s, calm.measured.offered_per_s), (0, 0));
}

/// The rates that were sent to a client since the last call.
fn announced(rig: &mut Rig) -> Vec<u64> {
    let rates = rig
        .messages()
        .into_iter()
        .filter_map(|(_, message)| match message {
            Message::Notice(Notice { rate_per_s, .. }) => Some(rate_per_s),
            Message::Attached(attached) => Some(attached.rate_per_s),
            _ => None,
        });
    rates.collect()
}

#[test]
fn a_rate_is_announced_again_when_some_client_was_sent_another_meanwhile() {
    let mut rig = Rig::new(config(1, &[ME]));
    grant(&mut rig, 1, 10_000);
    assert_eq!(announced(&mut rig), [RATE_PER_S + 10_000]);
    rig.step(Event::Configure(Box::new(config(2, &[ME]))));
    assert_eq!(announced(&mut rig), [RATE_PER_S], "the new epoch's notice");
    grant(&mut rig, 2, 10_000);
    assert_eq!(announced(&mut rig), [RATE_PER_S + 10_000]);
    // It ends by itself, and a client attaches before anything is granted again.
    rig.turn.now_us += 2 * HOUR_US;
    rig.attach(CLIENT, 9);
    rig.flush();
    assert_eq!(announced(&mut rig), [RATE_PER_S]);
    grant(&mut rig, 2, 10_000);
    assert_eq!(
        announced(&mut rig),
        [RATE_PER_S + 10_000],
        "not to all the same before"
    );
    grant(&mut rig, 2, 10_000);
    assert!(announced(&mut rig).is_empty(), "no news");
}

#[test]
fn entries_that_come_alone_are_charged_for_their_batches() {
    let mut dear = config(1, &[ME]);
    // An append that comes alone costs five of a full batch.
    dear.budget.short_batch = ShortBatch {
        entries: 5,
        lacking_milli: [1_000, 0, 0],
    };
    let mut rig = Rig::new(dear);
    rig.load();
    rig.turn.now_us += SECOND_US;
    rig.append(200);
    assert_eq!(rig.ordered(), 2, "of the ten that a second holds");
    let totals = *rig.group.totals();
    assert!(totals.throttled_entries > 0, "{totals:?}");
    assert_eq!(totals.throttled_within_sla_entries, 0);
    assert!(
        rig.load().measured.offered_per_s >= 15,
        "three at least, each as much as five"
    );
}

#[test]
fn a_batch_that_waits_while_batches_take_long_passes_with_the_commitment() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.acknowledge(0);
    rig.append(RATE_PER_S);
    grant(&mut rig, 1, 10_000);
    // One batch takes a microsecond: that is the least.
    rig.append(1);
    rig.turn.now_us += 1;
    let last = rig.group.replica().log().last_index();
    rig.acknowledge(last);
    rig.flush();
    rig.append(1);
    let before = rig.ordered();
    assert_eq!(before, RATE_PER_S + 2, "nothing has taken long yet");
    rig.turn.now_us += 2_000 * BURST_DELAY_MS;
    rig.append(20);
    let held = rig.ordered();
    assert!(held <= before + 1, "burst capacity is closed: {held} of {before}");
    assert_eq!(rig.group.totals().throttled_entries, 0, "nor is it refused");
    let last = rig.group.replica().log().last_index();
    rig.acknowledge(last);
    rig.flush();
    let now_us = rig.turn.now_us;
    let wake = rig.group.next_wake(now_us);
    assert!(
        wake.is_some_and(|at| at <= now_us + 1_000),
        "{wake:?} at {now_us}"
    );
    rig.turn.now_us += 1_000;
    rig.flush();
    assert!(rig.ordered() > held, "{} of {held}", rig.ordered());
}

#[test]
fn an_append_that_is_refused_by_its_condition_is_not_timed() {
    let mut rig = Rig::new(config(1, &[ME, ServerId(2)]));
    grant(&mut rig, 1, 10_000);
    let mut conditional = append(1, payload());
    conditional.expected_offset = 77;
    rig.ask(CLIENT, Message::Append(conditional));
    rig.turn.now_us += 2_000 * BURST_DELAY_MS;
    // A timed batch would close burst capacity by now.
    rig.append(RATE_PER_S + 5);
    assert_eq!(rig.ordered(), RATE_PER_S + 5);
}
