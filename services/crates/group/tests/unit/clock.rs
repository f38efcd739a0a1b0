//! A wall clock that is wrong costs nobody entries: the coordinator's clock is beside it.

use quorate_group::{Doubt, Event, ServerClock, Vouch};
use quorate_types::GroupConfig;
use quorate_types::limits::CLOCK_DIFFERENCE_US_MAX;

use crate::rig::{ME, Rig, SECOND_US, config};

const RETENTION_S: u64 = 300;
const TICK: Event = Event::Tick {
    is_coordinator_silent: false,
};

/// A head that retains five minutes; its clock is ahead of the coordinator's by so many seconds. No answer came if `None`.
fn head(ahead_s: Option<i64>) -> Rig {
    let retaining = GroupConfig {
        retention_age_s: Some(RETENTION_S),
        ..config(1, &[ME])
    };
    let mut rig = Rig::new(retaining);
    let wall_s = (rig.turn.wall_us / SECOND_US) as i64;
    let mut clock = ServerClock::default();
    clock.asked(0, rig.turn.now_us);
    if let Some(ahead_s) = ahead_s {
        clock.answered(0, rig.turn.now_us, Some((wall_s - ahead_s) as u64 * 1_000));
    }
    rig.turn.vouch = clock.vouch();
    rig
}

/// Appends, and ticks after so many seconds; the trim offset then.
fn append_and_tick_after(rig: &mut Rig, seconds: u64) -> u64 {
    rig.append(1);
    rig.flush();
    (rig.turn.now_us, rig.turn.wall_us) = (
        rig.turn.now_us + seconds * SECOND_US,
        rig.turn.wall_us + seconds * SECOND_US,
    );
    rig.step(TICK);
    rig.group.replica().trim_offset()
}

#[test]
fn a_clock_that_was_wrong_at_start_trims_nothing_young() {
    for ahead_s in [None, Some(20 * 60), Some(-20 * 60)] {
        let mut rig = head(None);
        assert_eq!(append_and_tick_after(&mut rig, 1), 0);
        // The process starts again, with the same log.
        let vouch = head(ahead_s).turn.vouch;
        rig.turn.vouch = vouch;
        rig.turn.wall_us = (rig.turn.wall_us as i64 + ahead_s.unwrap_or(20 * 60) * 1_000_000) as u64;
        rig.step(TICK);
        assert_eq!(rig.group.replica().trim_offset(), 0, "ahead by {ahead_s:?} s");
    }
}

#[test]
fn a_clock_that_is_vouched_for_trims_what_is_old() {
    let mut rig = head(Some(0));
    assert_eq!(append_and_tick_after(&mut rig, RETENTION_S), 0);
    (rig.turn.now_us, rig.turn.wall_us) = (rig.turn.now_us + 3 * SECOND_US, rig.turn.wall_us + 3 * SECOND_US);
    rig.step(TICK);
    assert_eq!(rig.group.replica().trim_offset(), 1);
}

#[test]
fn batches_say_whether_the_clock_that_stamped_them_was_in_doubt() {
    for (ahead_s, is_doubted) in [(None, true), (Some(2), true), (Some(-2), true), (Some(0), false)] {
        let mut rig = head(ahead_s);
        append_and_tick_after(&mut rig, 1);
        let header = rig.group.replica().log().header(1).copied().expect("ordered");
        assert_eq!(header.is_stamp_doubted(), is_doubted, "ahead by {ahead_s:?} s");
    }
}

#[test]
fn a_step_of_the_wall_clock_is_in_doubt_also_while_the_coordinator_is_away() {
    let vouch = Vouch {
        offset_us: Some(1_000 * SECOND_US as i64),
    };
    let (now, wall_us) = (3_600 * SECOND_US, 4_600 * SECOND_US);
    assert_eq!(vouch.judge(now, wall_us), Ok(0));
    let ahead_us = 60 * SECOND_US as i64;
    let stepped = vouch.judge(now, wall_us + ahead_us as u64);
    assert_eq!(stepped, Err(Doubt::Differs { ahead_us }));
    assert_eq!(Vouch::default().judge(now, wall_us), Err(Doubt::NotCompared));
}

#[test]
fn an_answer_that_was_long_under_way_or_comes_for_an_earlier_connection_says_nothing() {
    let mut clock = ServerClock::default();
    clock.asked(0, 0);
    clock.answered(0, CLOCK_DIFFERENCE_US_MAX + 1, Some(5_000));
    assert_eq!(clock.vouch(), Vouch::default());
    clock.asked(1, 10);
    clock.asked(2, 20);
    clock.answered(2, 30, None);
    assert_eq!(clock.vouch(), Vouch::default(), "an older coordinator");
    clock.asked(3, 40);
    clock.asked(0, 50);
    clock.answered(3, 60, Some(5_000));
    assert_eq!(clock.vouch(), Vouch::default(), "the connection is another");
    clock.answered(0, 60, Some(5_000));
    let offset_us = Some(5_000_000 - 60);
    assert_eq!(clock.vouch(), Vouch { offset_us });
    clock.asked(1, 70);
    clock.answered(1, 80, Some(u64::MAX));
    assert_eq!(clock.vouch(), Vouch { offset_us }, "no time at all");
}
