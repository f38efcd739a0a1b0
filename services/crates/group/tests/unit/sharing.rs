//! A head with a share of its project's guarantee.

use quorate_group::{Event, Grant};
use quorate_types::control::{GroupFlow, GroupShare};

use crate::rig::{ME, OTHER, RATE_PER_S, Rig, SECOND_US, config};

fn share(rig: &mut Rig, per_s: u64, idle_max_per_s: Option<u64>) {
    let group_id = rig.group.id();
    rig.step(Event::Share(Some(GroupShare {
        group_id,
        per_s: Some(per_s),
        idle_max_per_s,
    })));
    rig.flush();
}

fn flow(rig: &mut Rig) -> Option<GroupFlow> {
    let now_us = rig.turn.now_us;
    rig.group.take_flow(now_us)
}

fn rate(rig: &Rig) -> u64 {
    rig.group.rate_per_s(rig.turn.now_us)
}

#[test]
fn a_share_passes_as_the_own_rate_does() {
    let mut rig = Rig::new(config(1, &[ME]));
    assert_eq!(flow(&mut rig), None, "it was told no share");
    share(&mut rig, 3 * RATE_PER_S, None);
    assert_eq!(rate(&rig), 4 * RATE_PER_S);
    rig.append(2 * RATE_PER_S);
    let before = rig.ordered();
    rig.turn.now_us += SECOND_US;
    rig.append(4 * RATE_PER_S);
    assert_eq!(rig.ordered() - before, 4 * RATE_PER_S, "a second of both");
    share(&mut rig, 0, None);
    assert_eq!(rate(&rig), RATE_PER_S);
}

#[test]
fn the_report_says_what_is_wanted_beside_the_own_rate() {
    let mut rig = Rig::new(config(1, &[ME]));
    share(&mut rig, RATE_PER_S, None);
    rig.turn.now_us += SECOND_US;
    let calm = flow(&mut rig).expect("it was told a share");
    assert_eq!((calm.wanted_per_s, calm.share_per_s), (0, RATE_PER_S));
    for _ in 0..10 {
        rig.turn.now_us += SECOND_US / 10;
        rig.append(RATE_PER_S / 5);
    }
    let used = flow(&mut rig).expect("as before").wanted_per_s;
    assert!(
        used.abs_diff(RATE_PER_S) <= RATE_PER_S / 5,
        "its share is in use: {used}"
    );
    for _ in 0..10 {
        rig.turn.now_us += SECOND_US / 10;
        rig.append(RATE_PER_S);
    }
    let wanted = flow(&mut rig).expect("as before").wanted_per_s;
    assert!(wanted >= 2 * RATE_PER_S, "it is held back: {wanted}");
}

#[test]
fn reports_in_quick_succession_say_the_same() {
    let mut rig = Rig::new(config(1, &[ME]));
    share(&mut rig, RATE_PER_S, None);
    for _ in 0..10 {
        rig.turn.now_us += SECOND_US / 10;
        rig.append(RATE_PER_S / 5);
    }
    let wanted = flow(&mut rig).expect("it was told a share").wanted_per_s;
    assert!(wanted > RATE_PER_S / 2, "{wanted}");
    for _ in 0..3 {
        rig.turn.now_us += 1_000;
        share(&mut rig, RATE_PER_S, None);
        assert_eq!(flow(&mut rig).expect("as before").wanted_per_s, wanted);
    }
}

#[test]
fn another_head_has_the_share() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    share(&mut rig, 500, None);
    rig.step(Event::Configure(Box::new(config(2, &[OTHER, ME]))));
    assert_eq!(flow(&mut rig), None);
    share(&mut rig, 500, None);
    assert_eq!(flow(&mut rig), None, "a message that is late");
    rig.step(Event::Configure(Box::new(config(3, &[ME]))));
    assert_eq!(rate(&rig), RATE_PER_S, "it begins anew");
    share(&mut rig, 500, None);
    rig.step(Event::Configure(Box::new(config(4, &[ME]))));
    assert_eq!(rate(&rig), RATE_PER_S + 500, "the same head keeps it");
    rig.step(Event::Share(None));
    assert_eq!(
        (rate(&rig), flow(&mut rig)),
        (RATE_PER_S, None),
        "no coordinator was heard"
    );
}

#[test]
fn the_project_bounds_what_a_group_has_of_idle_capacity() {
    let mut rig = Rig::new(config(1, &[ME]));
    share(&mut rig, 100, Some(50));
    let until_us = rig.turn.now_us + 3_600 * SECOND_US;
    let grant = |rate_per_s| {
        Event::Grant(Grant {
            epoch: 1,
            rate_per_s,
            until_us,
        })
    };
    rig.step(grant(10_000));
    assert_eq!(rate(&rig), RATE_PER_S + 150);
    for _ in 0..10 {
        rig.turn.now_us += SECOND_US / 10;
        rig.append(10 * RATE_PER_S);
    }
    let load = rig.load();
    assert_eq!(load.measured.extra_max_per_s, Some(50));
    assert_eq!(
        load.reserved_per_s, RATE_PER_S,
        "its share is nothing that could be lent"
    );
    share(&mut rig, 100, None);
    rig.step(grant(10_000));
    assert_eq!(rate(&rig), RATE_PER_S + 10_100);
}
