//! The head's evidence for the SLA: entries within the reservation, their latency, and the time in which it took appends.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Grant, Request};
use quorate_types::Micros;
use quorate_usage::Sample;

use crate::rig::{CLIENT, ME, OTHER, RATE_PER_S, Rig, SECOND_US, config};

const MS: Micros = 1_000;

/// The last sample, with the latencies since the one before.
fn sample(rig: &mut Rig) -> Sample {
    let mut samples = rig.group.take_samples(&rig.turn);
    samples.pop().expect("it has a role")
}

fn tick(rig: &mut Rig, is_coordinator_silent: bool) {
    rig.step(Event::Tick {
        is_coordinator_silent,
    });
    rig.flush();
}

/// Time passes in ticks, as at a server.
fn pass(rig: &mut Rig, us: Micros) {
    for _ in 0..us / (100 * MS) {
        rig.turn.now_us += 100 * MS;
        tick(rig, false);
    }
}

/// Active and paused milliseconds since `before`.
fn times_ms(rig: &mut Rig, before: &Sample) -> (u64, u64) {
    let since = sample(rig).totals.since(&before.totals);
    (since.active_us / MS, since.paused_us / MS)
}

#[test]
fn an_append_that_waits_for_budget_is_timed_from_its_turn_on() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S + 1);
    assert_eq!(rig.ordered(), RATE_PER_S, "the last one waits for 100 ms");
    rig.turn.now_us += 103 * MS;
    rig.flush();
    assert_eq!(rig.ordered(), RATE_PER_S + 1);
    let sample = sample(&mut rig);
    assert_eq!(sample.totals.within_sla_entries, RATE_PER_S + 1);
    assert!(sample.latency.quantile_us(1_000) >= Some(103 * MS));
    let judged = sample.judged_latency.quantile_us(1_000);
    assert!(judged >= Some(3 * MS) && judged < Some(4 * MS), "{judged:?}");
}

#[test]
fn appends_on_burst_capacity_are_not_judged() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S);
    rig.step(Event::Grant(Grant {
        epoch: 1,
        rate_per_s: 10_000,
        until_us: rig.turn.now_us + SECOND_US,
    }));
    rig.append(100);
    let sample = sample(&mut rig);
    assert_eq!(sample.latency.total(), RATE_PER_S + 100);
    assert_eq!(sample.judged_latency.total(), RATE_PER_S);
    // Nineteen of the others would have passed within two seconds without it.
    assert_eq!(sample.totals.within_sla_entries, RATE_PER_S + 19);
}

#[test]
fn a_head_takes_no_appends_before_its_chain_agrees() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    let before = sample(&mut rig);
    pass(&mut rig, 300 * MS);
    rig.follow();
    rig.flush();
    tick(&mut rig, false);
    pass(&mut rig, 2 * SECOND_US);
    let (active_ms, paused_ms) = times_ms(&mut rig, &before);
    assert_eq!(active_ms + paused_ms, 2_300);
    assert!((200..=400).contains(&paused_ms), "{paused_ms}");
}

#[test]
fn the_time_since_the_last_acknowledgement_is_lost_when_none_comes() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.follow();
    pass(&mut rig, SECOND_US);
    let before = sample(&mut rig);
    pass(&mut rig, SECOND_US);
    rig.append(1);
    // Three seconds, in which samples are taken as ever.
    for _ in 0..3 {
        pass(&mut rig, SECOND_US);
        sample(&mut rig);
    }
    let (active_ms, paused_ms) = times_ms(&mut rig, &before);
    assert_eq!(active_ms + paused_ms, 4_000);
    assert!((2_900..=3_000).contains(&paused_ms), "{paused_ms}");
    let last = rig.group.replica().log().last_index();
    rig.acknowledge(last);
    rig.flush();
    let before = sample(&mut rig);
    pass(&mut rig, SECOND_US);
    assert_eq!(times_ms(&mut rig, &before), (1_000, 0));
}

#[test]
fn an_idle_head_whose_successor_is_gone_takes_nothing() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.follow();
    pass(&mut rig, SECOND_US);
    let before = sample(&mut rig);
    rig.step(Event::Replica(ReplicaEvent::LinkDown { server: OTHER }));
    pass(&mut rig, SECOND_US);
    rig.follow();
    pass(&mut rig, 2 * SECOND_US);
    let (active_ms, paused_ms) = times_ms(&mut rig, &before);
    assert_eq!(active_ms + paused_ms, 3_000);
    assert!((900..=1_000).contains(&paused_ms), "{paused_ms}");
}

#[test]
fn a_chain_that_takes_a_moment_loses_no_time() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.follow();
    pass(&mut rig, SECOND_US);
    let before = sample(&mut rig);
    for _ in 0..5 {
        rig.append(1);
        pass(&mut rig, 400 * MS);
        let last = rig.group.replica().log().last_index();
        rig.acknowledge(last);
        rig.flush();
        tick(&mut rig, false);
    }
    pass(&mut rig, SECOND_US);
    assert_eq!(times_ms(&mut rig, &before), (3_000, 0));
}

#[test]
fn a_process_that_stood_still_took_nothing() {
    let mut rig = Rig::new(config(1, &[ME]));
    pass(&mut rig, SECOND_US);
    let before = sample(&mut rig);
    assert_eq!(before.accounted_ms, before.at_ms);
    rig.turn.now_us += 5 * SECOND_US;
    tick(&mut rig, false);
    pass(&mut rig, SECOND_US);
    assert_eq!(times_ms(&mut rig, &before), (1_000, 5_000));
}

#[test]
fn a_stall_that_an_epoch_ends_is_lost_time_of_that_epoch() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.follow();
    pass(&mut rig, SECOND_US);
    let before = sample(&mut rig);
    rig.append(1);
    pass(&mut rig, 400 * MS);
    rig.step(Event::Configure(Box::new(config(2, &[ME]))));
    let samples = rig.group.take_samples(&rig.turn);
    let since = samples[0].totals.since(&before.totals);
    assert_eq!((samples[0].epoch, samples[0].accounted_ms), (1, samples[0].at_ms));
    assert!((300_000..=400_000).contains(&since.paused_us), "{since:?}");
}

#[test]
fn a_client_that_is_gone_does_not_hide_how_long_its_append_took() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.follow();
    rig.append(1);
    rig.request(CLIENT, Request::Gone);
    rig.turn.now_us += 300 * MS;
    let last = rig.group.replica().log().last_index();
    rig.acknowledge(last);
    rig.flush();
    let judged = sample(&mut rig).judged_latency;
    assert!(judged.quantile_us(1_000) >= Some(300 * MS), "{judged:?}");
}
